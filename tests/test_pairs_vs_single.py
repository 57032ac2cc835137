"""Three formats from the same start: what each reads and predicts, and results that survive a
stop."""

from dataclasses import replace

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


def test_pairs_predict_with_or_without_the_label(text):
    histories = {
        name: pairs_vs_single.pretrain(name, RUN, text)[1] for name in ("pairs", "pairs + NSP")
    }
    assert set(histories["pairs"].losses) == {"loss", "mlm"}
    assert set(histories["pairs + NSP"].losses) == {"loss", "mlm", "nsp"}
    assert histories["pairs"].losses["mlm"] == histories["pairs"].losses["loss"]


def test_all_formats_start_from_the_same_encoder(text):
    starts = [
        runs.new_model(replace(RUN, objective=predicts), text)
        for _, predicts in pairs_vs_single.ARMS.values()
    ]
    for model in starts[1:]:
        pairs = zip(starts[0].encoder.parameters(), model.encoder.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)


def test_every_model_is_measured_on_both_formats(text):
    for name in pairs_vs_single.ARMS:
        model = runs.new_model(replace(RUN, objective=pairs_vs_single.ARMS[name][1]), text).eval()
        figures = pairs_vs_single.held_out(model, RUN, text)
        assert set(figures) == {"one segment", "pairs"}
        assert all(np.isfinite(list(values.values())).all() for values in figures.values())
        assert ("nsp_accuracy" in figures["pairs"]) == (name == "pairs + NSP")
