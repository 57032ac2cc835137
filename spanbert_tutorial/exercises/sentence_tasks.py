"""Checks for the exercises of `book/tasks/classification`."""

from collections.abc import Callable, Sequence
from math import sqrt

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Measure = Callable[[Sequence[str], Sequence[str]], float]

CASES = [
    tuple(map(list, pair))
    for pair in (
        ("1110000000", "1100000001"),
        ("1111111100", "1111111100"),
        ("1111111100", "0000000011"),
        ("1111111100", "1111111111"),
        ("1111111100", "0000000000"),
        ("1100110000", "1010101000"),
        ("1111110000", "1111001110"),
        ("1000", "1100"),
    )
]


def _case_in_words(gold: Sequence[str], said: Sequence[str]) -> str:
    return f"for the labels {''.join(gold)} and the predictions {''.join(said)}"


def _how_to_go_on(error: Exception, *case: object) -> str:
    return (
        "A program that always predicts the same label gets 0: test for that before you divide."
        if isinstance(error, ZeroDivisionError)
        else ""
    )


def counts(gold: Sequence[str], said: Sequence[str]) -> tuple[int, int, int, int]:
    """True positives, false positives, false negatives, true negatives."""
    pairs = list(zip(gold, said, strict=True))
    a, b, c, d = (pairs.count(each) for each in (("1", "1"), ("0", "1"), ("1", "0"), ("0", "0")))
    return a, b, c, d


def ratio(above: float, below: float) -> float:
    """above / below, or 0 where there is nothing to divide by."""
    return above / below if below else 0.0


def matthews(gold: Sequence[str], said: Sequence[str]) -> float:
    """Matthews' correlation, 0 where it is not defined."""
    tp, fp, fn, tn = counts(gold, said)
    return ratio(tp * tn - fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


# --- the likely mistakes ------------------------------------------------------------


def changed(measure: Callable[[int, int, int, int], float]) -> Measure:
    """A measure of the four counts as one of two rows of labels."""
    return lambda gold, said: measure(*counts(gold, said))


MISTAKES: list[tuple[Measure, str]] = [
    (
        changed(lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn)),
        "this is the accuracy. Always predicting the more frequent label already scores high on "
        "it.",
    ),
    (
        changed(lambda tp, fp, fn, tn: ratio(2 * tp, 2 * tp + fp + fn)),
        "you compute F1. It ignores the 0s that were right.",
    ),
    (
        changed(
            lambda tp, fp, fn, tn: ratio(
                tp * tn - fp * fn, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
            )
        ),
        "you leave out the square root in the denominator.",
    ),
    (
        changed(
            lambda tp, fp, fn, tn: ratio(
                tp * tn + fp * fn, sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
            )
        ),
        "you add what you should subtract: wrong predictions lower a correlation.",
    ),
    (
        changed(
            lambda tp, fp, fn, tn: abs(
                matthews(
                    ["1"] * (tp + fn) + ["0"] * (fp + tn),
                    ["1"] * tp + ["0"] * fn + ["1"] * fp + ["0"] * tn,
                )
            )
        ),
        "you drop the sign. A program that is always wrong gets -1, not 1.",
    ),
    (
        changed(
            lambda tp, fp, fn, tn: (
                100
                * matthews(
                    ["1"] * (tp + fn) + ["0"] * (fp + tn),
                    ["1"] * tp + ["0"] * fn + ["1"] * fp + ["0"] * tn,
                )
            )
        ),
        "this is 100 times as much. Return a number from -1 to 1.",
    ),
    (
        changed(lambda tp, fp, fn, tn: ratio(tp * tn - fp * fn, tp * tn + fp * fn)),
        "your denominator is wrong. Take the root of a product of four sums: how often 1 and 0 are "
        "predicted, and how often they are gold.",
    ),
    (
        changed(lambda tp, fp, fn, tn: ratio(tp, tp + fn) + ratio(tn, tn + fp) - 1),
        "you compute recall of the 1s plus recall of the 0s, minus 1. It counts how many gold "
        "labels are found, not how many of the predictions are right.",
    ),
]


diagnose_matthews = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=number,
    returns="one number, from -1 to 1",
    hint=_how_to_go_on,
    right=matthews,
    mistakes=MISTAKES,
    correct="both types of mistakes count, and a constant prediction gets 0.",
)


def check_matthews(attempt: Measure) -> None:
    """Prints whether `attempt(gold, said)` gives Matthews' correlation of two rows of labels "0"
    and "1"."""
    say(diagnose_matthews(attempt))
