"""The check of the exercise on ELECTRA's input accepts the right answer and names each likely
mistake."""

import numpy as np
import pytest

from spanbert_tutorial.exercises.electra import (
    CASES,
    MISTAKES,
    RIGHT,
    arrays,
    check_replace,
    diagnose_replace,
    replace_with,
)


def right(original, selected, sampled, real):
    ids = np.where(selected, sampled, original)
    return ids, ids != original, real


def answering(**changes):
    return lambda *given: replace_with(*given, **RIGHT | changes)


def test_the_right_answer_is_accepted(capsys):
    assert diagnose_replace(right).startswith("Correct")
    check_replace(right)
    assert capsys.readouterr().out.startswith("Correct")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named(mistake):
    name, value = mistake
    said = diagnose_replace(answering(**{name: value}))
    assert said.startswith("Not yet") and MISTAKES[mistake] in said
    assert sum(meaning in said for meaning in MISTAKES.values()) == 1


def test_two_mistakes_are_both_named():
    said = diagnose_replace(answering(lucky="replaced", scored="selected"))
    assert MISTAKES["lucky", "replaced"] in said and MISTAKES["scored", "selected"] in said


def test_other_answers():
    def in_place(original, selected, sampled, real):
        original[selected] = sampled[selected]
        return original, original != sampled, real

    assert "returns nothing" in diagnose_replace(lambda *given: None)
    assert "three arrays" in diagnose_replace(lambda *given: given[0])
    assert "changed in place" in diagnose_replace(in_place)
    assert "one entry for each token" in diagnose_replace(
        lambda o, s, x, r: (x[s], x[s] != o[s], r)
    )
    assert "the right answer is" in diagnose_replace(lambda o, s, x, r: (o, ~s & r, r))


def test_the_first_case_by_hand():
    """Chosen are the first and the third token; the first sample is lucky."""
    ids, replaced, scored = replace_with(*arrays(CASES[0]), **RIGHT)
    assert ids == [11, 12, 16, 11, 14, 0]
    assert replaced == [0, 0, 1, 0, 0, 0] and scored == [1, 1, 1, 1, 1, 0]
