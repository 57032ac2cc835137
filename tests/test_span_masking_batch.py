"""All rows at once are the plain way, one span after another: bit for bit with the same draws, and in distribution."""

import numpy as np
import pytest

from spanbert_tutorial import span_masking
from spanbert_tutorial.masking import word_sizes
from spanbert_tutorial.span_masking import SpanMasking, spans_of


def some_rows(rng, n=60, rows=40):
    """Blocks of different lengths, some empty, some that begin inside a word."""
    lengths = rng.integers(0, n + 1, rows)
    lengths[:3] = 0, n, 1
    return rng.random((rows, n)) < rng.uniform(0.2, 1, (rows, 1)), lengths


def mask(masked, sizes, first, end, left):
    """Word after word until one costs too much; returns what is left and whether the end was reached."""
    for word in range(first, end):
        cost = 0 if masked[word] else sizes[word]
        if cost > left:
            return left, False
        masked[word], left = True, left - cost
    return left, True


def plain(masking, word_starts, lengths, spans, more, rng):
    """Span after span, row after row. spans, more: what `draw_spans` drew, counted from the batch's first word."""
    selected, words_before, more = np.zeros_like(word_starts), 0, list(more)
    rows = []
    for row, length in enumerate(lengths.tolist()):
        sizes, left = word_sizes(word_starts[row, :length]), masking.budget(length)
        masked, whole = np.zeros(len(sizes), dtype=bool), True
        for first, end in (spans[row] - words_before).tolist():
            if whole and first < end and not masked[first]:
                left, whole = mask(masked, sizes, first, end, left)
        if left:  # one more span, from the draws that all such rows got
            for first, end in (more.pop(0) - words_before).tolist():
                if not masked[first] and sizes[first] <= left:
                    left, _ = mask(masked, sizes, first, end, left)
                    break
        rows.append((masked, sizes, left))
        words_before += len(sizes) + (length < word_starts.shape[1])
    for row, (masked, sizes, left) in enumerate(rows):
        if left:
            span_masking.spend(masked, sizes, left, masking._cumulated(), rng)
        selected[row, : lengths[row]] = np.repeat(masked, sizes)
    return selected


@pytest.mark.parametrize("masking", [SpanMasking(), SpanMasking(0.5), SpanMasking(0.9, p=0.05, max_words=30),
                                     SpanMasking(0.0), SpanMasking(1.0), SpanMasking(max_words=1)])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_draws_give_the_same_masks(masking, seed, monkeypatch):
    word_starts, lengths = some_rows(np.random.default_rng(seed))
    drawn, states, draw = [], [], span_masking.draw_spans

    def note(*arguments):
        drawn.append(draw(*arguments))
        states.append(arguments[-1].bit_generator.state)
        return drawn[-1]

    monkeypatch.setattr(span_masking, "draw_spans", note)
    fast = masking.select_batch(word_starts, lengths, np.random.default_rng(seed))
    rng = np.random.default_rng()
    rng.bit_generator.state = states[-1]
    np.testing.assert_array_equal(fast, plain(masking, word_starts, lengths, *drawn, rng))


def figures(masks):
    """What can be told of masks: share masked, share of each place masked, spans, and their lengths 1 to 12."""
    lengths = np.concatenate([np.diff(spans_of(row)).ravel() + 1 for row in masks])
    counts = np.bincount(lengths, minlength=200)[1:13] / len(masks)
    return np.concatenate([[masks.mean(), len(lengths) / len(masks)], masks.mean(0), counts])


def test_the_two_ways_have_the_same_law():
    rng, masking, rows = np.random.default_rng(0), SpanMasking(), 6_000
    one = rng.random(80) < 0.7
    blocks = np.tile(one, (rows, 1))
    fast = masking.select_batch(blocks, np.full(rows, 80), rng)
    slow = np.stack([masking.select(one, rng) for _ in range(rows)])
    gap = np.abs(figures(fast) - figures(slow))
    noise = np.sqrt(np.maximum(figures(slow), 1 / rows) * 2 / rows)  # of counts, at most Poisson's
    assert (gap < 5 * noise).all()
    assert fast.sum(1).max() <= masking.budget(80)
    assert abs((fast.sum(1) < 12).mean() - (slow.sum(1) < 12).mean()) < 0.03  # budgets that cannot be spent
