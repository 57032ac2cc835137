"""Token and whole-word masking, and the 80/10/10 replacement."""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.bert.masking import TokenMasking, WholeWordMasking, corrupt, word_sizes
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.exercises.masking import check_corrupt
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of

MASK = 4


def released(ratio: float) -> SpanMasking:
    return SpanMasking(ratio, complete_words=False)


SCHEMES = [TokenMasking, WholeWordMasking, SpanMasking, released]
blocks = st.lists(st.booleans(), max_size=80).map(lambda starts: np.array(starts, dtype=bool))
ratios = st.integers(0, 100).map(lambda percent: percent / 100)
seeds = st.integers(0, 2**32 - 1)
NAN = float("nan")
INFINITE = float("inf")


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.integers(0, 2048), st.integers(0, 1000))
def test_budget_is_the_ceiling_of_the_decimal_ratio(tokens, thousandths):
    assert TokenMasking(thousandths / 1000).budget(tokens) == -(-thousandths * tokens // 1000)


def test_budget_has_no_floating_point_surprise():
    assert math.ceil(0.1 * 3 * 10) == 4  # what plain floats would give
    assert TokenMasking(0.3).budget(10) == 3
    assert TokenMasking(0.07).budget(100) == 7
    assert [TokenMasking().budget(n) for n in (0, 1, 6, 7, 20, 100, 128, 510)] == [
        0,
        1,
        1,
        2,
        3,
        15,
        20,
        77,
    ]


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
    word_starts = np.ones(
        (len(rows), max(lengths, default=0) + 3), dtype=bool
    )  # padding looks like words
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


def test_word_sizes_count_a_beginning_inside_a_word():
    assert word_sizes(np.array([False, False, True, False, True])).tolist() == [2, 2, 1]
    assert word_sizes(np.array([True])).tolist() == [1]
    assert word_sizes(np.array([])).tolist() == []


def test_whole_word_passes_over_a_word_that_is_too_long():
    block = np.array(
        [True, False, False, False] + [True] * 6
    )  # budget 2, the first word has 4 tokens
    draws = [WholeWordMasking().select(block, generator(seed)) for seed in range(200)]
    assert all(draw.sum() == 2 and not draw[:4].any() for draw in draws)
    assert np.mean(draws, axis=0)[4:] == pytest.approx([1 / 3] * 6, abs=0.1)
    assert not WholeWordMasking().select(block[:4], generator()).any()  # budget 1


@pytest.mark.parametrize("scheme", [TokenMasking, WholeWordMasking])
def test_every_position_is_equally_likely(scheme):
    block = np.ones(100, dtype=bool)
    draws = 4000
    counts = sum(scheme().select(block, rng) for rng in [generator(1)] for _ in range(draws))
    error = math.sqrt(0.15 * 0.85 / draws)
    assert np.abs(counts / draws - 0.15).max() < 4.5 * error  # the largest of 100 positions


@pytest.mark.parametrize("ratio", [-0.1, 1.01, 15, float("nan"), "0.15", None])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_ratio_out_of_range_is_named(scheme, ratio):
    with pytest.raises(InputError, match="mask_ratio is .*try 0.15"):
        scheme(ratio)


def test_wrong_shapes_are_named():
    with pytest.raises(InputError, match="select_batch"):
        TokenMasking().select(np.ones((2, 3), dtype=bool), generator())
    with pytest.raises(InputError, match="type int64: give bool"):
        WholeWordMasking().select(np.array([7, 8, 9]), generator())  # token ids by mistake
    with pytest.raises(InputError, match="give 2 whole numbers, one a row"):
        TokenMasking().select_batch(np.ones((2, 3), dtype=bool), np.array([3]), generator())
    with pytest.raises(InputError, match="between 0 and 3"):
        TokenMasking().select_batch(np.ones((2, 3), dtype=bool), np.array([3, 4]), generator())


@pytest.mark.parametrize("lengths", [[3.0], [2.5], ["3"], [None], [True], [NAN], [2**64]])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_lengths_that_are_not_whole_are_named(scheme, lengths):
    with pytest.raises(InputError, match="lengths"):
        scheme(0.15).select_batch(np.ones((1, 3), dtype=bool), lengths, generator())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_seed_in_place_of_a_generator_is_named(scheme):
    for draw in (
        lambda: scheme(0.15).select(np.ones(3, dtype=bool), 0),
        lambda: scheme(0.15).select_batch(np.ones((1, 3), dtype=bool), np.array([3]), 0),
    ):
        with pytest.raises(InputError, match="rng is 0: give a generator"):
            draw()


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_whole_lengths_of_any_width_give_the_same(scheme, kind):
    starts = np.ones((3, 40), dtype=bool)
    lengths = np.array([40, 0, 7])
    wanted = scheme(0.3).select_batch(starts, lengths, generator())
    assert (scheme(0.3).select_batch(starts, lengths.astype(kind), generator()) == wanted).all()


@pytest.mark.parametrize("starts", [[1, 0], [1.0, 0.0], ["a", "b"], [None, True]])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_block_of_something_else_is_named(scheme, starts):
    with pytest.raises(InputError, match="word_starts"):
        scheme(0.15).select(starts, generator())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_batch_of_token_ids_by_mistake_is_named(scheme):
    with pytest.raises(InputError, match="int64: give bool .*True where a token begins a word"):
        scheme(0.15).select_batch(np.array([[7, 8, 9]]), np.array([3]), generator())


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


def test_rows_draw_apart_even_where_runs_meet_at_the_edge():
    ids = tokens(4000).reshape(2000, 2)
    selected = np.ones((2000, 2), dtype=bool)
    found = modes(ids, corrupt(ids, selected, generator(), mask_id=MASK, random_ids=RANDOM_IDS))
    assert (found[:, 0] == found[:, 1]).all()
    assert any(one != two for one, two in pairwise(found[:, 0]))


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


@pytest.mark.parametrize("shares", [(1, 0), (0, 1), (0, 0), (0.8, 0.2), (0.8, 0), (0.3, 0.7)])
def test_other_shares_can_be_asked_for(shares):
    """0.3 + 0.7 and its like must pass, whatever floats make of their sum."""
    draws = 20_000
    selected = np.arange(2 * draws) % 2 == 0
    options = {"mask_id": MASK, "random_ids": RANDOM_IDS, "unit": "token", "probs": shares}
    counts = Counter(
        modes(tokens(2 * draws), corrupt(tokens(2 * draws), selected, generator(2), **options))[
            selected
        ]
    )
    for mode, share in zip(("mask", "random", "keep"), (*shares, 1 - sum(shares)), strict=True):
        assert counts[mode] / draws == pytest.approx(
            share, abs=4 * math.sqrt(abs(share * (1 - share)) / draws)
        )


@pytest.mark.parametrize(
    "shares",
    [
        (0.9, 0.2),
        (-0.1, 0.5),
        (0.5, -0.1),
        (1, 1),
    ],
)
def test_shares_beyond_1_or_below_0_are_refused(shares):
    options = {"mask_id": MASK, "random_ids": RANDOM_IDS, "probs": shares}
    with pytest.raises(InputError, match="together at most 1"):
        corrupt(tokens(3), np.ones(3, dtype=bool), generator(), **options)


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


def test_a_random_token_may_equal_the_original():
    ids = np.full(50, 6)
    selected = np.ones(50, dtype=bool)
    corrupted = corrupt(
        ids, selected, generator(), mask_id=MASK, random_ids=np.array([6]), unit="token"
    )
    assert set(corrupted.tolist()) == {MASK, 6}


def test_nothing_chosen_and_nothing_there():
    for ids in (tokens(3), tokens(0), tokens(0).reshape(0, 4), tokens(0).reshape(2, 0)):
        selected = np.zeros(ids.shape, dtype=bool)
        assert (
            corrupt(ids, selected, generator(), mask_id=MASK, random_ids=RANDOM_IDS) == ids
        ).all()


def test_bad_input_is_named():
    ids = tokens(3)
    selected = np.ones(3, dtype=bool)
    with pytest.raises(InputError, match="unit is 'word': use"):
        corrupt(ids, selected, generator(), mask_id=MASK, random_ids=RANDOM_IDS, unit="word")
    with pytest.raises(InputError, match="must be the same"):
        corrupt(ids, selected[:2], generator(), mask_id=MASK, random_ids=RANDOM_IDS)
    with pytest.raises(InputError, match="not empty"):
        corrupt(ids, selected, generator(), mask_id=MASK, random_ids=np.array([], dtype=int))
    with pytest.raises(InputError, match="masked holds int64: give True where"):
        corrupt(ids, np.array([0, 1, 0]), generator(), mask_id=MASK, random_ids=RANDOM_IDS)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"ids": [1.5, 2, 3]}, "ids holds float64"),
        ({"ids": [[1, 2, 3]]}, "ids has shape"),
        ({"masked": [0, 5, 0]}, "masked holds int64"),
        ({"random_ids": 7}, "random_ids has shape"),
        ({"rng": 0}, "rng is 0: give a generator"),
    ],
)
def test_arrays_that_hold_something_else_are_named(wrong, message):
    given = {
        "ids": [1, 2, 3],
        "masked": [True, False, True],
        "mask_id": MASK,
        "random_ids": RANDOM_IDS,
        "rng": generator(),
    }
    with pytest.raises(InputError, match=message):
        corrupt(**given | wrong)


# --- the chapter's exercise ---------------------------------------------------------


def by_shares(masked: float, random: float, *, in_place=False, everywhere=False, one_token=False):
    """An attempt with other shares, or with one of the mistakes."""

    def attempt(ids, selected, rng, mask_id, random_ids):
        made = ids if in_place else ids.copy()
        draw = rng.random(len(ids))
        where = np.ones(len(ids), dtype=bool) if everywhere else selected
        replaced = where & (draw >= masked) & (draw < masked + random)
        made[where & (draw < masked)] = mask_id
        made[replaced] = random_ids[0] if one_token else rng.choice(random_ids, replaced.sum())
        return made

    return attempt


def drawn_independently(ids, selected, rng, mask_id, random_ids):
    unchanged = rng.random(len(ids)) < 0.1
    random = rng.random(len(ids)) < 0.1
    made = np.where(random, rng.choice(random_ids, len(ids)), np.where(unchanged, ids, mask_id))
    return np.where(selected, made, ids)


def token_by_token(ids, selected, rng, mask_id, random_ids):
    made = ids.copy()
    for place in np.flatnonzero(selected):
        draw = rng.random()
        made[place] = (
            mask_id if draw < 0.8 else rng.choice(random_ids) if draw < 0.9 else ids[place]
        )
    return made


def exact_counts(ids, selected, rng, mask_id, random_ids):
    places = rng.permutation(np.flatnonzero(selected))
    made = ids.copy()
    tenth = len(places) // 10
    made[places[2 * tenth :]] = mask_id
    made[places[:tenth]] = rng.choice(random_ids, tenth)
    return made


def one_draw_for_the_block(ids, selected, rng, mask_id, random_ids):
    draw = rng.random()
    shown = (
        np.full(len(ids), mask_id)
        if draw < 0.8
        else rng.choice(random_ids, len(ids))
        if draw < 0.9
        else ids
    )
    return np.where(selected, shown, ids)


def random_over_masks(ids, selected, rng, mask_id, random_ids):
    draw = rng.random(len(ids))
    made = np.where(selected & (draw < 0.8), mask_id, ids)
    return np.where(selected & (draw < 0.9), rng.choice(random_ids, len(ids)), made)


def random_by_a_second_draw(ids, selected, rng, mask_id, random_ids):
    made = np.where(selected & (rng.random(len(ids)) < 0.8), mask_id, ids)
    return np.where(selected & (rng.random(len(ids)) < 0.1), rng.choice(random_ids, len(ids)), made)


@pytest.mark.parametrize(
    "attempt, says",
    [
        (by_shares(0.8, 0.1), "Correct: 8"),
        (token_by_token, "Correct: 8"),
        (exact_counts, "Correct: 8"),
        (one_draw_for_the_block, "one draw decided for all"),
        (random_over_masks, "replaced the"),
        (random_by_a_second_draw, r"in place of some \[MASK\]s"),
        (lambda ids, *given: ids.copy(), "nothing was replaced yet"),
        (drawn_independently, "drawn independently"),
        (by_shares(1, 0), r"every selected token became \[MASK\]"),
        (by_shares(0.8, 0.2), "no selected token kept"),
        (by_shares(0.8, 0), "no selected token was replaced"),
        (by_shares(0.8, 0.02), "cut the remaining 20% at 0.1"),
        (by_shares(0.1, 0.1), "are swapped"),
        (by_shares(0.5, 0.25), "should be 80/10/10"),
        (by_shares(0.8, 0.1, in_place=True), "changed in place"),
        (by_shares(0.8, 0.1, everywhere=True), "not selected have changed"),
        (by_shares(0.8, 0.1, one_token=True), "are the same"),
        (lambda *given: None, "returns nothing"),
        (lambda ids, *given: ids[:5], r"shape \(5,\) came out"),
        (
            lambda ids, s, rng, mask, _: by_shares(0.8, 0.1)(
                ids, s, rng, mask, np.arange(200, 210)
            ),
            "do not come from",
        ),
    ],
)
def test_the_check_names_the_mistake(attempt, says, capsys):
    check_corrupt(attempt)
    printed = capsys.readouterr().out
    assert re.search(says, " ".join(printed.split())) and max(map(len, printed.splitlines())) <= 72
