"""Span masking against the released code's measured distributions and the paper's statements."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, spans_of

blocks = st.lists(st.booleans(), max_size=80).map(lambda starts: np.array(starts, dtype=bool))
ratios = st.integers(0, 100).map(lambda percent: percent / 100)
seeds = st.integers(0, 2**32 - 1)
laws = st.sampled_from([0.1, 0.2, 1.0])
PAPER = SpanMasking()
RELEASED = SpanMasking(complete_words=False)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def words_of(block: np.ndarray, selected: np.ndarray) -> list[np.ndarray]:
    return np.split(selected, np.flatnonzero(block[1:]) + 1) if len(block) else []


def broken_words(block: np.ndarray, selected: np.ndarray) -> int:
    return sum(word.any() and not word.all() for word in words_of(block, selected))


# --- the law of lengths -------------------------------------------------------------


def test_the_law_is_the_exact_renormalised_one():
    numerators = [1953125, 1562500, 1250000, 1000000, 800000, 640000, 512000, 409600, 327680]
    numerators.append(262144)
    exact = [Fraction(numerator, 8717049) for numerator in numerators]
    assert sum(exact) == 1
    law = clipped_geometric()
    assert np.abs(law - [float(value) for value in exact]).max() < 1e-15
    mean = law @ np.arange(1, 11)
    assert mean == pytest.approx(33099485 / 8717049, abs=1e-12) and round(mean, 3) == 3.797
    assert law @ np.arange(1, 11) ** 2 - mean**2 == pytest.approx(6.5240006, abs=1e-6)


# --- maximal runs -------------------------------------------------------------------


@given(blocks)
def test_spans_are_the_maximal_runs(selected):
    spans = spans_of(selected)
    assert spans.shape == (len(spans), 2)
    rebuilt = np.zeros(len(selected), dtype=bool)
    for first, last in spans:
        assert not rebuilt[first : last + 1].any()
        rebuilt[first : last + 1] = True
        assert first == 0 or not selected[first - 1]
        assert last == len(selected) - 1 or not selected[last + 1]
    assert (rebuilt == selected).all()


# --- both modes ---------------------------------------------------------------------


@given(block=blocks, ratio=ratios, seed=seeds, p=laws, max_words=st.integers(1, 12))
def test_released_mode_meets_the_budget_exactly(block, ratio, seed, p, max_words):
    scheme = SpanMasking(ratio, p, max_words, complete_words=False)
    selected = scheme.select(block, generator(seed))
    assert selected.sum() == scheme.budget(len(block))
    assert broken_words(block, selected) <= 1  # only the word where the budget ran out


@given(block=blocks, ratio=ratios, seed=seeds, p=laws, max_words=st.integers(1, 12))
def test_paper_mode_never_breaks_a_word_and_stops_only_when_none_fits(
    block, ratio, seed, p, max_words
):
    scheme = SpanMasking(ratio, p, max_words)
    selected = scheme.select(block, generator(seed))
    left = scheme.budget(len(block)) - selected.sum()
    assert left >= 0 and broken_words(block, selected) == 0
    assert all(len(word) > left for word in words_of(block, selected) if not word.any())


def test_paper_mode_wastes_at_most_a_word():
    unspent = [
        PAPER.budget(128) - PAPER.select(block, generator(1)).sum() for block in fixture(500, 128)
    ]
    assert max(unspent) <= 3 and np.mean(unspent) < 0.05


@pytest.mark.parametrize("scheme", [PAPER, RELEASED])
def test_edge_blocks(scheme):
    nothing = SpanMasking(0, complete_words=scheme.complete_words)
    assert scheme.select(np.zeros(0, dtype=bool), generator()).shape == (0,)
    assert scheme.select(np.array([True]), generator()).tolist() == [True]  # ⌈0.15⌉ = 1
    # a word's rest is a word
    assert scheme.select(np.array([False]), generator()).tolist() == [True]
    assert not nothing.select(np.ones(40, dtype=bool), generator()).any()
    everything = SpanMasking(1, complete_words=scheme.complete_words)
    assert everything.select(np.ones(40, dtype=bool), generator()).all()


def test_a_word_longer_than_the_budget():
    block = np.array([True] + [False] * 9)  # one word of 10 tokens, budget 2
    assert not PAPER.select(block, generator()).any()
    # broken, from the word's start
    assert spans_of(RELEASED.select(block, generator())).tolist() == [[0, 1]]
    mixed = np.array([True] + [False] * 9 + [True] * 10)  # budget 3
    for seed in range(50):
        selected = PAPER.select(mixed, generator(seed))
        assert selected.sum() == 3 and not selected[:10].any()


# --- released mode against the measured statistics (10,000 blocks of 128 and of 510 tokens) ---


@cache
def fixture(rows: int, tokens: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Blocks of words of 1 to 4 tokens, 1.37 a word; 1.69 when a word is drawn through its tokens.

    Of the measured blocks only "about 1.35" is known. With 1.345 all counts in words agree as they
    do here, and those in tokens come out 2 % lower.
    """
    rng = generator(seed)
    made = []
    for _ in range(rows):
        sizes = rng.choice([1, 2, 3, 4], p=[0.72, 0.205, 0.06, 0.015], size=tokens)
        block = np.zeros(sizes.sum(), dtype=bool)
        block[np.cumsum(sizes) - sizes] = True
        made.append(block[:tokens])
    return tuple(made)


@dataclass
class Trace:
    """Every draw of an independent, plain version of the released algorithm, one token at a
    time."""

    ratio: float = 0.15
    drawn: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    rejected: int = 0

    def select(self, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        law = np.cumsum(clipped_geometric())
        law /= law[-1]
        starts = block.tolist()
        chosen = set()
        budget = math.ceil(len(block) * self.ratio)
        is_start = [True, *starts[1:]]
        while len(chosen) < budget:
            length = int((law <= rng.random()).sum()) + 1
            position = int(rng.integers(len(block)))
            if position in chosen:
                self.rejected += 1
                continue
            while not is_start[position]:
                position -= 1
            words = 0
            walked = 0
            while position < len(block) and len(chosen) < budget:
                words += is_start[position]
                if words > length:
                    break
                chosen.add(position)
                position = position + 1
                walked = walked + 1
            self.drawn.append(length)
            self.tokens.append(walked)
        selected = np.zeros(len(block), dtype=bool)
        selected[list(chosen)] = True
        return selected


@given(block=blocks, seed=seeds)
def test_released_mode_equals_the_plain_algorithm(block, seed):
    assert (RELEASED.select(block, generator(seed)) == Trace().select(block, generator(seed))).all()


@cache
def measured(tokens: int, rows: int) -> dict[str, float | np.ndarray]:
    rng = generator(11)
    trace = Trace()
    data = fixture(rows, tokens)
    chosen = [trace.select(block, rng) for block in data[: rows // 4]]
    chosen += [RELEASED.select(block, rng) for block in data[rows // 4 :]]
    fused = [spans_of(selected) for selected in chosen]
    spans = np.concatenate(fused)
    words = [
        len(np.unique(np.cumsum(np.r_[True, block[1:]])[first : last + 1]))
        for block, runs in zip(data, fused, strict=True)
        for first, last in runs
    ]
    at_the_edge = [(runs[:, 0] == 0) | (runs[:, 1] == tokens - 1) for runs in fused]
    return {
        "masked share": np.mean(chosen),
        "drawn words": np.mean(trace.drawn),
        "realized tokens": np.mean(trace.tokens),
        "rejected": trace.rejected / (rows // 4),
        "accepted": len(trace.drawn) / (rows // 4),
        "fused spans": len(spans) / rows,
        "fused tokens": np.mean(spans[:, 1] - spans[:, 0] + 1),
        "fused words": np.mean(words),
        "broken blocks": np.mean(
            [broken_words(b, s) > 0 for b, s in zip(data, chosen, strict=True)]
        ),
        "at the edge": np.concatenate(at_the_edge).mean(),
        "by position": np.mean(chosen, axis=0),
    }


@pytest.mark.parametrize(
    "name, expected, tolerance",
    # About 4 standard errors of 4,000 blocks (of 1,000 for drawn, realized, accepted, rejected).
    [
        ("masked share", 0.15625, 1e-12),
        ("drawn words", 3.797, 0.16),
        ("realized tokens", 4.612, 0.20),
        ("accepted", 4.440, 0.20),
        ("rejected", 0.320, 0.09),
        ("fused spans", 4.110, 0.10),
        ("fused tokens", 4.867, 0.12),
        ("fused words", 3.390, 0.10),
        ("broken blocks", 0.312, 0.035),
        ("at the edge", 0.048, 0.008),
    ],
)
def test_released_statistics_at_128_tokens(name, expected, tolerance):
    assert measured(128, 4000)[name] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    "name, expected, tolerance",
    [
        ("masked share", 0.150980, 1e-6),
        ("realized tokens", 5.273, 0.25),
        ("fused spans", 13.755, 0.35),
        ("fused tokens", 5.598, 0.15),
        ("fused words", 3.851, 0.10),
        ("broken blocks", 0.296, 0.065),
    ],
)
def test_released_statistics_at_510_tokens(name, expected, tolerance):
    assert measured(510, 1000)[name] == pytest.approx(expected, abs=tolerance)


def test_first_tokens_are_masked_less_often_in_both_modes():
    by_position = measured(128, 4000)["by position"]
    assert by_position[0] == pytest.approx(0.053, abs=4 * math.sqrt(0.053 * 0.947 / 4000))
    assert by_position[10:120].mean() == pytest.approx(0.165, abs=0.01)
    assert (np.diff(by_position[[0, 2, 4, 8]]) > 0).all()
    rng = generator(12)
    paper = np.mean([PAPER.select(block, rng) for block in fixture(4000, 128)], axis=0)
    assert paper[0] == pytest.approx(0.05, abs=0.02) and paper[12:110].mean() > 0.15


def test_paper_mode_breaks_no_word_where_the_released_one_breaks_thirty_percent():
    rng = generator(13)
    data = fixture(4000, 128)
    assert not any(broken_words(block, PAPER.select(block, rng)) for block in data[:2000])
    assert measured(128, 4000)["broken blocks"] > 0.27


# --- the chapter's exercises --------------------------------------------------------
