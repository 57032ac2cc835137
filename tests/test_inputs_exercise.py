"""The check of the exercise of *inputs*: right answers pass however they are written, each mistake
is named."""

from itertools import combinations

import numpy as np
import pytest
import torch

from spanbert_tutorial.exercises.inputs import (
    CASES,
    CLS,
    MISTAKES,
    PAD,
    RIGHT,
    SEP,
    batch_with,
    check_batch,
    diagnose_batch,
)


def right(pairs, longest):
    """With lists only, and by another way of cutting."""
    rows = []
    for first, second in pairs:
        for _ in range(max(0, len(first) + len(second) + 3 - longest)):
            if len(first) > len(second):
                first = first[:-1]
            else:
                second = second[:-1]
        rows.append(
            ([CLS, *first, SEP, *second, SEP], [0] * (len(first) + 2) + [1] * (len(second) + 1))
        )
    n = max(len(ids) for ids, _ in rows)
    ids = [row + [PAD] * (n - len(row)) for row, _ in rows]
    segments = [row + [0] * (n - len(row)) for _, row in rows]
    return ids, segments, [[token != PAD for token in row] for row in ids]


def test_a_right_answer_passes_in_lists_arrays_and_tensors(capsys):
    check_batch(right)
    assert capsys.readouterr().out.startswith("Correct")
    assert diagnose_batch(lambda *given: tuple(map(np.array, right(*given)))).startswith("Correct")
    assert diagnose_batch(lambda *given: [torch.tensor(part) for part in right(*given)]).startswith(
        "Correct"
    )


def test_the_wanted_batch_by_hand():
    ids, segments, mask = batch_with([([11, 12, 13], [21]), ([31], [41])], 6, **RIGHT)
    assert ids.tolist() == [[101, 11, 12, 102, 21, 102], [101, 31, 102, 41, 102, 0]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]
    assert mask.tolist() == [[1] * 6, [1] * 5 + [0]]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named(mistake):
    said = diagnose_batch(lambda *given: batch_with(*given, **{**RIGHT, **dict([mistake])}))
    assert said == f"Not yet: {MISTAKES[mistake]}."


def test_two_mistakes_are_both_named():
    two = {"final_sep": False, "mask": "all"}
    said = diagnose_batch(lambda *given: batch_with(*given, **{**RIGHT, **two}))
    assert all(MISTAKES[mistake] in said for mistake in two.items())


def test_no_two_mistakes_look_alike():
    made = {}
    for mistake in MISTAKES:
        answer = [batch_with(*case, **{**RIGHT, **dict([mistake])}) for case in CASES]
        made[mistake] = str([array.tolist() for arrays in answer for array in arrays])
    right_answer = str([array.tolist() for case in CASES for array in batch_with(*case, **RIGHT)])
    assert right_answer not in made.values()
    assert all(made[one] != made[other] for one, other in combinations(made, 2))


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda pairs, longest: None, "returns nothing"),
        (lambda pairs, longest: right(pairs, longest)[:2], "Return three arrays"),
        (
            lambda pairs, longest: ([first for first, _ in pairs],) * 3,
            "the rows of ids have different lengths",
        ),
        (lambda pairs, longest: (*right(pairs, longest)[:2], [1, 2]), "mask has the shape (2,)"),
        (lambda pairs, longest: pairs[0] + 1, "stopped with TypeError"),
        (
            lambda pairs, longest: (
                np.full_like(right(pairs, longest)[0], 9),
                *right(pairs, longest)[1:],
            ),
            "they should be",
        ),
    ],
)
def test_other_answers(attempt, sentence):
    assert sentence in diagnose_batch(attempt)
