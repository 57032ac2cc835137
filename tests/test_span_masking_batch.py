"""All rows at once are the plain way, one span after another, in distribution.

The laws themselves are written down a second time here: a plain loop of the released rules
(`Trace`), and the exact probability of each mask of small blocks in both modes.
"""

import math
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from test_span_masking import Trace, broken_words, fixture

from spanbert_tutorial.bert.masking import word_sizes
from spanbert_tutorial.spanbert import span_masking_batch
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, spans_of

PAPER = SpanMasking()


def some_rows(rng, n=60, rows=40):
    """Blocks of different lengths, some empty, some that begin inside a word."""
    lengths = rng.integers(0, n + 1, rows)
    lengths[:3] = 0, n, 1
    return rng.random((rows, n)) < rng.uniform(0.2, 1, (rows, 1)), lengths


# --- the exact law of small blocks --------------------------------------------------


def exact_law(sizes, budget, law, complete_words):
    """Probability of each mask of a block, by the rules of a mode and without a draw. A mask: its
    tokens, as a set."""
    tokens = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])  # of each word
    word_of_token = np.repeat(np.arange(len(sizes)), sizes).tolist()

    @cache
    def law_from(masked):
        left = budget - len(masked)
        starts = [word for token, word in enumerate(word_of_token) if left and token not in masked]
        if complete_words:
            starts = [word for word in dict.fromkeys(starts) if sizes[word] <= left]
        found = Counter({} if starts else {masked: 1.0})
        for first, (length, share) in product(starts, enumerate(law, start=1)):
            grown = set(masked)
            for word in tokens[first : first + length]:
                fresh = [token for token in word.tolist() if token not in grown]
                if complete_words and len(fresh) > budget - len(grown):
                    break
                grown.update(fresh[: budget - len(grown)])
            for end, probability in law_from(frozenset(grown)).items():
                found[end] += probability * share / len(starts)
        return found

    return law_from(frozenset())


def assert_same_law(masks, law):
    """Chi-square of all masks against their probabilities, 5 standard deviations wide. masks: bool
    [rows,n]."""
    counts = Counter(frozenset(np.flatnonzero(mask).tolist()) for mask in masks)
    assert counts.keys() <= law.keys(), "a mask that the rules cannot give"
    expected = {mask: probability * len(masks) for mask, probability in law.items()}
    assert sum(law.values()) == pytest.approx(1)
    often = [mask for mask, count in expected.items() if count >= 5]
    pairs = [(counts[mask], expected[mask]) for mask in often]
    pairs.append(
        (
            sum(counts[m] for m in law.keys() - often),
            sum(expected[m] for m in law.keys() - often) + 1e-9,
        )
    )
    chi_square = sum((count - wanted) ** 2 / max(wanted, 1) for count, wanted in pairs)
    assert chi_square < len(pairs) + 5 * math.sqrt(2 * len(pairs))


SMALL = [[1, 3, 1, 2, 1, 1], [4, 1, 1, 1, 2, 2, 1], [2, 2, 2, 2], [1] * 8]  # sizes of words
SMALL_SETTINGS = {"mask_ratio": 0.5, "p": 0.3, "max_words": 4}


def small_batch(rows):
    """The small blocks in turn, of 9, 12, 8 and 8 tokens, padded."""
    word_starts = np.ones((rows, 12), dtype=bool)
    lengths = np.zeros(rows, dtype=int)
    for block, sizes in enumerate(SMALL):
        starts = np.isin(np.arange(sum(sizes)), np.cumsum(sizes) - sizes)
        word_starts[block :: len(SMALL), : len(starts)], lengths[block :: len(SMALL)] = (
            starts,
            len(starts),
        )
    word_starts[:, 0] = False  # the rest of a word is a word
    return word_starts, lengths


def assert_small_masks_have_the_exact_law(masks, lengths, complete_words):
    masking = SpanMasking(**SMALL_SETTINGS, complete_words=complete_words)
    law = clipped_geometric(0.3, 4)
    for block, sizes in enumerate(SMALL):
        right = exact_law(sizes, masking.budget(sum(sizes)), law.tolist(), complete_words)
        own = slice(block, None, len(SMALL))
        assert not masks[own, sum(sizes) :].any()
        assert_same_law(masks[own], right)


@pytest.mark.parametrize("complete_words", [True, False])
# few leave rows to the plain loop
@pytest.mark.parametrize("draws", ["one block alone", 1, 2, "as usual"])
def test_small_blocks_have_the_exact_law(complete_words, draws, monkeypatch):
    masking = SpanMasking(**SMALL_SETTINGS, complete_words=complete_words)
    rng = np.random.default_rng(1)
    word_starts, lengths = small_batch(20_000)
    if draws == "one block alone":
        masks = np.zeros_like(word_starts)
        for row, length in enumerate(lengths.tolist()):
            masks[row, :length] = masking.select(word_starts[row, :length], rng)
    else:
        if draws != "as usual":
            monkeypatch.setattr(span_masking_batch, "enough_draws", lambda *_: draws)
        masks = masking.select_batch(word_starts, lengths, rng)
    assert_small_masks_have_the_exact_law(masks, lengths, complete_words)


# --- larger blocks, in distribution -------------------------------------------------


def figures(blocks, masks):
    """What can be told of masks, each a count in a block: the places masked; runs by length in
    tokens and in words, by the size of the word they start in; the words broken. blocks, masks:
    bool [rows,n]."""
    # a free word after each block
    starts, selected = (
        np.pad(each, ((0, 0), (0, 1)), constant_values=end).ravel()
        for each, end in ((blocks, True), (masks, False))
    )
    word, (first, last) = np.cumsum(starts) - 1, spans_of(selected).T
    hidden = np.bincount(word, selected)
    size = np.bincount(word)
    broken = np.count_nonzero((hidden > 0) & (hidden < size)) / len(masks)
    counts = [
        np.bincount(each, minlength=200)[1:most] / len(masks)
        for each, most in (
            (last - first + 1, 16),
            (word[last] - word[first] + 1, 13),
            (size[word[first]], 5),
        )
    ]
    return np.concatenate([masks.mean(0), *counts, [broken]])


def assert_alike(found, right, rows):
    """No figure differs by 5 standard errors; of counts, at most Poisson's."""
    noise = np.sqrt(np.maximum(right, 1 / rows) * 2 / rows)
    assert (np.abs(found - right) < 5 * noise).all()


@cache
def larger_blocks():
    """4,000 blocks of 128 tokens, and their lengths."""
    return np.stack(fixture(4_000, 128)), np.full(4_000, 128)


@cache
def plain_figures(ratio):
    """Of the larger blocks, masked by a plain loop of the released rules."""
    blocks = larger_blocks()[0]
    rng = np.random.default_rng(5)
    return figures(blocks, np.stack([Trace(ratio).select(block, rng) for block in blocks]))


def assert_like_the_plain_loop(ratio, rng):
    blocks, lengths = larger_blocks()
    masks = SpanMasking(ratio, complete_words=False).select_batch(blocks, lengths, rng)
    assert (masks.sum(1) == math.ceil(ratio * 128)).all()
    assert_alike(figures(blocks, masks), plain_figures(ratio), len(blocks))


@pytest.mark.parametrize("ratio", [0.15, 0.5])
def test_released_masks_of_a_batch_are_like_those_of_the_plain_loop(ratio):
    assert_like_the_plain_loop(ratio, np.random.default_rng(0))


SETTINGS = [
    {},
    {"mask_ratio": 0.6},
    {"mask_ratio": 0.9, "p": 0.05, "max_words": 30},
    {"mask_ratio": 0.0},
    {"mask_ratio": 1.0},
    {"max_words": 1},
]


@pytest.mark.parametrize("complete_words", [True, False])
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_budget_is_spent_as_far_as_words_allow(settings, complete_words):
    masking = SpanMasking(**settings, complete_words=complete_words)
    rng = np.random.default_rng(0)
    word_starts, lengths = some_rows(rng, rows=400)
    masks = masking.select_batch(word_starts, lengths, rng)
    for starts, length, selected in zip(word_starts, lengths.tolist(), masks, strict=True):
        left = masking.budget(length) - selected.sum()
        assert left >= 0 and not selected[length:].any()
        sizes = word_sizes(starts[:length])
        hidden = np.add.reduceat(selected, np.cumsum(sizes) - sizes) if length else sizes
        broken = ((hidden > 0) & (hidden < sizes)).sum()
        if complete_words:
            assert not broken and (sizes[hidden == 0] > left).all()
        else:
            assert left == 0 and broken <= 1


def test_the_paper_s_masks_of_a_batch_are_like_those_of_the_plain_loop():
    blocks, lengths = larger_blocks()
    rng = np.random.default_rng(0)
    fast = PAPER.select_batch(blocks, lengths, rng)
    slow = np.stack([PAPER.select(block, rng) for block in blocks])
    assert_alike(figures(blocks, fast), figures(blocks, slow), len(blocks))
    assert fast.sum(1).max() <= 20 and not any(map(broken_words, blocks, fast))
    # budgets that cannot be spent
    assert abs((fast.sum(1) < 20).mean() - (slow.sum(1) < 20).mean()) < 0.03


def test_a_subclass_selects_in_its_own_way():
    class First(SpanMasking):
        def select(self, word_starts, rng):
            return np.arange(len(word_starts)) == 0

    masked = First().select_batch(np.ones((2, 5), dtype=bool), [5, 3], np.random.default_rng(0))
    assert masked.tolist() == [[True, *[False] * 4]] * 2
