"""Checks for the exercises of `book/spanbert/span_masking`."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis
from spanbert_tutorial.spanbert.span_masking import clipped_geometric

LAWS = [(0.2, 10), (0.4, 10), (0.1, 5), (1.0, 3)]
BUDGETS = [
    ([1, 1, 1], 3),
    ([1, 1, 1], 2),
    ([2, 3, 4], 4),
    ([4, 1, 1], 3),
    ([1, 5, 1, 1], 3),
    ([3], 3),
    ([], 5),
]


def geometric(p: float, max_words: int) -> np.ndarray:
    """p(1−p)^(ℓ−1), without dividing by the sum."""
    return p * (1 - p) ** np.arange(max_words)


LAW_MISTAKES = (
    (
        lambda p, n: np.append(geometric(p, n)[:-1], 1 - geometric(p, n)[:-1].sum()),
        "you moved longer draws to the last length, as min(ℓ, limit) does. Clipping cuts them off "
        "and divides by what is left.",
    ),
    (geometric, "the values do not add up to 1. Divide by their sum."),
    (
        lambda p, n: geometric(p, n) * (1 - p),
        "your first exponent is 1. P(1) is proportional to p(1−p)⁰: lengths start at 1, exponents "
        "at 0.",
    ),
)
CUT_MISTAKES = (
    (
        lambda sizes, left: (np.cumsum(sizes) - sizes < left).sum(),
        "your last word is broken, or exceeds the budget. Check before you take a word.",
    ),
    (
        lambda sizes, left: (np.cumsum(sizes) < left).sum(),
        "a span may spend the budget to the last token: use ≤, not <.",
    ),
    (lambda sizes, left: min(left, sum(sizes)), "that is a number of tokens. Count words."),
)

diagnose_length_law = Diagnosis(
    LAWS,
    clipped_geometric,
    LAW_MISTAKES,
    "cut off at the longest span, then divided by what is left.",
    returns="one probability for each length",
)
diagnose_cut = Diagnosis(
    BUDGETS,
    lambda sizes, left: (np.cumsum(sizes) <= left).sum(),
    CUT_MISTAKES,
    "the span ends after the last whole word that fits.",
    returns="one number: how many words fit",
    read=float,
)

#: Prints whether `attempt(p, max_words)` gives the probabilities of lengths 1 … max_words.
check_length_law = diagnose_length_law.say

#: Prints whether `attempt(sizes, left)` says how many words of a span fit the budget that is
#: left.
check_cut = diagnose_cut.say
