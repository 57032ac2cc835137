"""Check for the second exercise of `book/tasks/classification`."""

from collections.abc import Sequence
from math import sqrt

from spanbert_tutorial.exercises.diagnosis import Check

Labels = Sequence[str]
CASES = [
    (list(gold), list(said))
    for gold, said in (
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


def counts(gold: Labels, said: Labels) -> tuple[int, int, int, int]:
    pairs = list(zip(gold, said, strict=True))
    a, b, c, d = (pairs.count(each) for each in (("1", "1"), ("0", "1"), ("1", "0"), ("0", "0")))
    return a, b, c, d


def matthews(gold: Labels, said: Labels) -> float:
    tp, fp, fn, tn = counts(gold, said)
    below = sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / below if below else 0.0


def f1(gold: Labels, said: Labels) -> float:
    tp, fp, fn, _ = counts(gold, said)
    return 2 * tp / (2 * tp + fp + fn)


#: Prints whether `attempt(gold, said)` gives Matthews' correlation of two rows of labels "0" and
#: "1".
check_matthews = Check(
    CASES,
    matthews,
    {
        "this is the accuracy. Always predicting the more frequent label already scores high on "
        "it.": lambda gold, said: sum(a == b for a, b in zip(gold, said, strict=True)) / len(gold),
        "you compute F1. It ignores the 0s that were right.": f1,
        "you drop the sign. A program that is always wrong gets -1, not 1.": lambda *case: abs(
            matthews(*case)
        ),
    },
    "both types of mistakes count, and a constant prediction gets 0.",
    returns="one number, from -1 to 1",
    read=float,
)
