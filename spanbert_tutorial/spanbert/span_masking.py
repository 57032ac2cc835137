"""Span masking: contiguous runs of whole words. Chapter:
`book/spanbert/span_masking`.

Source: SpanBERT §3.1 and the released code. Blocks come without [CLS]
and [SEP]. The same for a whole batch at once: `span_masking_batch`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from spanbert_tutorial.bert.masking import (
    MaskingScheme,
    check_draw,
    check_flags,
    word_sizes,
)
from spanbert_tutorial.errors import is_number, is_whole, require, shown


def clipped_geometric(
    p: float = 0.2, max_words: int = 10
) -> np.ndarray:
    """Probabilities of the lengths 1 … max_words, float [max_words].

    Cut off and rescaled: longer draws are not moved to max_words
    (SpanBERT §3.1)."""
    check_geometric(p, max_words)
    weights = p * (1 - p) ** np.arange(max_words)
    return weights / weights.sum()


def mask_words(
    sizes: np.ndarray,
    budget: int,
    length_probs: np.ndarray,
    rng: Generator,
    masked: np.ndarray | None = None,
) -> np.ndarray:
    """Spans of whole words until no word fits the budget.

    As the paper states it (§3.1). sizes: int [words], tokens of each;
    masked: those that are already. Returns bool [words]."""
    if masked is None:
        masked = np.zeros(len(sizes), dtype=bool)
    while len(starts := np.flatnonzero(~masked & (sizes <= budget))):
        first = rng.choice(starts)
        length = 1 + rng.choice(len(length_probs), p=length_probs)
        for word in range(first, min(first + length, len(sizes))):
            if masked[word]:
                continue  # spans may run over masked words, for free
            if sizes[word] > budget:
                break  # the last word has to fit whole
            masked[word] = True
            budget -= sizes[word]
    return masked


def mask_tokens(
    sizes: np.ndarray,
    budget: int,
    length_probs: np.ndarray,
    rng: Generator,
    masked: np.ndarray | None = None,
) -> np.ndarray:
    """Spans until the budget is spent to the token.

    As the released code does it: the last word may break. sizes: int
    [words]; masked: those that are already. Returns bool [tokens]."""
    ends = np.cumsum(sizes)
    word_of_token = np.repeat(np.arange(len(sizes)), sizes)
    if masked is None:
        masked = np.zeros(len(word_of_token), dtype=bool)
    while budget:
        length = 1 + rng.choice(len(length_probs), p=length_probs)
        anchor = rng.integers(len(masked))
        if masked[anchor]:
            continue  # the length is thrown away, too
        first = word_of_token[anchor]  # spans start with a word
        last = min(first + length, len(sizes)) - 1
        span = np.arange(ends[first] - sizes[first], ends[last])
        new = span[~masked[span]][:budget]
        masked[new] = True
        budget -= len(new)
    return masked


@dataclass(frozen=True)
class SpanMasking(MaskingScheme):
    """Spans of geometric length, ⌈mask_ratio · n⌉ tokens in all.

    complete_words: True is the paper (`mask_words`), False the
    released code (`mask_tokens`)."""

    p: float = 0.2
    max_words: int = 10
    complete_words: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        clipped_geometric(self.p, self.max_words)  # refuses bad ones

    def select(
        self, word_starts: np.ndarray, rng: Generator
    ) -> np.ndarray:
        """Which tokens of one block are masked, bool [n]."""
        check_draw(word_starts, rng)
        sizes = word_sizes(word_starts)
        budget = self.budget(len(word_starts))
        probs = clipped_geometric(self.p, self.max_words)
        if self.complete_words:
            words = mask_words(sizes, budget, probs, rng)
            return np.repeat(words, sizes)
        return mask_tokens(sizes, budget, probs, rng)


def spans_of(masked: np.ndarray) -> np.ndarray:
    """First and last position of each maximal run, int [k,2]."""
    masked = np.asarray(masked)
    check_block(masked)
    edges = np.diff(masked.astype(np.int8), prepend=0, append=0)
    first = np.flatnonzero(edges == 1)
    last = np.flatnonzero(edges == -1) - 1
    return np.stack([first, last], axis=1)


def check_geometric(p: float, max_words: int) -> None:
    """Raises InputError unless `clipped_geometric` takes them."""
    told = (
        f"p is {shown(p)}: give more than 0 and at most 1, such as 0.2."
    )
    require(is_number(p) and 0 < p <= 1, told)
    told = f"max_words is {shown(max_words)}: give at least one, such as 10."
    require(is_whole(max_words) and max_words >= 1, told)


def check_block(masked: np.ndarray) -> None:
    """Raises InputError unless masked is one block, bool [n]."""
    check_flags("masked", masked, ndim=1)
