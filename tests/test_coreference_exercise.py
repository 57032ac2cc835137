"""The check of the B³ exercise accepts right attempts, also written differently, and names each
likely mistake."""

import numpy as np
import pytest

from spanbert_tutorial.exercises.coreference import (
    CASES,
    MISTAKES,
    b_cubed,
    check_b_cubed,
    diagnose_b_cubed,
)
from spanbert_tutorial.exercises.diagnosis import same


def sums(one, other):
    """The recall over pairs of clusters."""
    total = sum(len(cluster) for cluster in one)
    return (
        sum(len(set(a) & set(b)) ** 2 / len(a) for a in one for b in other) / total if total else 0
    )


def test_a_right_attempt(capsys):
    check_b_cubed(b_cubed)
    assert capsys.readouterr().out.startswith("Correct")


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_a_right_attempt_written_differently(kind):
    said = diagnose_b_cubed(lambda key, response: kind([sums(response, key), sums(key, response)]))
    assert said.startswith("Correct")


def whole(one, other):
    return sum(len(set(a) & set(b)) ** 2 / len(a) for a in one for b in other) / sum(map(len, one))


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (lambda key, response: (sums(key, response), sums(response, key)), "swapped"),
        (lambda key, response: (whole(response, key), whole(key, response)), "A side may be empty"),
        (lambda key, response: sums(key, response), "Return two numbers"),
        (
            lambda key, response: (100 * sums(response, key), 100 * sums(key, response)),
            "in percent",
        ),
        (
            lambda key, response: [c for c in response if key[0][0] in c][9],
            "A mention may occur on one side only",
        ),
        (
            lambda key, response: (0.5, 0.5),
            "for the key {12345} {67} {89ABC} and the response {12345} {6789ABC}",
        ),
        (lambda key, response: None, "returns nothing"),
    ],
)
def test_each_mistake_is_named(attempt, named):
    said = diagnose_b_cubed(attempt)
    assert (
        said.startswith("Not yet: ") and named in said and "\n" not in said and said.endswith(".")
    )


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_each_listed_mistake_is_told_from_all_others(number):
    mistake, sentence = MISTAKES[number]
    answers = [mistake(*case) for case in CASES]
    assert not same(answers, [b_cubed(*case) for case in CASES])
    assert diagnose_b_cubed(mistake) == f"Not yet: {sentence}"
    assert [other for other, _ in MISTAKES if same(answers, [other(*case) for case in CASES])] == [
        mistake
    ]
