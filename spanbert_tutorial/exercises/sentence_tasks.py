"""Check for the second exercise of `book/tasks/classification`."""

from functools import partial

from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from spanbert_tutorial.exercises.diagnosis import Check

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


#: Prints whether `attempt(gold, said)` gives Matthews' correlation of two rows of "0" and "1".
check_matthews = Check(
    CASES,
    matthews_corrcoef,
    {
        "this is the accuracy. Always predicting the more frequent label already scores high on "
        "it.": accuracy_score,
        "you compute F1. It ignores the 0s that were right.": partial(f1_score, pos_label="1"),
        "you drop the sign. A program that is always wrong gets -1, not 1.": lambda *case: abs(
            matthews_corrcoef(*case)
        ),
    },
    "both types of mistakes count, and a constant prediction gets 0.",
    returns="one number, from -1 to 1",
    read=float,
)
