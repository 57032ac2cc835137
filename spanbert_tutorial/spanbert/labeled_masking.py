"""Masking of labeled units, such as entities. Chapter:
`book/spanbert/name_ranks`.

Source: SpanBERT §6.1, whose Table 6 compares them with random spans.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from spanbert_tutorial.bert.masking import (
    Blocks,
    MaskingScheme,
    word_sizes,
)
from spanbert_tutorial.errors import is_number, require, shown

ENTITY = 1  # the kind of what has a name


def alternate(
    units: np.ndarray, words: np.ndarray, share: float, rng: Generator
) -> list[list[int]]:
    """Units and words in random order, a coin for each draw.

    units, words: int [.,2], first and last token of each. share: of
    the draws that take a unit, while there are any."""
    word_list = rng.permutation(words).tolist()
    unit_list = rng.permutation(units).tolist()
    order: list[list[int]] = []
    for toss in rng.random(len(units) + len(words)):
        waiting = unit_list if toss < share else word_list
        if waiting:
            order.append(waiting.pop(0))
    return order + unit_list + word_list


def mask_units(
    order: Iterable[list[int]], n: int, budget: int
) -> np.ndarray:
    """Each unit whole, in this order, until none fits: bool [n]."""
    masked = np.zeros(n, dtype=bool)
    for first, last in order:
        size = last - first + 1
        if size <= budget and not masked[first : last + 1].any():
            masked[first : last + 1] = True
            budget -= size
    return masked


@dataclass(frozen=True)
class LabeledMasking(MaskingScheme):
    """Whole labeled units of one kind, and whole words.

    kind: of the units, in `Blocks.labeled`. share: of the draws that
    take a unit while there are any, 0.5 in SpanBERT §6.1; the others
    take a word."""

    kind: int = ENTITY
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self.share)

    def check(self, labeled: np.ndarray) -> None:
        check_labeled(labeled, self.kind)

    def select_units(
        self, units: np.ndarray, word_starts: np.ndarray, rng: Generator
    ) -> np.ndarray:
        """Which tokens of one block are masked, bool [n].

        units: int [k,2], first and last token of each."""
        words, n = words_of(word_starts), len(word_starts)
        order = alternate(units, words, self.share, rng)
        return mask_units(order, n, self.budget(n))

    def select_blocks(
        self, blocks: Blocks, rng: Generator
    ) -> np.ndarray:
        """The same for a batch, bool [B,n]."""
        masked = np.zeros(blocks.word_starts.shape, dtype=bool)
        units = blocks.labeled[blocks.labeled[:, 3] == self.kind]
        for row, n in enumerate(blocks.lengths.tolist()):
            own = units[units[:, 0] == row, 1:3]
            starts = blocks.word_starts[row, :n]
            masked[row, :n] = self.select_units(own, starts, rng)
        return masked


def words_of(word_starts: np.ndarray) -> np.ndarray:
    """First and last token of each word, int [words,2]."""
    sizes = word_sizes(word_starts)
    ends = np.cumsum(sizes)
    return np.stack([ends - sizes, ends - 1], axis=1)


def check_share(share: float) -> None:
    """Raises InputError for a share that is none."""
    told = f"share is {shown(share)}: give a number from 0 to 1."
    require(is_number(share) and 0 <= share <= 1, told)


def check_labeled(labeled: np.ndarray, kind: int) -> None:
    """Raises InputError unless a corpus has such units, int [m,3]."""
    told = f"the text has no labeled units of kind {kind}: label some."
    require((labeled[:, 2] == kind).any(), told)
