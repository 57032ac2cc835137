"""A stranger's masking scheme and second task: a new file each and one row of a table, nothing else.
(An experiment is tried in `test_experiment_command`.)"""

import json
from itertools import islice

import numpy as np
import pytest
import torch
from stranger import LabeledMasking, LongBlock
from test_main import run

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import encoded_text
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import parts
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.text.encoding import EncodedCorpus


@pytest.fixture(autouse=True)
def row(monkeypatch):
    """The row of the table; and a few documents of the almanac are enough here."""
    monkeypatch.setitem(
        OBJECTIVES, "labeled+long", Objective(LabeledMasking(), "span", (LongBlock(),))
    )
    monkeypatch.setattr(encoded_text, "parts", lambda *given: islice(parts(*given), 60))


def test_both_are_pretrained_by_the_command_kept_and_opened(tmp_path, capsys):
    output = tmp_path / "model"
    options = ["--objective", "labeled+long", "--steps", 20, "--batch-size", 8, "--output", output]
    code, said, wrong = run(capsys, "pretrain", *options)
    assert code == 0, wrong
    assert " LONG 0." in said and "per block" in said
    lines = [
        json.loads(line)
        for line in (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert lines[-1]["step"] == 20 and {"mlm", "long", "held_out_long"} <= lines[-1].keys()
    model, _ = load_checkpoint(output)
    assert [task.name for task in model.tasks] == ["long_block"]
    assert json.loads((output / "config.json").read_text())["spanbert_tutorial"] == {
        "objective": "labeled+long"
    }
    with pytest.warns(UserWarning, match="left out of .*: cls, heads"):
        encoder = BertEncoder.from_huggingface(output)
    assert all(
        torch.equal(a, b)
        for a, b in zip(encoder.parameters(), model.encoder.parameters(), strict=True)
    )
    further = ["--steps", 2, "--init-from", output, "--output", tmp_path / "on"]
    code, _, wrong = run(capsys, "pretrain", *options[:2], *further)
    assert code == 0, wrong


def test_a_scheme_sees_the_labeled_spans_of_each_block():
    """Two documents; of the labeled spans (3 to 4), (7 to 9) and (12 to 13) the block of places 5
    to 12 holds one."""
    corpus = EncodedCorpus(
        np.arange(10, 30),
        np.array([5, 13, 20]),
        np.array([5, 13, 20]),
        labeled=np.array([[3, 5, 1], [7, 10, 2], [12, 14, 1]]),
    )
    seen = []

    class Look(LabeledMasking):
        def select_blocks(self, blocks, rng):
            seen.append(blocks.labeled.tolist())
            return super().select_blocks(blocks, rng)

    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    data = PretrainingData(corpus, wordpiece, Objective(Look(mask_ratio=0.4), "span"), 10, 4)
    batch = data.batch(np.arange(3), np.random.default_rng(0))
    assert data.segments[0].tolist() == [[0, 5], [5, 13], [13, 20]]
    assert seen == [[[0, 3, 4, 1], [1, 2, 4, 2]]]
    chosen = [tuple(one) for one in (batch["labels"] != -100).nonzero().tolist()]
    assert chosen[:5] == [(0, 4), (0, 5), (1, 3), (1, 4), (1, 5)]  # + 1 for [CLS]
