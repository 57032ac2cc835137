"""Span masking of all rows of a batch at once. Chapters: `book/spanbert/span_masking`,
`book/workshop/engine`.

The distribution is that of `span_masking`; only the order of the draws differs. Every row gets more
draws than it needs, and NumPy finds out for all rows together which of them count. A draw is passed
over if its first word is already masked: to draw again until a word is free is the same as to draw
among the free ones. A row whose draws did not spend its budget goes on alone, span after span.

The words of all rows stand in one list, one row after another, and a span is (first, one past the
last) word in it. NumPy only.
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
    if not word_starts.size:
        return np.zeros(word_starts.shape, dtype=bool)
    budget_of = {length: scheme.budget(length) for length in np.unique(lengths).tolist()}
    budgets = np.array([budget_of[length] for length in lengths.tolist()])
    words = words_of_rows(word_starts, lengths)
    probs = clipped_geometric(scheme.p, scheme.max_words)
    cumulated = np.cumsum(probs)
    cumulated /= cumulated[-1]  # exactly 1 at the end, whatever the rounding

    if scheme.complete_words:
        masked, left = mask_words(words, budgets, cumulated, rng)
        for row in np.flatnonzero(left).tolist():
            own = words.of_row(row)
            span_masking.mask_words(words.sizes[own], left[row], probs, rng, masked[own])
        return words.tokens_of(masked).reshape(word_starts.shape)

    masked, left = mask_tokens(words, lengths, budgets, cumulated, rng)
    for row in np.flatnonzero(left).tolist():
        sizes, there = words.sizes[words.of_row(row)], masked[row, : lengths[row]]
        span_masking.mask_tokens(sizes, left[row], probs, rng, there)
    return masked


class Words(NamedTuple):
    """The words of all rows in one list. The padding of a row, if there is any, counts as one more
    word."""

    places: np.ndarray  # int [words], of their first tokens in the flattened batch
    sizes: np.ndarray  # int [words], in tokens
    begins: np.ndarray  # int [B], the first word of each row
    ends: np.ndarray  # int [B], one past its last word, without the padding

    def of_row(self, row: int) -> slice:
        """Where the words of one row stand, without its padding."""
        return slice(self.begins[row], self.ends[row])

    def tokens_of(self, masked: np.ndarray) -> np.ndarray:
        """Of words, bool [words], all tokens, bool [B·n]."""
        tokens = np.zeros(self.places[-1] + self.sizes[-1], dtype=bool)
        words = np.flatnonzero(masked)
        # the first tokens, then the second ones, …
        for token in range(np.max(self.sizes[words], initial=0)):
            tokens[self.places[words] + token] = True
            words = words[self.sizes[words] > token + 1]
        return tokens


def words_of_rows(word_starts: np.ndarray, lengths: np.ndarray) -> Words:
    """word_starts: bool [B,n], not empty; lengths: int [B], the real ones."""
    starts = word_starts.astype(bool)
    padded = np.flatnonzero(lengths < word_starts.shape[1])
    starts &= np.arange(word_starts.shape[1]) < lengths[:, None]
    starts[:, 0] = True
    starts[padded, lengths[padded]] = True
    places = np.flatnonzero(starts).astype(np.int32)  # half the memory to move
    ends = np.cumsum(np.count_nonzero(starts, axis=1))
    begins = np.append(0, ends[:-1])
    ends[padded] -= 1
    return Words(places, np.diff(places, append=np.int32(starts.size)), begins, ends)


def mask_words(
    words: Words, budgets: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The paper's mode: which words are masked, bool [words], and what is left of each budget, int
    [B].

    budgets: int [B], in tokens; cumulated: probabilities of at most 1, 2, … words, float
    [max_words].
    """
    firsts = draw_words(words.begins, words.ends, enough_draws(words, budgets, cumulated), rng)
    spans = draw_spans(firsts, words.ends, cumulated, rng)  # [B,draws,2]
    masked, left, cut, spans_to_cut = mask_affordable(words, spans, budgets)
    left[cut] -= mask_beginnings(masked, words.sizes, spans_to_cut, left[cut])
    rest = np.flatnonzero(left)
    firsts = draw_words(words.begins[rest], words.ends[rest], 16, rng)
    spans = draw_spans(firsts, words.ends[rest], cumulated, rng)
    left[rest] -= mask_first_that_fits(masked, words.sizes, spans, left[rest])
    return masked, left


def mask_tokens(
    words: Words, lengths: np.ndarray, budgets: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The released code's mode: which tokens are masked, bool [B,n], and what is left of each
    budget, int [B].

    lengths: int [B], the real ones; the others as in `mask_words`.
    """
    word_of_token = np.repeat(np.arange(len(words.sizes)), words.sizes)  # [B·n]
    draws = enough_draws(words, budgets, cumulated)
    # tokens, each equally likely
    anchors = (rng.random((len(lengths), draws)) * lengths[:, None]).astype(int)
    anchors += words.places[words.begins, None]
    spans = draw_spans(word_of_token[anchors], words.ends, cumulated, rng)  # [B,draws,2]
    masked, left, cut, spans_to_cut = mask_affordable(words, spans, budgets)
    tokens = words.tokens_of(masked)
    # of words, in tokens: a span of words is now one of tokens
    ends = np.append(words.places, len(tokens))
    sizes = np.ones(len(tokens), dtype=int)
    left[cut] -= mask_beginnings(tokens, sizes, ends[spans_to_cut], left[cut])
    return tokens.reshape(len(lengths), -1), left


def enough_draws(words: Words, budgets: np.ndarray, cumulated: np.ndarray) -> int:
    """A number of draws that spends the budgets of nearly all rows."""
    budget_in_words = budgets.max() * len(words.sizes) / words.sizes.sum()
    mean_length = (1 - cumulated).sum() + 1
    return int(1.3 * budget_in_words / mean_length) + 8


def draw_words(begins: np.ndarray, ends: np.ndarray, draws: int, rng: Generator) -> np.ndarray:
    """`draws` words of each row, each equally likely, int [B,draws]. begins, ends: int [B], of the
    rows."""
    words = rng.random((len(begins), draws)) * (ends - begins)[:, None]
    return begins[:, None] + words.astype(int)


def draw_spans(
    firsts: np.ndarray, ends: np.ndarray, cumulated: np.ndarray, rng: Generator
) -> np.ndarray:
    """Spans from these first words, int [B,draws], that stop at the ends of the rows, int [B]: int
    [B,draws,2]."""
    lengths = np.searchsorted(cumulated, rng.random(firsts.shape), side="right") + 1
    return np.stack([firsts, np.minimum(firsts + lengths, ends[:, None])], axis=2)


def mask_affordable(
    words: Words, spans: np.ndarray, budgets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Masks span after span, int [B,draws,2], as long as the budgets, int [B], pay for whole spans.

    Returns the masked words, bool [words]; what is left of the budgets, int [B]; the rows that have
    a span too dear, int [rows]; and the first such span of each, int [rows,2].
    """
    rows, draws, _ = spans.shape
    owner = first_span_of_words(spans.reshape(-1, 2), len(words.sizes))  # [words]
    owned = np.flatnonzero(owner < rows * draws)
    costs = np.bincount(owner[owned], weights=words.sizes[owned], minlength=rows * draws)
    costs = costs.reshape(rows, draws).astype(int)
    costs = np.cumsum(costs, axis=1)  # of each span and those before it
    affordable = costs <= budgets[:, None]  # [B,draws]
    masked = np.append(affordable, False)[owner]
    dear = np.flatnonzero(~affordable[:, -1])
    left = budgets - np.max(costs * affordable, axis=1)
    return masked, left, dear, spans[dear, np.argmin(affordable[dear], axis=1)]


def first_span_of_words(spans: np.ndarray, words: int) -> np.ndarray:
    """For each word the first span that masks it, or len(spans), int [words]. spans: int [m,2].

    A span whose first word is masked by an earlier span does not count.
    """
    spans = spans.astype(np.int32)  # half the memory to move
    sizes = spans[:, 1] - spans[:, 0]
    number = np.arange(len(spans), dtype=np.int32)
    # backwards, so that of several spans the first is written last
    span = np.repeat(number, sizes)[::-1]
    offsets = np.repeat(spans[:, 0] - np.cumsum(sizes, dtype=np.int32) + sizes, sizes)
    word = (np.arange(len(span), dtype=np.int32) + offsets)[::-1]
    counts = np.ones(len(spans), dtype=bool)
    before = np.zeros(0, dtype=bool)
    # the first k spans are right after k rounds; two or three are usual
    while not np.array_equal(counts, before):
        counted = counts[span]
        before = counts
        # + 1: an empty last row begins behind the last word
        owner = np.full(words + 1, len(spans), dtype=np.int32)
        owner[word[counted]] = span[counted]
        counts = owner[spans[:, 0]] >= number
    return owner[:-1]


def mask_first_that_fits(
    masked: np.ndarray, sizes: np.ndarray, spans: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Masks in each row the first of its spans, int [rows,draws,2], whose first word is free and
    fits, up to the last whole word that fits. masked: bool [words], written to; left: int [rows].
    Returns the costs, int [rows]; 0 where no span fits."""
    firsts = spans[..., 0]
    fits = ~masked[firsts] & (sizes[firsts] <= left[:, None])
    chosen = spans[np.arange(len(spans)), fits.argmax(axis=1)]
    # an empty span where none fits
    chosen[:, 1] = np.where(fits.any(axis=1), chosen[:, 1], chosen[:, 0])
    return mask_beginnings(masked, sizes, chosen, left)


def mask_beginnings(
    masked: np.ndarray, sizes: np.ndarray, spans: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """Masks one span in each of some rows, int [rows,2], up to the last whole word that fits; the
    rest as above.

    It takes tokens, too: as words of size 1.
    """
    words = spans[:, :1] + np.arange(np.max(spans[:, 1] - spans[:, 0], initial=0))  # [rows,longest]
    inside = words < spans[:, 1:]
    words = np.minimum(words, len(sizes) - 1)
    costs = np.cumsum(sizes[words] * (inside & ~masked[words]), axis=1)
    fits = inside & (costs <= left[:, None])
    masked[words[fits]] = True
    return np.max(costs * fits, axis=1, initial=0)
