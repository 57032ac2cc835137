"""Three formats from the same start: what each reads and predicts, and results that survive a
stop."""

import numpy as np
import pytest
import torch

from research.experiments import pairs_vs_single
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.text.encoding import EncodedCorpus

RUN = Run(objective="mlm", steps=2, max_length=24, batch_size=4)


@pytest.fixture(scope="module")
def text():
    """30 documents of 6 sentences of 7 tokens, and 10 held out, with a vocabulary learned from a
    few words."""
    wordpiece = WordPiece.train(["the river runs past the old town and the mill"] * 3, 60)
    rng = np.random.default_rng(0)

    def corpus(documents: int) -> EncodedCorpus:
        ends = np.arange(7, documents * 42 + 1, 7)
        return EncodedCorpus(
            rng.integers(5, len(wordpiece), documents * 42).astype(np.uint16), ends, ends[5::6]
        )

    return EncodedText(corpus(30), corpus(10), wordpiece)


def test_one_segment_is_the_usual_run(text):
    here, history = pairs_vs_single.pretrain("one segment", RUN, text)
    usual, wanted = runs.pretrain(RUN, text)
    assert history.losses == wanted.losses
    assert all(
        torch.equal(a, b) for a, b in zip(here.parameters(), usual.parameters(), strict=True)
    )
