"""What the checks of the exercises share: refusals, comparing, known mistakes."""

import importlib
import pkgutil

import numpy as np
import pytest
import torch

from spanbert_tutorial import exercises
from spanbert_tutorial.exercises.diagnosis import (
    NotYet,
    array,
    ask,
    call,
    combined,
    compare,
    in_short,
    named,
    number,
    one_by_one,
    plain,
    same,
    say,
    verdict,
    without_changing,
)

CASES = [([1.0, 3.0],), ([2.0, 2.0, 5.0],)]
MISTAKES = [
    (sum, "this is the sum. Divide it by the number of values."),
    (max, "this is the largest."),
]
NOTHING = "the function returns nothing. End every path through it with a `return` of one number."
NAN = (
    "Your answer contains nan, which is not a number: look for 0 / 0, for 0 · ln 0 and for the "
    "mean of nothing."
)


def mean(values):
    return sum(values) / len(values)


@verdict
def diagnose_mean(attempt):
    answers = ask(
        attempt,
        CASES,
        where=lambda values: f"for {values}",
        read=number,
        returns="one number",
        hint=lambda error, values: (
            f"There are {len(values)} values." if isinstance(error, KeyError) else ""
        ),
    )
    compare(answers, mean, MISTAKES)
    return "each value counts once."


def stops(values):
    return {}[7]


@pytest.mark.parametrize(
    "attempt",
    [mean, np.mean, lambda values: torch.tensor(values).mean(), lambda values: mean(values) + 1e-8],
)
def test_a_right_answer(attempt):
    assert diagnose_mean(attempt) == "Correct: each value counts once."


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda values: None, f"for [1.0, 3.0], {NOTHING}"),
        (
            lambda values: mean(values) if len(values) < 3 else None,
            f"for [2.0, 2.0, 5.0], {NOTHING}",
        ),
        (
            stops,
            "for [1.0, 3.0], the function stopped with KeyError: 7, in the line `return {}[7]`. "
            "There are 2 values.",
        ),
        (
            lambda: 1.0,
            "for [1.0, 3.0], the function stopped with TypeError: <lambda>() takes 0 positional "
            "arguments but 1 "
            "was given.",
        ),
        (3, "for [1.0, 3.0], the function stopped with TypeError: 'int' object is not callable."),
        (
            lambda values: "2.0",
            "for [1.0, 3.0], the function returns '2.0' (str). Return one number.",
        ),
        (
            lambda values: values,
            "for [1.0, 3.0], the function returns [1.0, 3.0] (list). Return one number.",
        ),
        (
            lambda values: torch.zeros(2, 3),
            "for [1.0, 3.0], the function returns a value of type Tensor and shape "
            "(2, 3). Return one number.",
        ),
        (
            lambda values: float("nan"),
            f"for [1.0, 3.0], the right answer is 2.0, and yours is nan. {NAN}",
        ),
        (sum, "this is the sum. Divide it by the number of values."),
        (max, "this is the largest."),
        (lambda values: 2, "for [2.0, 2.0, 5.0], the right answer is 3.0, and yours is 2."),
        (
            lambda values: mean(values) if len(values) > 2 else 4.0,
            "for [1.0, 3.0], the right answer is 2.0, and yours is 4.0.",
        ),
    ],
)
def test_what_is_not_right_is_told_in_one_sentence(attempt, sentence):
    assert diagnose_mean(attempt) == f"Not yet: {sentence}"


def test_a_reader_cannot_change_the_cases():
    def empties(values):
        found = mean(values)
        values.clear()
        return found

    assert diagnose_mean(empties).startswith("Correct") and CASES[0] == ([1.0, 3.0],)


def test_one_by_one_judges_before_it_asks_again():
    asked = []

    @verdict
    def diagnose(attempt):
        one_by_one(
            ask(attempt, CASES),
            mean,
            lambda value, wanted, values: f"{value} of {len(values)}, not {wanted}.",
        )
        return "so it is."

    def attempt(values):
        asked.append(values)
        return 7

    assert diagnose(attempt) == "Not yet: 7 of 2, not 2.0." and len(asked) == 1
    assert diagnose(mean) == "Correct: so it is."


def test_nothing_may_be_an_answer():
    answers = list(ask(lambda values: None, CASES, none_is_an_answer=True))
    assert [answer.value for answer in answers] == [None, None]


def test_a_changed_array_is_told():
    def doubles(values):
        values *= 2
        return values

    given = np.ones(2)
    assert call(without_changing(lambda values: values * 2, "work on a copy."), given).tolist() == [
        2.0,
        2.0,
    ]
    with pytest.raises(NotYet, match=r"^work on a copy\.$"):
        call(without_changing(doubles, "work on a copy."), given)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (1.0, 1 + 1e-7, True),
        (100_000_000, 100_000_001, False),  # whole numbers exactly
        (np.float32(0.1), 0.1, True),
        (float("nan"), float("nan"), True),
        ((1, 2), [1, 2], True),
        ((1, 2), None, False),
        (None, (1, 2), False),
        (None, None, True),
        (None, 1.0, False),
        ([[1], [2, 3]], [[1], [2, 3]], True),
        ([[1], [2, 3]], [[1, 2], [3]], False),
        (["a", "##b"], ["a", "b"], False),
        (torch.tensor([True, False]), np.array([1, 0]), True),
        (np.zeros((2, 1)), np.zeros((1, 2)), False),
        ((np.zeros(2), 3), (np.full(2, 1e-9), 3.0), True),
        (True, 1.0, True),
    ],
)
def test_when_answers_are_the_same(one, other, agree):
    assert same(one, other) is agree


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([[1, 2], [3]], object),
        ([1, 2, 3], object),
        ("ab", object),
        ([["a", "b"]] * 2, object),
        (np.zeros((2, 2)), torch.Tensor),
    ],
)
def test_what_is_no_array_of_numbers_of_the_shape(value, kind):
    with pytest.raises(ValueError):
        array(value, (2, 2), kind)


def test_arrays_tensors_and_lists_are_read():
    learned = torch.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    for value in ([[0, 1], [2, 3]], np.arange(4).reshape(2, 2), learned):
        assert array(value, (2, 2)).tolist() == [[0, 1], [2, 3]]


def test_the_first_mistake_that_fits_is_named():
    mistakes = [([1, 2], "first."), ([1, 2], "second."), ([3], "third.")]
    assert (
        named([1, 2], mistakes) == "first."
        and named((3,), mistakes) == "third."
        and named([4], mistakes) == ""
    )


def test_mistakes_are_combined_from_the_fewest():
    def line(x, slope=2, start=1):
        return slope * x + start

    meanings = {("slope", 3): "too steep", ("slope", 1): "too flat", ("start", 0): "no start"}
    made = [(attempt(1), sentence) for attempt, sentence in combined(line, meanings, max_count=2)]
    assert made == [
        (4, "too steep."),
        (2, "too flat."),
        (2, "no start."),
        (3, "too steep; and no start."),
        (1, "too flat; and no start."),
    ]
    assert len(list(combined(line, meanings, max_count=1))) == 3


def test_values_are_shown_briefly(capsys):
    assert plain((np.float64(1 / 3), [torch.tensor([2 / 3]), 7])) == (0.333333, [[0.666667], 7])
    assert plain(1.000011) != plain(1.0)  # what is not the same does not look the same
    assert in_short(list(range(100))).endswith("… (list)") and len(in_short(list(range(100)))) < 70
    assert in_short(np.arange(100.0)) == "a value of type ndarray and shape (100,)"
    say("Correct: " + "one two " * 20)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and max(map(len, lines)) <= 68


MODULES = [
    module.name for module in pkgutil.iter_modules(exercises.__path__) if module.name != "diagnosis"
]


@pytest.mark.parametrize("name", MODULES)
def test_every_check_refuses_nothing_and_errors_alike(name, capsys):
    """Each `check_…` prints what its `diagnose_…` says."""
    module = importlib.import_module(f"spanbert_tutorial.exercises.{name}")
    checks = [each for each in vars(module) if each.startswith("check_")]
    assert checks

    def fails(*given):
        raise RuntimeError("out of order")

    for check in checks:
        getattr(module, check)(fails)
        said = " ".join(capsys.readouterr().out.split())
        assert said.startswith("Not yet: ")
        assert (
            "the function stopped with RuntimeError: out of order, in the line `raise RuntimeError("
            in said
        )
        assert said == getattr(module, check.replace("check_", "diagnose_"))(fails)
        if name != "question_answering":  # where no answer is one
            getattr(module, check)(lambda *given: None)
            said = " ".join(capsys.readouterr().out.split())
            assert (
                "the function returns nothing. End every path through it with a `return` of "
                in said
            )
