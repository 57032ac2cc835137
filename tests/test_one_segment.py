"""The experiment on an untrained second segment: what the encoder is told, and a toy run."""

import json
import os
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from research import grid
from research.experiments import one_segment
from research.measurements.span_tasks_sentences import PLANS
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint

EXAMPLES = {
    name: [((f"A {thing} runs.", f"The {thing} sleeps."), float(i % 6)) for i, thing in things]
    for name, things in {
        "train": list(enumerate(["dog", "cat", "man", "child", "horse", "bird"] * 2)),
        "test": list(enumerate(["woman", "fox", "bear"])),
    }.items()
}


def tiny(name="spanbert-tiny", seed=0):
    model, wordpiece = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))[:2]
    return model.encoder.eval(), wordpiece


@torch.no_grad()
def test_every_token_gets_segment_0_also_in_a_copy():
    ids, segments = torch.tensor([[2, 50, 3, 60, 3]]), torch.tensor([[0, 0, 0, 1, 1]])
    encoder, _ = tiny()
    two = encoder(ids, token_type_ids=segments)
    zeros = encoder(ids, token_type_ids=torch.zeros_like(segments))
    one = deepcopy(one_segment.in_one_segment(encoder))(ids, segments, None)
    assert one.equal(zeros) and not one.allclose(two, atol=1e-3)


def test_the_arms_differ_in_the_segments_alone(monkeypatch):
    told = []

    def start(name, seed):
        encoder, wordpiece = tiny()
        encoder.embeddings.segments.register_forward_pre_hook(
            lambda _, inputs: told.append(int(inputs[0].max()))
        )
        return encoder, wordpiece

    monkeypatch.setattr(one_segment, "start", start)
    scores = {}
    for segments, greatest in (("two", 1), ("one", 0)):
        told.clear()
        row = one_segment.one(("spanbert-mini", segments), 0, one_segment.SETTINGS, EXAMPLES)
        assert max(told, default=0) == greatest  # without segments nothing is looked up
        scores[segments] = row["scores"]
    assert scores["one"].keys() == scores["two"].keys() and "stsb pearson" in scores["one"]


def test_the_arms_with_two_segments_repeat_the_rows_of_the_table_over_all_tasks():
    kept, table = (
        json.loads(data_path("results", f"{name}.json").read_text(encoding="utf-8"))
        for name in ("one_segment", "span_tasks")
    )
    assert not grid.missing(one_segment, kept["rows"], one_segment.SEEDS)
    assert kept["fingerprint"] == table["fingerprints"]["stsb"]
    rows = {
        (row["start"], row["seed"]): row["scores"]
        for row in kept["rows"]
        if row["token_type_ids"] == "two"
    }
    again = [
        row for row in table["rows"] if row["task"] == "stsb" and row["start"] != "new weights"
    ]
    assert len(again) == 6
    for row in again:
        assert rows[row["start"], row["seed"]] == pytest.approx(row["scores"], abs=0.5)


@pytest.mark.real_data
def test_the_parts_are_those_of_the_table_over_all_tasks(tmp_path):
    folder = Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"])
    facts, (parts,) = one_segment.prepare(tmp_path, one_segment.SETTINGS, data=folder)
    assert facts["examples"]["test"] == len(parts["test"]) == PLANS["stsb"].test
