"""Span masking: contiguous runs of whole words. Chapter: `book/spanbert/span_masking`.

Source: SpanBERT §3.1. Two modes: as the paper states it, and as the released code does it
(`complete_words=False`). NumPy only. As in `masking`, blocks come without [CLS] and [SEP].
"""

from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.masking import MaskingScheme, checked_word_starts, word_sizes


def clipped_geometric(p: float = 0.2, max_words: int = 10) -> np.ndarray:
    """Probabilities of span lengths 1 … max_words, float [max_words] (SpanBERT §3.1).

    "Clipped" means cut off and divided by what is left: P(k) = p(1−p)^(k−1) / (1 − (1−p)^max_words). Longer
    draws are NOT moved to max_words. Raises InputError unless 0 < p ≤ 1 and max_words is a whole number ≥ 1.
    """
    if not 0 < p <= 1:
        raise InputError(f"p is {p}, but the geometric law needs a p above 0 and at most 1: try 0.2.")
    if max_words < 1 or max_words != int(max_words):
        raise InputError(f"max_words is {max_words}: give a whole number of at least 1, such as 10.")
    weights = p * (1 - p) ** np.arange(int(max_words))
    return weights / weights.sum()


def spans_of(selected: np.ndarray) -> np.ndarray:
    """(first, last) of each maximal run, int [k,2]. Touching spans are one: both neighbours are unmasked."""
    edges = np.diff(np.asarray(selected, dtype=np.int8), prepend=0, append=0)
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1], axis=1)


@dataclass(frozen=True)
class SpanMasking(MaskingScheme):
    """Spans of `clipped_geometric(p, max_words)` words, ⌈mask_ratio · n⌉ pieces in all (SpanBERT §3.1).

    complete_words=True, the paper: the start is uniform over the words that are unmasked and fit the budget
    that is left; a span is cut after the last whole word that fits; the end comes when no word fits, so a
    piece or two of the budget may stay unspent.
    complete_words=False, the released code: the start is uniform over PIECES, moved left to the start of its
    word; the budget is always met exactly, so the last word may be broken.
    In both, spans grow to the right, may run over masked words (which cost nothing), stop at the block's end.
    Raises InputError for a `mask_ratio`, `p` or `max_words` out of range.
    """

    p: float = 0.2
    max_words: int = 10
    complete_words: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        clipped_geometric(self.p, self.max_words)  # raises for a bad p or max_words

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """bool [n] in, bool [n] out; see `MaskingScheme.select`."""
        block = checked_word_starts(word_starts)
        cumulated = np.cumsum(clipped_geometric(self.p, self.max_words))
        cumulated /= cumulated[-1]  # exactly 1 at the end, whatever the rounding
        choose = self._whole_words if self.complete_words else self._released
        return choose(word_sizes(block), self.budget(len(block)), cumulated, rng)

    def _whole_words(
        self, sizes: np.ndarray, budget: int, cumulated: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The paper's mode. sizes: int [words]."""
        masked, left = np.zeros(len(sizes), dtype=bool), budget
        while len(fitting := np.flatnonzero(~masked & (sizes <= left))):
            first = fitting[rng.integers(len(fitting))]
            last = first + draw_length(cumulated, rng)  # one past the span; slices stop at the block's end
            cost = np.cumsum(sizes[first:last] * ~masked[first:last])
            whole_words = np.searchsorted(cost, left, side="right")  # at least 1: the first word fits
            masked[first : first + whole_words] = True
            left -= cost[whole_words - 1]
        return np.repeat(masked, sizes)

    def _released(
        self, sizes: np.ndarray, budget: int, cumulated: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """The released code's mode. sizes: int [words]."""
        ends = np.cumsum(sizes)
        word_of_piece = np.repeat(np.arange(len(sizes)), sizes)
        selected, left = np.zeros(len(word_of_piece), dtype=bool), budget
        while left:
            length, anchor = draw_length(cumulated, rng), rng.integers(len(selected))
            if selected[anchor]:
                continue  # the length is thrown away too
            first = word_of_piece[anchor]
            start, end = ends[first] - sizes[first], ends[first:][:length][-1]
            fresh = start + np.flatnonzero(~selected[start:end])[:left]  # so the last word may break
            selected[fresh] = True
            left -= len(fresh)
        return selected


def draw_length(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    """One length in words from the cumulated law, float [max_words]."""
    return int(np.searchsorted(cumulated, rng.random(), side="right")) + 1
