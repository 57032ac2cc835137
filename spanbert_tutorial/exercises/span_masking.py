"""Checks for the exercises of `book/spanbert/span_masking`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import (
    Diagnosis,
    NotYet,
    array,
    differs,
    named,
    number,
    say,
)
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


def _probabilities(answer: Any, p: float, max_words: int) -> np.ndarray:
    shape = np.shape(answer)
    if shape == (max_words + 1,):
        raise NotYet(
            "there is one value too many. Lengths start at 1: there is no span of 0 words."
        )
    if shape != (max_words,):
        raise NotYet(
            f"the shape is {shape}. Give one probability for each length from 1 to {max_words}."
        )
    return array(answer, shape)


def _law_mistake(answer: np.ndarray, exact: np.ndarray, p: float, max_words: int) -> str:
    full = p * (1 - p) ** np.arange(max_words)
    lengths = np.arange(1, max_words + 1)
    known = named(
        answer,
        [
            (
                np.append(full[:-1], 1 - full[:-1].sum()),
                "you moved longer draws to the last length, as min(ℓ, limit) does. Clipping "
                "cuts them off and divides by "
                "what is left.",
            ),
            (full, f"the values add up to {answer.sum():.3f}. Divide by their sum."),
            (
                full * (1 - p),
                "your first exponent is 1. P(1) is proportional to p(1−p)⁰: lengths start at 1, "
                "exponents at 0.",
            ),
            (
                clipped_geometric(1 - p, max_words) if p < 1 else exact,
                "you swap p and 1 − p. With p = 0.2, short spans are only slightly more likely "
                "than long ones.",
            ),
        ],
    )
    return known or (
        f"the mean length is {answer @ lengths:.3f}; it should be {exact @ lengths:.3f}."
    )


diagnose_length_law = Diagnosis(
    cases=LAWS,
    where=lambda p, max_words: f"for p = {p} and at most {max_words} words",
    read=_probabilities,
    returns="one probability for each length",
    right=clipped_geometric,
    otherwise=_law_mistake,
    correct="cut off at the longest span, then divided by what is left.",
)


def check_length_law(attempt: Callable[[float, int], np.ndarray]) -> None:
    """Prints whether `attempt(p, max_words)` gives the probabilities of lengths 1 … max_words."""
    say(diagnose_length_law(attempt))


def _fitting(sizes: list[int], left: int) -> int:
    return int((np.cumsum(sizes) <= left).sum())


def _cut_mistake(answer: float, wanted: int, sizes: list[int], left: int) -> str:
    tokens = np.cumsum(sizes)
    broken = "Your last word is broken, or exceeds the budget. Check before you take a word."
    known = named(
        answer,
        [
            ((tokens < left).sum(), "A span may spend the budget to the last token: use ≤, not <."),
            ((tokens - sizes < left).sum(), broken),
            (
                _fitting_with_gaps(sizes, left),
                "A span has no gaps: stop at the first word that does not fit.",
            ),
            (min(left, sum(sizes)), "That is a number of tokens. Count words."),
        ],
    )
    return f"{differs(answer, wanted)} {known}".rstrip()


def _fitting_with_gaps(sizes: list[int], left: int) -> int:
    """The mistake of passing over a word that does not fit and going on behind it."""
    taken = 0
    for size in sizes:
        if size <= left:
            taken = taken + 1
            left = left - size
    return taken


diagnose_cut = Diagnosis(
    cases=BUDGETS,
    where=lambda sizes, left: f"for words with {sizes} tokens and a budget of {left}",
    read=number,
    returns="one number: how many words fit",
    right=_fitting,
    otherwise=_cut_mistake,
    correct="the span ends after the last whole word that fits.",
)


def check_cut(attempt: Callable[[list[int], int], int]) -> None:
    """Prints whether `attempt(sizes, left)` says how many words of a span fit the budget that is
    left."""
    say(diagnose_cut(attempt))
