"""A killed run resumes from its last whole snapshot and ends with identical weights."""

import json
import os

import pytest

from benchmarks.kills import kill_again_and_again
from spanbert_tutorial.engine.files import data_path


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGKILL")
def test_five_kills_change_nothing(tmp_path):
    result = kill_again_and_again(tmp_path, kills=5, steps=200, seed=1)
    steps = result["killed_after_step"]
    assert result["moments"] == {"any": 1, "a snapshot": 2, "the end": 1, "the checkpoint": 1}
    assert result["same_weights"]
    assert (
        steps == sorted(steps) and 0 < steps[1] < steps[2] < steps[3] == 200
    )  # each part went on from the one before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "calm",
        "errors.txt",
        "hunted",
        "text.txt",
    ]


def test_the_kept_figures_are_of_fifty_kills():
    kept = json.loads(data_path("results", "kills.json").read_text(encoding="utf-8"))
    assert (
        kept["same_weights"]
        and kept["kills"] == 50 == len(kept["killed_after_step"])
        and kept["while_writing"] >= 5
    )
    assert kept["moments"] == {"any": 14, "a snapshot": 26, "the end": 5, "the checkpoint": 5}
    assert kept["checkpoint_half_written"] >= 3
