"""Span masking: contiguous runs of whole words. Chapter: `book/spanbert/span_masking`.

Source: SpanBERT §3.1. Two modes: as the paper states it, and as the released code does it
(`complete_words=False`). NumPy only. As in `masking`, blocks come without [CLS] and [SEP]. Here one
span is drawn after another, as in the chapter; `span_masking_rows` draws those of a whole batch at
once.
"""

from bisect import bisect
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.bert.masking import MaskingScheme, booleans, word_sizes
from spanbert_tutorial.errors import InputError, is_number, is_whole, shown
from spanbert_tutorial.spanbert import span_masking_batch

MOST_WORDS = 1_000_000  # of a span; each length has its number in memory


def clipped_geometric(p: float = 0.2, max_words: int = 10) -> np.ndarray:
    """Probabilities of span lengths 1 … max_words, float [max_words] (SpanBERT §3.1).

    "Clipped" means cut off and divided by what is left: P(k) = p(1−p)^(k−1) / (1 −
    (1−p)^max_words). Longer draws are NOT moved to max_words. Raises InputError unless 0 < p ≤ 1
    and max_words is a whole number from 1 to MOST_WORDS.
    """
    if not is_number(p) or not 0 < p <= 1:
        raise InputError(
            f"p is {shown(p)}, but the geometric law needs a p above 0 and at most 1: try 0.2."
        )
    if not is_whole(max_words) or not 1 <= max_words <= MOST_WORDS:
        raise InputError(
            f"max_words is {shown(max_words)}: give a whole number of at least 1, such as 10, "
            f"and at most "
            f"{MOST_WORDS:,}."
        )
    weights = p * (1 - p) ** np.arange(int(max_words))
    return weights / weights.sum()


def spans_of(selected: np.ndarray) -> np.ndarray:
    """(first, last) of each maximal run, int [k,2]. Touching spans are one: both neighbors are
    unmasked. Raises InputError for anything but one block of booleans."""
    found = booleans("selected", selected, "a token is chosen")
    if found.ndim != 1:
        raise InputError(f"selected has shape {found.shape}: give one block [n].")
    edges = np.diff(found.astype(np.int8), prepend=0, append=0)
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1], axis=1)


@dataclass(frozen=True)
class SpanMasking(MaskingScheme):
    """Spans of `clipped_geometric(p, max_words)` words, ⌈mask_ratio · n⌉ tokens in all (SpanBERT
    §3.1).

    complete_words=True, the paper: the start is uniform over the words that are unmasked and fit
    the budget that is left; a span is cut after the last whole word that fits; the end comes when
    no word fits, so a token or two of the budget may stay unspent. complete_words=False, the
    released code: the start is uniform over TOKENS, moved left to the start of its word; the budget
    is always met exactly, so the last word may be broken. In both, spans grow to the right, may run
    over masked words (which cost nothing), stop at the block's end. Raises InputError for a
    `mask_ratio`, `p` or `max_words` out of range.
    """

    p: float = 0.2
    max_words: int = 10
    complete_words: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        clipped_geometric(self.p, self.max_words)  # raises for a bad p or max_words

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """bool [n] in, bool [n] out; see `MaskingScheme.select`."""
        sizes = word_sizes(word_starts)
        budget = self.budget(len(word_starts))
        if self.complete_words:
            masked = np.zeros(len(sizes), dtype=bool)
            mask_words(masked, sizes, budget, self._cumulated, rng)
            return np.repeat(masked, sizes)
        selected = np.zeros(len(word_starts), dtype=bool)
        mask_tokens(selected, sizes, budget, self._cumulated, rng)
        return selected

    def select_rows(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draws for all rows at once; a row whose draws did not spend its budget goes on alone,
        span after span."""
        if not word_starts.size:
            return np.zeros(word_starts.shape, dtype=bool)
        budget_of = {length: self.budget(length) for length in np.unique(lengths).tolist()}
        budgets = np.array([budget_of[length] for length in lengths.tolist()])
        words = span_masking_batch.words_of_rows(word_starts, lengths)
        cumulated = self._cumulated

        if self.complete_words:
            masked, left = span_masking_batch.mask_words(words, budgets, cumulated, rng)
            for row in np.flatnonzero(left).tolist():
                of_row = words.of_row(row)
                mask_words(masked[of_row], words.sizes[of_row], left[row], cumulated, rng)
            return words.tokens_of(masked).reshape(word_starts.shape)

        selected, left = span_masking_batch.mask_tokens(words, lengths, budgets, cumulated, rng)
        for row in np.flatnonzero(left).tolist():
            mask_tokens(
                selected[row, : lengths[row]],
                words.sizes[words.of_row(row)],
                left[row],
                cumulated,
                rng,
            )
        return selected

    @cached_property
    def _cumulated(self) -> np.ndarray:
        """Probabilities of at most 1, 2, … max_words words."""
        cumulated = np.cumsum(clipped_geometric(self.p, self.max_words))
        return cumulated / cumulated[-1]  # exactly 1 at the end, whatever the rounding


class DrawnSpan(NamedTuple):
    """One span of the paper's mode: its first word, the length drawn, how many words it has after
    the cuts, and how many tokens of the budget are left then."""

    start: int
    length: int
    words: int
    left: int


def mask_words(
    masked: np.ndarray,
    sizes: np.ndarray,
    left: int,
    cumulated: np.ndarray,
    rng: np.random.Generator,
) -> list[DrawnSpan]:
    """The paper's mode: span after span of whole words, until no word fits what is left of the
    budget.

    masked: bool [words], written to; sizes: int [words], in tokens; left: tokens that may still be
    masked; cumulated: see `draw_length`. Returns the spans in the order of the draws.
    """
    spans = []
    while len(starts := np.flatnonzero(~masked & (sizes <= left))):
        start = int(starts[rng.integers(len(starts))])
        length = draw_length(cumulated, rng)
        # end: one past the span
        word = start
        end = min(start + length, len(sizes))
        while word < end and (cost := 0 if masked[word] else int(sizes[word])) <= left:
            masked[word] = True
            left = left - cost
            word = word + 1
        spans.append(DrawnSpan(start, length, word - start, left))
    return spans


def mask_tokens(
    selected: np.ndarray,
    sizes: np.ndarray,
    left: int,
    cumulated: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """The released code's mode: span after span, until the budget is spent to the token.

    selected: bool [n], written to; the others as in `mask_words`.
    """
    ends = np.cumsum(sizes)  # of the words, in tokens
    word_of_token = np.repeat(np.arange(len(sizes)), sizes)
    while left:
        length = draw_length(cumulated, rng)
        anchor = rng.integers(len(selected))
        if selected[anchor]:
            continue  # the length is thrown away too
        word = word_of_token[anchor]
        last = min(word + length, len(sizes)) - 1
        for token in range(ends[word] - sizes[word], ends[last]):
            if left and not selected[token]:
                selected[token] = True
                left -= 1


def draw_length(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    """One length in words. cumulated: probabilities of at most 1, 2, … words, float [max_words]."""
    return bisect(cumulated, rng.random()) + 1
