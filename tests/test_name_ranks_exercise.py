"""The exercise on ranking hidden names: right answers pass, each mistake is named."""

from types import SimpleNamespace

import numpy as np
import pytest

from research.measurements import name_ranks
from spanbert_tutorial.exercises import name_ranks as exercise


def with_numpy(logs, candidates, true):
    """By the mean place of all with the same score."""
    scores = np.array(logs)[np.arange(len(logs)), np.array(candidates)].sum(axis=1)
    in_order = np.sort(scores)[::-1]
    return np.flatnonzero(in_order == scores[true]).mean() + 1


@pytest.mark.parametrize("attempt", [exercise.rank, with_numpy])
def test_every_right_way_is_correct(attempt):
    assert exercise.diagnose_rank(attempt).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_rank(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "returns nothing" in exercise.diagnose_rank(lambda logs, candidates, true: None)
    assert "IndexError" in exercise.diagnose_rank(lambda logs, candidates, true: logs[9])


def test_the_package_ranks_alike():
    for logs, candidates, true in exercise.CASES:
        known = name_ranks.Known({("NAME", len(logs)): np.array(candidates)}, {}, {}, {})
        gap = SimpleNamespace(name=SimpleNamespace(label="NAME"), tokens=candidates[true])
        assert name_ranks.ranked(gap, known, np.array(logs)) == exercise.rank(
            logs, candidates, true
        )


def test_who_knows_nothing_gets_the_mean_rank():
    logs, candidates, _ = exercise.CASES[-1]
    assert {exercise.rank(logs, candidates, true) for true in range(len(candidates))} == {
        (1 + len(candidates)) / 2
    }
