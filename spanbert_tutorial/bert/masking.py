"""Masked language modeling: which tokens are masked, and what the
model sees there. Chapter: `book/bert/masking`.

Source: BERT §3.1 and appendix A.1; whole words: SpanBERT §6.1. Blocks
come without [CLS] and [SEP], which are never masked.
"""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from spanbert_tutorial.errors import is_number, require, shown

# of [MASK] and of random tokens; the rest keeps the original token
CORRUPTION = 0.8, 0.1


class Blocks(NamedTuple):
    """What a scheme may look at.

    word_starts: bool [B,n]; lengths: int [B]; ids: int [B,n]; labeled:
    int [k,4], spans that the text labels, such as entities: (row,
    first, last, kind)."""

    word_starts: np.ndarray
    lengths: np.ndarray
    ids: np.ndarray
    labeled: np.ndarray


class MaskedBlocks(NamedTuple):
    """What masking hands on.

    ids: int [B,n], the original ones; corrupted: int [B,n], what the
    model sees; masked: bool [B,n], what it predicts; lengths: int
    [B]."""

    ids: np.ndarray
    corrupted: np.ndarray
    masked: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class MaskingScheme:
    """What all schemes share: a budget of ⌈mask_ratio · n⌉ tokens and
    the way through a batch."""

    mask_ratio: float = 0.15

    def __post_init__(self) -> None:
        ratio = self.mask_ratio
        told = f"mask_ratio is {shown(ratio)}: give a number between 0 and 1, such as 0.15."
        require(is_number(ratio) and 0 <= ratio <= 1, told)
        own = vars(type(self))
        for field in fields(self):
            name = field.name
            read = "__dataclass_fields__" in own or name not in own
            told = f"{type(self).__name__} sets {name} without effect: make it a dataclass."
            require(read, told)
            value = getattr(self, name)
            told = f"{name} is {shown(value)}: give True or False."
            known = type(value) is bool or field.type is not bool
            require(known, told)

    def budget(self, tokens: int) -> int:
        """⌈mask_ratio · tokens⌉. The ratio is the decimal that one
        writes: 0.3 of 10 tokens is 3, whatever floats make of it."""
        return math.ceil(Fraction(str(self.mask_ratio)) * tokens)

    def select(
        self, word_starts: np.ndarray, rng: Generator
    ) -> np.ndarray:
        """Which tokens of one block are masked, bool [n].

        word_starts: bool [n]; a block may begin inside a word."""
        raise NotImplementedError

    def select_batch(
        self,
        word_starts: np.ndarray,
        lengths: np.ndarray,
        rng: Generator,
    ) -> np.ndarray:
        """`select` for each row, bool [B,n]; padding is never masked.

        word_starts: bool [B,n]; lengths: int [B]."""
        word_starts = np.asarray(word_starts)
        lengths = np.asarray(lengths)
        check_draw(word_starts, rng, ndim=2)
        check_lengths(lengths, word_starts.shape)
        return select_rows(self, word_starts, lengths, rng)

    def select_blocks(
        self, blocks: Blocks, rng: Generator
    ) -> np.ndarray:
        """`select_batch`, for a scheme that looks at more than the
        starts of words."""
        starts, lengths = blocks.word_starts, blocks.lengths
        return self.select_batch(starts, lengths, rng)

    def check(self, labeled: np.ndarray) -> None:
        """Raises InputError for a text that lacks what the scheme
        looks for. labeled: spans of the corpus, [m,3]."""


@singledispatch
def select_rows(
    scheme: Any,
    word_starts: np.ndarray,
    lengths: np.ndarray,
    rng: Generator,
) -> np.ndarray:
    """What `select_batch` does once it has checked, row by row. A
    scheme may register a faster way: `spanbert/span_masking_batch`."""
    masked = np.zeros(word_starts.shape, dtype=bool)
    for row, length in enumerate(lengths.tolist()):
        masked[row, :length] = scheme.select(
            word_starts[row, :length], rng
        )
    return masked


@dataclass(frozen=True)
class TokenMasking(MaskingScheme):
    """Single tokens, each equally likely (BERT §3.1)."""

    def select(
        self, word_starts: np.ndarray, rng: Generator
    ) -> np.ndarray:
        """Which tokens of one block are masked, bool [n]."""
        check_draw(word_starts, rng)
        n = len(word_starts)
        masked = np.zeros(n, dtype=bool)
        masked[rng.choice(n, self.budget(n), replace=False)] = True
        return masked


@dataclass(frozen=True)
class WholeWordMasking(MaskingScheme):
    """All tokens of a word, words in random order (SpanBERT §6.1).

    A word that would exceed the budget is passed over."""

    def select(
        self, word_starts: np.ndarray, rng: Generator
    ) -> np.ndarray:
        """Which tokens of one block are masked, bool [n]."""
        check_draw(word_starts, rng)
        sizes = word_sizes(word_starts)
        budget = self.budget(len(word_starts))
        masked = np.zeros(len(sizes), dtype=bool)
        for word in rng.permutation(len(sizes)):
            if sizes[word] <= budget:
                masked[word] = True
                budget -= sizes[word]
        return np.repeat(masked, sizes)


def word_sizes(word_starts: np.ndarray) -> np.ndarray:
    """Tokens of each word, int [words].

    Tokens before the first start are a word, too."""
    starts = np.array(word_starts, dtype=bool)  # a copy
    starts[:1] = True
    return np.diff(np.flatnonzero(starts), append=len(starts))


def corrupt(
    ids: np.ndarray,
    masked: np.ndarray,
    rng: Generator,
    *,
    mask_id: int,
    random_ids: np.ndarray,
    unit: str = "span",
    probs: tuple[float, float] = CORRUPTION,
) -> np.ndarray:
    """What the model sees: 80% [MASK], 10% random, 10% kept.

    One draw a "token" (BERT §3.1) or a "span", a run of masked tokens
    (SpanBERT §3.1). ids: int [n] or [B,n]; masked: bool, likewise;
    random_ids: int [any], drawn with equal weight, so a stretch of the
    corpus gives its frequencies; probs: of [MASK] and of random tokens
    (others than 80/10/10: BERT appendix C.2). Returns a new array."""
    ids, masked = np.asarray(ids), np.asarray(masked)
    check_corruption(ids, masked, rng, random_ids, unit, probs)
    first = masked.copy()  # the first token of each unit
    if unit == "span":
        first[..., 1:] &= ~masked[..., :-1]

    positions = np.flatnonzero(masked)
    unit_of_token = np.cumsum(first.ravel()[positions]) - 1
    draws = rng.random(np.count_nonzero(first))[unit_of_token]
    as_mask = positions[draws < probs[0]]
    as_random = positions[
        (draws >= probs[0]) & (draws < probs[0] + probs[1])
    ]

    corrupted = ids.flatten()  # a copy
    corrupted[as_mask] = mask_id
    # each token has its own, which may equal the original
    drawn = rng.integers(len(random_ids), size=len(as_random))
    corrupted[as_random] = np.asarray(random_ids)[drawn]
    return corrupted.reshape(ids.shape)


def check_draw(
    word_starts: np.ndarray, rng: Generator, ndim: int = 1
) -> None:
    """Raises InputError unless `select` takes them."""
    check_generator(rng)
    check_flags("word_starts", np.asarray(word_starts), ndim)


def check_flags(name: str, found: np.ndarray, ndim: int) -> None:
    """Raises InputError unless they are bool, [n] or [B,n]."""
    wanted = "bool [n], one block" if ndim == 1 else "bool [B,n]"
    told = f"{name} has shape {found.shape} and type {found.dtype}: give {wanted}."
    truths = found.dtype == bool or not found.size
    require(found.ndim == ndim and truths, told)


def check_generator(rng: object) -> None:
    """Raises InputError for a seed in place of a generator."""
    told = f"rng is {shown(rng)}: give a generator, such as np.random.default_rng(0)."
    require(isinstance(rng, Generator), told)


def check_lengths(lengths: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raises InputError unless lengths [B] fit blocks [B,n]."""
    told = f"lengths {shown(lengths.tolist())} do not fit blocks of shape {shape}: give one a row."
    fit = lengths.shape == shape[:1] and (lengths <= shape[1]).all()
    require(fit, told)


def check_masked(masked: np.ndarray, ids: np.ndarray) -> None:
    """Raises InputError unless masked is bool, with ids' shape."""
    told = f"ids have shape {ids.shape} and type {ids.dtype}: give whole numbers, [n] or [B,n]."
    require(ids.ndim and (not ids.size or ids.dtype.kind in "iu"), told)
    check_flags("masked", masked, ids.ndim)
    told = f"masked has shape {masked.shape}: give {ids.shape}, as ids."
    require(masked.shape == ids.shape, told)


def check_corruption(
    ids: np.ndarray,
    masked: np.ndarray,
    rng: Generator,
    random_ids: np.ndarray,
    unit: str,
    probs: tuple[float, float],
) -> None:
    """Raises InputError unless `corrupt` takes them."""
    check_generator(rng)
    check_masked(masked, ids)
    told = f'unit is {shown(unit)}: give "span" or "token".'
    require(unit in ("span", "token"), told)
    told = f"probs are {shown(probs)}: give two from 0, together at most 1."
    require(min(probs) >= 0 and sum(probs) <= 1 + 1e-9, told)
    told = "random_ids are no list of ids: give at least one, in a flat list."
    require(np.ndim(random_ids) == 1 and len(random_ids), told)
