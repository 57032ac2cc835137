"""Token and whole-word masking, and the 80/10/10 replacement."""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.bert.masking import TokenMasking, WholeWordMasking, corrupt
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of

MASK = 4


def released(ratio: float) -> SpanMasking:
    return SpanMasking(ratio, complete_words=False)


SCHEMES = [TokenMasking, WholeWordMasking, SpanMasking, released]
blocks = st.lists(st.booleans(), max_size=80).map(lambda starts: np.array(starts, dtype=bool))
ratios = st.integers(0, 100).map(lambda percent: percent / 100)
seeds = st.integers(0, 2**32 - 1)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_budget_has_no_floating_point_surprise():
    assert math.ceil(0.1 * 3 * 10) == 4  # what plain floats would give
    assert TokenMasking(0.3).budget(10) == 3
    assert TokenMasking(0.07).budget(100) == 7
    budgets = [TokenMasking().budget(n) for n in (0, 1, 6, 7, 20, 100, 128, 510)]
    assert budgets == [0, 1, 1, 2, 3, 15, 20, 77]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(block=blocks, ratio=ratios, seed=seeds)
def test_every_scheme_keeps_shape_type_and_budget(scheme, block, ratio, seed):
    before = block.copy()
    selected = scheme(ratio).select(block, generator(seed))
    assert selected.dtype == bool and selected.shape == block.shape
    assert selected.sum() <= math.ceil(Fraction(str(ratio)) * len(block))
    assert (block == before).all()


@given(block=blocks, ratio=ratios, seed=seeds)
def test_token_masking_meets_the_budget_exactly(block, ratio, seed):
    scheme = TokenMasking(ratio)
    assert scheme.select(block, generator(seed)).sum() == scheme.budget(len(block))


def words_of(block: np.ndarray, selected: np.ndarray) -> list[np.ndarray]:
    return np.split(selected, np.flatnonzero(block[1:]) + 1) if len(block) else []


@given(block=blocks, ratio=ratios, seed=seeds)
def test_whole_words_are_never_broken_and_what_fits_is_taken(block, ratio, seed):
    scheme = WholeWordMasking(ratio)
    selected = scheme.select(block, generator(seed))
    words = words_of(block, selected)
    assert all(word.all() or not word.any() for word in words)
    left = scheme.budget(len(block)) - selected.sum()
    assert all(len(word) > left for word in words if not word.any())


@pytest.mark.parametrize("scheme", SCHEMES)
@given(rows=st.lists(blocks, max_size=5), seed=seeds)
def test_a_batch_equals_its_rows_and_padding_is_never_chosen(scheme, rows, seed):
    lengths = np.array([len(row) for row in rows], dtype=int)
    # padding looks like words
    word_starts = np.ones((len(rows), max(lengths, default=0) + 3), dtype=bool)
    for row, block in enumerate(rows):
        word_starts[row, : len(block)] = block
    selected = scheme(0.3).select_batch(word_starts, lengths, generator(seed))
    assert selected.shape == word_starts.shape and selected.dtype == bool
    rng = generator(seed)
    for row, block in enumerate(rows):
        # span masking draws all rows at once: tests/test_span_masking_batch.py
        if scheme in (TokenMasking, WholeWordMasking):
            assert (selected[row, : len(block)] == scheme(0.3).select(block, rng)).all()
        assert not selected[row, len(block) :].any()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_same_seed_gives_the_same_choice(scheme):
    block = generator().random(200) < 0.7
    first, again = (scheme(0.15).select(block, generator(5)) for _ in range(2))
    assert (first == again).all()
    assert any(
        (scheme(0.15).select(block, generator(seed)) != first).any() for seed in range(6, 10)
    )


def test_whole_word_passes_over_a_word_that_is_too_long():
    # budget 2, the first word has 4 tokens
    block = np.array([True, False, False, False] + [True] * 6)
    draws = [WholeWordMasking().select(block, generator(seed)) for seed in range(200)]
    assert all(draw.sum() == 2 and not draw[:4].any() for draw in draws)
    assert np.mean(draws, axis=0)[4:] == pytest.approx([1 / 3] * 6, abs=0.1)
    assert not WholeWordMasking().select(block[:4], generator()).any()  # budget 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_seed_in_place_of_a_generator_is_named(scheme):
    block = np.ones(3, dtype=bool)
    with pytest.raises(InputError, match="rng is 0: give a generator"):
        scheme(0.15).select(block, 0)
    with pytest.raises(InputError, match="rng is <module 'random'.*: give a generator"):
        scheme(0.15).select_batch(block[None], np.array([3]), random)
    with pytest.raises(InputError, match="Half sets mask_ratio without effect"):
        type("Half", (TokenMasking,), {"mask_ratio": 0.5})()
    with pytest.raises(InputError, match="ids have shape .* and type object: give whole"):
        corrupt(None, block, generator(), mask_id=MASK, random_ids=RANDOM_IDS)


# --- corrupt ------------------------------------------------------------------------


def tokens(count: int) -> np.ndarray:
    """Original ids 100, 101, …; random tokens come from 5 … 99, so each token shows what happened
    to it."""
    return np.arange(100, 100 + count)


RANDOM_IDS = np.arange(5, 100)


def modes(ids: np.ndarray, corrupted: np.ndarray) -> np.ndarray:
    return np.where(corrupted == MASK, "mask", np.where(corrupted == ids, "keep", "random"))


@pytest.mark.parametrize("unit", ["token", "span"])
@given(selected=blocks, seed=seeds)
def test_only_chosen_tokens_change_and_a_new_array_comes_back(unit, selected, seed):
    ids = tokens(len(selected)).astype(np.int32)
    corrupted = corrupt(
        ids, selected, generator(seed), mask_id=MASK, random_ids=RANDOM_IDS, unit=unit
    )
    assert corrupted.dtype == ids.dtype and corrupted is not ids
    assert (ids == tokens(len(selected))).all()
    assert (corrupted[~selected] == ids[~selected]).all()
    assert np.isin(corrupted[selected & (corrupted != ids)], [MASK, *RANDOM_IDS]).all()


@given(
    selected=st.lists(st.lists(st.booleans(), min_size=40, max_size=40), min_size=1, max_size=6),
    seed=seeds,
)
def test_a_run_has_one_mode_and_runs_do_not_cross_rows(selected, seed):
    selected = np.array(selected)
    ids = tokens(selected.size).reshape(selected.shape)
    found = modes(ids, corrupt(ids, selected, generator(seed), mask_id=MASK, random_ids=RANDOM_IDS))
    for row in range(len(ids)):
        for first, last in spans_of(selected[row]):
            assert len(set(found[row, first : last + 1])) == 1


@pytest.mark.parametrize("unit", ["token", "span"])
def test_shares_are_80_10_10(unit):
    """Isolated tokens, so that a span is a token: binomial bounds of 4 standard errors."""
    draws = 20_000
    selected = np.arange(2 * draws) % 2 == 0
    ids = tokens(2 * draws)
    corrupted = corrupt(ids, selected, generator(2), mask_id=MASK, random_ids=RANDOM_IDS, unit=unit)
    counts = Counter(modes(ids, corrupted)[selected].tolist())
    for mode, share in {"mask": 0.8, "random": 0.1, "keep": 0.1}.items():
        assert counts[mode] / draws == pytest.approx(
            share, abs=4 * math.sqrt(share * (1 - share) / draws)
        )


def test_shares_per_token_inside_runs_and_per_run():
    runs = 8000
    length = 5
    selected = np.tile([True] * length + [False], runs)
    ids = tokens(len(selected))
    for unit, mixed in {"token": 1 - 0.8**5 - 2 * 0.1**5, "span": 0}.items():
        corrupted = corrupt(
            ids, selected, generator(3), mask_id=MASK, random_ids=RANDOM_IDS, unit=unit
        )
        found = modes(ids, corrupted)[selected].reshape(runs, length)
        assert (found != found[:, :1]).any(axis=1).mean() == pytest.approx(mixed, abs=0.025)
        assert (found[:, 0] == "mask").mean() == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / runs))


def test_random_tokens_follow_the_given_frequencies_each_token_by_itself():
    runs = 20_000
    ids = np.full((runs, 3), 50)
    selected = np.tile([True, True, False], (runs, 1))
    random_ids = np.repeat([7, 8, 9], [6, 3, 1])
    corrupted = corrupt(ids, selected, generator(4), mask_id=MASK, random_ids=random_ids)
    drawn = corrupted[:, :2][np.isin(corrupted[:, 0], [7, 8, 9])]
    for token, share in {7: 0.6, 8: 0.3, 9: 0.1}.items():
        error = math.sqrt(share * (1 - share) / drawn.size)
        assert (drawn == token).mean() == pytest.approx(share, abs=4 * error)
    assert (drawn[:, 0] != drawn[:, 1]).mean() == pytest.approx(1 - 0.36 - 0.09 - 0.01, abs=0.05)
