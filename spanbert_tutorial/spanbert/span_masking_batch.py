"""Span masking of all rows of a batch at once. Chapters: `book/spanbert/span_masking`,
`book/workshop/engine`.

The distribution is that of `span_masking`; only the order of the draws differs. Every row gets more
draws than it needs, and NumPy takes the first one of all rows, then the second, and so on. A draw
is passed over if its first word is masked: to draw again until a word is free is the same as to
draw among the free ones. A row whose draws did not spend its budget goes on alone. The words of all
rows stand in one list, and a span is (first, one past the last) word in it.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from spanbert_tutorial.bert.masking import select_rows
from spanbert_tutorial.spanbert import span_masking
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric


@select_rows.register
def select_spans(
    scheme: SpanMasking, word_starts: np.ndarray, lengths: np.ndarray, rng: Generator
) -> np.ndarray:
    """What `SpanMasking.select_batch` does once it has checked. Returns bool [B,n]."""
    if type(scheme).select is not SpanMasking.select:  # a subclass that selects in its own way
        return select_rows.dispatch(object)(scheme, word_starts, lengths, rng)
    if not word_starts.size:
        return np.zeros(word_starts.shape, dtype=bool)
    different, which = np.unique(lengths, return_inverse=True)
    budgets = np.array([scheme.budget(length) for length in different.tolist()])[which]
    words = words_of_rows(word_starts, lengths)
    probs = clipped_geometric(scheme.p, scheme.max_words)
    cumulated = np.cumsum(probs)
    cumulated /= cumulated[-1]  # exactly 1 at the end, whatever the rounding

    if scheme.complete_words:
        masked, left = mask_words(words, budgets, cumulated, rng)
        for row in np.flatnonzero(left).tolist():
            own = words.of_row(row)
            span_masking.mask_words(words.sizes[own], left[row], probs, rng, masked[own])
        return np.repeat(masked, words.sizes).reshape(word_starts.shape)

    masked, left = mask_tokens(words, lengths, budgets, cumulated, rng)
    masked = masked.reshape(word_starts.shape)
    for row in np.flatnonzero(left).tolist():
        sizes, there = words.sizes[words.of_row(row)], masked[row, : lengths[row]]
        span_masking.mask_tokens(sizes, left[row], probs, rng, there)
    return masked


class Words(NamedTuple):
    """The words of all rows in one list. The padding of a row counts as one more word."""

    sizes: np.ndarray  # int [words], in tokens
    begins: np.ndarray  # int [B], the first word of each row
    ends: np.ndarray  # int [B], one past its last word, without the padding

    def of_row(self, row: int) -> slice:
        return slice(self.begins[row], self.ends[row])


def words_of_rows(word_starts: np.ndarray, lengths: np.ndarray) -> Words:
    """word_starts: bool [B,n], not empty; lengths: int [B], the real ones."""
    n = word_starts.shape[1]
    starts = word_starts & (np.arange(n) < lengths[:, None])
    padded = np.flatnonzero(lengths < n)
    starts[padded, lengths[padded]] = True
    starts[:, 0] = True
    ends = np.cumsum(np.count_nonzero(starts, axis=1))
    begins = np.append(0, ends[:-1])
    ends[padded] -= 1
    return Words(np.diff(np.flatnonzero(starts), append=starts.size), begins, ends)


def mask_words(
    words: Words, budgets: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The paper's mode: which words are masked, bool [words], and what is left of each budget.

    budgets: int [B], in tokens; cumulated: probabilities of at most 1, 2, … words, float
    [max_words].
    """
    masked = np.zeros(len(words.sizes), dtype=bool)
    firsts = draw_words(words.begins, words.ends, enough_draws(words, budgets, cumulated), rng)
    spans = draw_spans(firsts, words.ends, cumulated, rng)  # [B,draws,2]
    left = mask_spans(masked, words.sizes, spans, budgets)
    # one more span where something is left: the first of 16 whose first word fits, if any does
    rest = np.flatnonzero(left)
    firsts = draw_words(words.begins[rest], words.ends[rest], 16, rng)
    spans = draw_spans(firsts, words.ends[rest], cumulated, rng)
    fits = ~masked[firsts] & (words.sizes[firsts] <= left[rest, None])
    chosen = spans[np.arange(len(rest)), fits.argmax(axis=1)]
    left[rest] = mask_spans(masked, words.sizes, chosen[:, None], left[rest])
    return masked, left


def mask_tokens(
    words: Words, lengths: np.ndarray, budgets: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The released code's mode: which tokens are masked, bool [B·n], and what is left of each
    budget. lengths: int [B], the real ones."""
    begins = np.append(0, np.cumsum(words.sizes))  # of the words and the end, in tokens
    word_of_token = np.repeat(np.arange(len(words.sizes)), words.sizes)  # [B·n]
    draws = enough_draws(words, budgets, cumulated)
    # tokens, each equally likely
    anchors = draw_words(begins[words.begins], begins[words.begins] + lengths, draws, rng)
    spans = draw_spans(word_of_token[anchors], words.ends, cumulated, rng)  # [B,draws,2]
    masked = np.zeros(len(word_of_token), dtype=bool)
    # tokens are words of size 1: the last word may break
    return masked, mask_spans(masked, np.ones_like(word_of_token), begins[spans], budgets)


def enough_draws(words: Words, budgets: np.ndarray, cumulated: np.ndarray) -> int:
    """A number of draws that spends the budgets of nearly all rows."""
    budget_in_words = budgets.max() * len(words.sizes) / words.sizes.sum()
    mean_length = (1 - cumulated).sum() + 1
    return int(1.3 * budget_in_words / mean_length) + 8


def draw_words(begins: np.ndarray, ends: np.ndarray, draws: int, rng: Generator) -> np.ndarray:
    """`draws` words of each row [begin, end), each equally likely, int [B,draws]."""
    words = rng.random((len(begins), draws)) * (ends - begins)[:, None]
    return begins[:, None] + words.astype(int)


def draw_spans(
    firsts: np.ndarray, ends: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> np.ndarray:
    """Spans from these first words that stop at the ends of the rows, int [B,draws,2]."""
    lengths = np.searchsorted(cumulated, rng.random(firsts.shape), side="right") + 1
    return np.stack([firsts, np.minimum(firsts + lengths, ends[:, None])], axis=2)


def mask_spans(
    masked: np.ndarray, sizes: np.ndarray, spans: np.ndarray, budgets: np.ndarray
) -> np.ndarray:
    """Masks span after span of each row, int [B,draws,2]; of the first one that is longer than
    what is left of its budget only the words that fit, and nothing after it.

    masked: bool [words], written to; budgets: int [B]. Returns what is left of them, int [B].
    """
    firsts, ends = spans[..., 0].T, spans[..., 1].T  # [draws,B]
    reach = np.arange(np.max(ends - firsts, initial=1))[:, None]
    words = firsts[:, None] + reach  # [draws,longest,B]
    inside = words < ends[:, None]
    words = np.where(inside, words, firsts[:, None])
    prices = sizes[words] * inside
    left = budgets.copy()
    done = left == 0
    for span, price in zip(words, prices, strict=True):
        free = ~masked[span]  # [longest,B]
        taken = free[0] & ~done
        costs = (price * free).cumsum(axis=0)
        fits = (costs <= left) & taken
        masked[span[fits]] = True
        left -= (costs * fits).max(axis=0)
        done |= taken & ~fits[-1]
        if done.all():
            break
    return left
