"""A killed run resumes from its last whole snapshot and ends with identical weights."""

import json
import os

import pytest

from benchmarks.kills import kill_again_and_again
from spanbert_tutorial.data_files import data_path


@pytest.mark.skipif(os.name == "nt", reason="Windows knows no SIGKILL")
def test_five_kills_change_nothing(tmp_path):
    result = kill_again_and_again(tmp_path, kills=5, steps=150, seed=1)
    steps = result["killed_after_step"]
    assert result["same_weights"]
    assert 0 < steps[0] and steps == sorted(set(steps)) and steps[-1] < 150  # each part went on from the one before
    assert not (tmp_path / "hunted.training").exists()


def test_the_kept_figures_are_of_fifty_kills():
    kept = json.loads(data_path("results", "kills.json").read_text(encoding="utf-8"))
    assert kept["same_weights"] and kept["kills"] == 50 == len(kept["killed_after_step"]) and kept["while_writing"] >= 5
