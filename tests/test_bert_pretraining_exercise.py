"""The checks of `book/bert/pretraining` accept right answers, also written differently, and name
each mistake."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from transformers import get_linear_schedule_with_warmup

from spanbert_tutorial.exercises.pretraining import (
    PLATEAU_MISTAKES,
    RECIPES,
    SCHEDULE_MISTAKES,
    check_plateau,
    check_schedule,
    diagnose_plateau,
    diagnose_schedule,
    entropy,
    rate,
)


def counted(ids, pad_id):
    """The same by another way: a Counter and the sum of c/N · ln(N/c)."""
    counts = Counter(token for row in ids.tolist() for token in row if token != pad_id)
    total = sum(counts.values())
    return sum(c / total * math.log(total / c) for c in counts.values())


def bent(step, peak, warmup, steps):
    """The same by another way: the lower of two straight lines."""
    return peak * max(0.0, min((step - 1) / warmup, (steps - step + 1) / (steps - warmup)))


def test_the_plateau_by_hand():
    """Three kinds in the shares 1/2, 1/3, 1/6."""
    shares = [1 / 2, 1 / 3, 1 / 6]
    expected = -sum(p * math.log(p) for p in shares)
    assert entropy(np.array([[5, 6, 5, 7], [5, 6, 0, 0]]), 0) == pytest.approx(expected)


@pytest.mark.parametrize("attempt", [entropy, counted])
def test_the_right_plateau_is_accepted(attempt):
    assert diagnose_plateau(attempt).startswith("Correct")


@pytest.mark.parametrize("mistake, meaning", PLATEAU_MISTAKES)
def test_each_mistake_of_the_plateau_is_named(mistake, meaning):
    assert meaning in diagnose_plateau(mistake)


def p_of_all_ids(ids, pad_id):
    """Shares of every id up to the largest: those that do not occur have 0."""
    return np.bincount(ids[ids != pad_id]) / (ids != pad_id).sum()


@pytest.mark.parametrize(
    "attempt", [lambda ids, pad: np.unique(ids), lambda ids, pad: ([1.0, 2.0], [3.0])]
)
def test_more_than_one_number_is_named(attempt):
    assert "Return one number: sum over the tokens" in diagnose_plateau(attempt)


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_nan_is_named():
    answer = diagnose_plateau(
        lambda ids, pad: -(p_of_all_ids(ids, pad) * np.log(p_of_all_ids(ids, pad))).sum()
    )
    assert "Leave out the tokens that do not occur" in answer


@pytest.mark.parametrize("attempt", [rate, bent])
def test_the_right_schedule_is_accepted(attempt):
    assert diagnose_schedule(attempt).startswith("Correct")


@pytest.mark.parametrize("mistake, meaning", SCHEDULE_MISTAKES)
def test_each_mistake_of_the_schedule_is_named(mistake, meaning):
    assert meaning in diagnose_schedule(mistake)


@pytest.mark.parametrize("peak, warmup, steps", RECIPES)
def test_the_schedule_is_the_one_that_training_uses(peak, warmup, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=peak)
    schedule = get_linear_schedule_with_warmup(optimizer, warmup, steps)
    for step in range(1, steps + 1):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate(step, peak, warmup, steps))
        optimizer.step()
        schedule.step()


def test_other_answers_are_shown_beside_the_wanted_ones(capsys):
    said = diagnose_plateau(lambda ids, pad: 7.0)
    assert (
        "for the ids [[5, 6, 5, 7], [5, 6, 0, 0]], the right answer is 1.0114, and yours is 7.0"
        in said
    )
    assert "in step 1, the right answer is 0.0, and yours is 7.0" in diagnose_schedule(
        lambda *_: 7.0
    )
    assert "returns nothing" in diagnose_plateau(lambda *_: None)
    assert "returns nothing" in diagnose_schedule(lambda *_: None)
    check_plateau(entropy)
    check_schedule(rate)
    assert capsys.readouterr().out.count("Correct") == 2
