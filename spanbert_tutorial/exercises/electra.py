"""Check for the exercise of `book/relatives/electra`."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]

# original, selected, sampled, real: a lucky sample, one that is not used, padding at the end.
CASES = [
    (np.array(original), np.array(selected) > 0, np.array(sampled), np.array(real) > 0)
    for original, selected, sampled, real in (
        ([11, 12, 13, 11, 14, 0], [1, 0, 1, 0, 0, 0], [11, 15, 16, 17, 14, 18], [1, 1, 1, 1, 1, 0]),
        ([21, 22, 23, 24], [0, 1, 0, 1], [30, 22, 31, 25], [1, 1, 1, 1]),
        ([5, 6, 7, 0, 0], [0, 0, 0, 0, 0], [8, 9, 7, 0, 4], [1, 1, 1, 0, 0]),
        ([5, 6, 7, 8, 9], [1, 1, 1, 1, 1], [9, 8, 7, 6, 5], [1, 1, 1, 1, 1]),
    )
]


def replaced(
    original: np.ndarray, selected: np.ndarray, sampled: np.ndarray, real: np.ndarray
) -> Arrays:
    ids = np.where(selected, sampled, original)
    return ids, ids != original, real


LUCKY = (
    "you count a sample that equals the original as replaced. It is original: compare ids, not "
    "which tokens were masked"
)
SCORED = (
    "you score only the masked tokens. That is the masked language model's loss; the "
    "discriminator predicts a label for every real token."
)

#: Prints whether `attempt(original, selected, sampled, real)` gives ids, labels and scored tokens.
check_replace = Check(
    CASES,
    replaced,
    {
        f"{LUCKY}.": lambda *case: (replaced(*case)[0], case[1], case[3]),
        SCORED: lambda *case: (*replaced(*case)[:2], case[1]),
        f"{LUCKY}; and {SCORED}": lambda *case: (replaced(*case)[0], case[1], case[1]),
    },
    "samples at the masked positions, a lucky one counts as original, and every real "
    "token is scored.",
    returns="three arrays, `ids, replaced, scored`",
)
