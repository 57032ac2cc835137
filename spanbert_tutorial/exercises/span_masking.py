"""Checks for the exercises of `book/spanbert/span_masking`."""

from collections.abc import Callable
from textwrap import fill

import numpy as np

from spanbert_tutorial.span_masking import clipped_geometric

LAWS = [(0.2, 10), (0.4, 10), (0.1, 5), (1.0, 3)]


def check_length_law(attempt: Callable[[float, int], np.ndarray]) -> None:
    """Prints whether `attempt(p, max_words)` gives the probabilities of lengths 1 … max_words."""
    print(fill(diagnose_length_law(attempt), 68))


def diagnose_length_law(attempt: Callable[[float, int], np.ndarray]) -> str:
    """One sentence: correct, or the likely mistake."""
    for p, max_words in LAWS:
        answer = attempt(p, max_words)
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        problem = _law_mistake(np.asarray(answer, dtype=float), p, max_words)
        if problem:
            return f"Not yet: for p = {p} and at most {max_words} words, {problem}."
    return "Correct: cut off at the longest span, then divided by what is left."


def _law_mistake(answer: np.ndarray, p: float, max_words: int) -> str:
    """What is wrong with one answer; empty when it is right."""
    exact = clipped_geometric(p, max_words)
    full = p * (1 - p) ** np.arange(max_words)
    if answer.shape == (max_words + 1,):
        return "there is one value too many. Lengths start at 1: a span of 0 words does not exist"
    if answer.shape != (max_words,):
        return f"the shape is {answer.shape}. Give one probability for each length from 1 to {max_words}"
    if np.allclose(answer, exact):
        return ""
    heaped = np.append(full[:-1], 1 - full[:-1].sum())
    if np.allclose(answer, heaped):
        return (
            "longer draws were moved to the last length, as min(ℓ, limit) does. "
            "Clipping cuts them off and divides by what is left"
        )
    if np.allclose(answer, full):
        return f"the values add up to {answer.sum():.3f}. Divide by their sum"
    if np.allclose(answer, full * (1 - p)):
        return "the first exponent is 1. P(1) is proportional to p(1−p)⁰: lengths start at 1, exponents at 0"
    if np.allclose(answer, clipped_geometric(1 - p, max_words) if p < 1 else exact):
        return "p and 1 − p have changed places. Short spans of p = 0.2 are only a little likelier than long ones"
    return f"the mean length is {answer @ np.arange(1, max_words + 1):.3f}, wanted is {_mean(exact):.3f}"


def _mean(law: np.ndarray) -> float:
    return float(law @ np.arange(1, len(law) + 1))


def check_cut(attempt: Callable[[list[int], int], int]) -> None:
    """Prints whether `attempt(sizes, left)` says how many words of a span fit the budget that is left."""
    print(fill(diagnose_cut(attempt), 68))


def diagnose_cut(attempt: Callable[[list[int], int], int]) -> str:
    """One sentence: correct, or the likely mistake."""
    cases = [([1, 1, 1], 3), ([1, 1, 1], 2), ([2, 3, 4], 4), ([4, 1, 1], 3), ([1, 5, 1, 1], 3), ([3], 3), ([], 5)]
    for sizes, left in cases:
        answer, pieces = attempt(list(sizes), left), np.cumsum(sizes)
        wanted = int((pieces <= left).sum())
        if answer == wanted:
            continue
        said = f"Not yet: of words with {sizes} pieces, a budget of {left} holds {wanted}, and you say {answer}"
        taken = _fitting_with_gaps(sizes, left)
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        if answer == (pieces < left).sum():
            return f"{said}. A span may spend the budget to the last piece: use ≤, not <."
        if answer == (pieces - sizes < left).sum():
            return f"{said}. Your last word is broken, or goes over the budget. Ask before you take a word."
        if answer == taken:
            return f"{said}. A span has no gaps: stop at the first word that does not fit."
        if answer == min(left, sum(sizes)):
            return f"{said}. That is a number of pieces. Count words."
        return f"{said}."
    return "Correct: the span ends after the last whole word that fits."


def _fitting_with_gaps(sizes: list[int], left: int) -> int:
    """The mistake of passing over a word that does not fit and going on behind it."""
    taken = 0
    for size in sizes:
        if size <= left:
            taken, left = taken + 1, left - size
    return taken
