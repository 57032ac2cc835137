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
        cumulated, sizes, budget = self._cumulated(), word_sizes(block), self.budget(len(block))
        if not self.complete_words:
            return self._released(sizes, budget, cumulated, rng)
        masked = np.zeros(len(sizes), dtype=bool)
        spend(masked, sizes, budget, cumulated, rng)
        return np.repeat(masked, sizes)

    def select_rows(self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The paper's mode draws the spans of all rows at once; the released code's goes row by row."""
        if not self.complete_words or not word_starts.size:
            return super().select_rows(word_starts, lengths, rng)
        budgets = {length: self.budget(length) for length in np.unique(lengths).tolist()}
        budgets_of_rows = np.array([budgets[length] for length in lengths.tolist()])
        return all_rows(word_starts, lengths, budgets_of_rows, self._cumulated(), rng)

    def _cumulated(self) -> np.ndarray:
        """Probabilities of at most 1, 2, … max_words words."""
        cumulated = np.cumsum(clipped_geometric(self.p, self.max_words))
        return cumulated / cumulated[-1]  # exactly 1 at the end, whatever the rounding

    def _released(self, sizes: np.ndarray, budget: int, cumulated: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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


def spend(masked: np.ndarray, sizes: np.ndarray, left: int, cumulated: np.ndarray, rng: np.random.Generator) -> None:
    """The paper's mode: draws spans of words into `masked`, bool [words], until no word fits what is left of the
    budget. sizes: pieces of each word, int [words]."""
    while len(fitting := np.flatnonzero(~masked & (sizes <= left))):
        first = fitting[rng.integers(len(fitting))]
        last = first + draw_length(cumulated, rng)  # one past the span; slices stop at the block's end
        cost = np.cumsum(sizes[first:last] * ~masked[first:last])
        whole_words = np.searchsorted(cost, left, side="right")  # at least 1: the first word fits
        masked[first : first + whole_words] = True
        left -= cost[whole_words - 1]


def draw_length(cumulated: np.ndarray, rng: np.random.Generator) -> int:
    """One length in words from the cumulated law, float [max_words]."""
    return int(np.searchsorted(cumulated, rng.random(), side="right")) + 1


# --- all rows of a batch at once ----------------------------------------------------------------------------
#
# The same law, fast: every row gets more draws than it needs, and NumPy finds out for all of them together which count.
# A draw is passed over if its first word is already masked, as `spend` never draws such a word: to draw again until a
# word is free is the same as to draw among the free ones. Only what is then left of a budget is spent row by row.


def all_rows(
    word_starts: np.ndarray, lengths: np.ndarray, budgets: np.ndarray, cumulated: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """bool [B,n] in, bool [B,n] out; lengths and budgets: int [B], in pieces; cumulated: the law, float [max_words]."""
    places, sizes, ends = words_of_rows(word_starts, lengths)
    begins = np.append(0, ends[:-1, 1])  # [B], in words
    words, mean_length = budgets.max() * len(sizes) / sizes.sum(), (1 - cumulated).sum() + 1
    draws = int(1.3 * words / mean_length) + 8  # enough for nearly all rows
    spans = draw_spans(begins, ends[:, 0], draws, cumulated, rng)  # [B,draws,2]
    owner = first_comers(spans.reshape(-1, 2), len(sizes))  # [words]
    owned = np.flatnonzero(owner < spans.size // 2)
    costs = np.bincount(owner[owned], weights=sizes[owned], minlength=spans.size // 2).reshape(-1, draws)
    costs = np.cumsum(costs.astype(int), axis=1)  # [B,draws], of each draw and those before it
    within = costs <= budgets[:, None]  # these the budget pays whole
    masked, left = np.append(within, False)[owner], budgets - np.max(costs * within, axis=1)
    cut = np.flatnonzero(~within[:, -1])  # these rows have a draw that the budget pays in part or not at all
    left[cut] -= mask_part(masked, sizes, spans[cut, np.argmin(within[cut], axis=1)], left[cut])
    rest = np.flatnonzero(left)
    left[rest] -= one_more(masked, sizes, draw_spans(begins[rest], ends[rest, 0], 16, cumulated, rng), left[rest])
    for row in rest[left[rest] > 0].tolist():
        words = slice(begins[row], ends[row, 0])
        spend(masked[words], sizes[words], left[row], cumulated, rng)
    chosen, selected = np.flatnonzero(masked), np.zeros(word_starts.size, dtype=bool)
    for piece in range(np.max(sizes[chosen], initial=0)):  # of the chosen words the first pieces, the second ones, …
        selected[places[chosen] + piece] = True
        chosen = chosen[sizes[chosen] > piece + 1]
    return selected.reshape(word_starts.shape)


def words_of_rows(word_starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the words of all rows, one row after another, the places of their first pieces and their sizes in pieces, int
    [words]; and where the words of each row end in that list: without its padding and with it (which counts as one more
    word), int [B,2]."""
    starts, padded = word_starts.astype(bool), np.flatnonzero(lengths < word_starts.shape[1])
    starts &= np.arange(word_starts.shape[1]) < lengths[:, None]
    starts[:, 0] = True
    starts[padded, lengths[padded]] = True
    ends = np.cumsum(np.count_nonzero(starts, axis=1))
    real = ends - (lengths < word_starts.shape[1])
    places = np.flatnonzero(starts).astype(np.int32)
    return places, np.diff(places, append=np.int32(starts.size)), np.stack([real, ends], axis=1)


def draw_spans(begins, ends, draws: int, cumulated: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(first, one past the last) word of `draws` spans in each row, int [B,draws,2]; begins and ends: int [B]."""
    begins, ends = begins[:, None], ends[:, None]
    first = begins + (rng.random((len(begins), draws)) * (ends - begins)).astype(int)
    lengths = np.searchsorted(cumulated, rng.random(first.shape), side="right") + 1
    return np.stack([first, np.minimum(first + lengths, ends)], axis=2)


def first_comers(spans: np.ndarray, words: int) -> np.ndarray:
    """For each word the first span that masks it, or len(spans), int [words]. spans: (first, one past the last), int
    [m,2]. A span whose first word is masked by an earlier span does not count."""
    spans = spans.astype(np.int32)  # half the memory to move
    sizes, number = spans[:, 1] - spans[:, 0], np.arange(len(spans), dtype=np.int32)
    span = np.repeat(number, sizes)[::-1]  # backwards, so that of several spans the first is written last
    offsets = np.repeat(spans[:, 0] - np.cumsum(sizes, dtype=np.int32) + sizes, sizes)
    word = (np.arange(len(span), dtype=np.int32) + offsets)[::-1]
    counts, before = np.ones(len(spans), dtype=bool), None
    while not np.array_equal(counts, before):  # the first k spans are right after k rounds; two or three are usual
        kept, before = counts[span], counts
        owner = np.full(words + 1, len(spans), dtype=np.int32)  # + 1: an empty last row begins behind the last word
        owner[word[kept]] = span[kept]
        counts = owner[spans[:, 0]] >= number
    return owner[:-1]


def one_more(masked: np.ndarray, sizes: np.ndarray, spans: np.ndarray, left: np.ndarray) -> np.ndarray:
    """In each row masks the first of `spans`, int [rows,draws,2], whose first word fits; returns its cost, or 0."""
    first = spans[..., 0]
    fits = ~masked[first] & (sizes[first] <= left[:, None])
    chosen = spans[np.arange(len(spans)), fits.argmax(axis=1)]
    chosen[:, 1] = np.where(fits.any(axis=1), chosen[:, 1], chosen[:, 0])  # an empty span where none fits
    return mask_part(masked, sizes, chosen, left)


def mask_part(masked: np.ndarray, sizes: np.ndarray, spans: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Masks the words of one span in each of some rows up to the last whole word that fits; returns their cost.

    spans: (first, one past the last) word, int [rows,2]; left: pieces that may be spent, int [rows].
    """
    words = spans[:, :1] + np.arange(np.max(spans[:, 1] - spans[:, 0], initial=0))  # [rows,longest]
    inside = words < spans[:, 1:]
    words = np.minimum(words, len(sizes) - 1)
    cost = np.cumsum(sizes[words] * (inside & ~masked[words]), axis=1)
    fits = inside & (cost <= left[:, None])
    masked[words[fits]] = True
    return np.max(cost * fits, axis=1, initial=0)
