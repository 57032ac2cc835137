"""Check for the exercise of `book/spanbert/span_masking`."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check

BUDGETS = [
    ([1, 1, 1], 3),
    ([1, 1, 1], 2),
    ([2, 3, 4], 4),
    ([4, 1, 1], 3),
    ([1, 5, 1, 1], 3),
    ([3], 3),
    ([], 5),
]

#: Prints whether `attempt(sizes, left)` says how many words of a span fit the budget.
check_cut = Check(
    BUDGETS,
    lambda sizes, left: (np.cumsum(sizes) <= left).sum(),
    {
        "your last word is broken, or exceeds the budget. Check "
        "before you take a word.": lambda sizes, left: (np.cumsum(sizes) - sizes < left).sum(),
        "a span may spend the budget to the last token: use ≤, not <.": lambda sizes, left: (
            np.cumsum(sizes) < left
        ).sum(),
        "that is a number of tokens. Count words.": lambda sizes, left: min(left, sum(sizes)),
    },
    "the span ends after the last whole word that fits.",
    returns="one number: how many words fit",
    read=float,
)
