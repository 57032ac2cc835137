"""Masking of labeled spans: entities, noun phrases, collocations. Chapter:
`book/spanbert/name_ranks`.

Source: SpanBERT §6.1, whose Table 6 compares them with random spans; collocations: PMI-masking
(Levine and others, 2021). NumPy only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from spanbert_tutorial.bert.masking import Blocks, MaskingScheme, word_sizes
from spanbert_tutorial.errors import InputError

ENTITY = 1
NOUN_PHRASE = 2
COLLOCATION = 3
KINDS = {ENTITY: "entities", NOUN_PHRASE: "noun phrases", COLLOCATION: "collocations"}


@dataclass(frozen=True)
class LabeledMasking(MaskingScheme):
    """Whole labeled spans of one kind, and whole words.

    share: of the draws that take a labeled span while there are any, 0.5 in SpanBERT §6.1; the
    others take a word. None draws among all units alike, the labeled spans and the words outside
    of them (PMI-masking). Raises InputError for an unknown kind or a share that is none.
    """

    kind: int = ENTITY
    share: float | None = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS:
            raise InputError(f"the kind of spans is {self.kind!r}: use one of {sorted(KINDS)}.")
        if self.share is not None and not 0 <= self.share <= 1:
            raise InputError(f"share is {self.share}: give a number from 0 to 1, or None.")

    def check(self, labeled: np.ndarray) -> None:
        """Raises InputError for a text without spans of the kind. labeled: those of the corpus,
        int [m,3]."""
        if not (labeled[:, 2] == self.kind).any():
            raise InputError(
                f"the text has no labeled {KINDS[self.kind]}: take another objective, or label "
                f"them."
            )

    def select_blocks(self, blocks: Blocks, rng: np.random.Generator) -> np.ndarray:
        """See `MaskingScheme.select_blocks`. A unit that would push past the budget is passed over,
        and so is one that touches a chosen one."""
        masked = np.zeros(blocks.word_starts.shape, dtype=bool)
        spans = blocks.labeled[blocks.labeled[:, 3] == self.kind]
        for row, length in enumerate(blocks.lengths.tolist()):
            own = spans[spans[:, 0] == row, 1:3]
            words = words_of(blocks.word_starts[row, :length])
            self.choose(masked[row, :length], own, words, rng)
        return masked

    def choose(
        self, masked: np.ndarray, spans: np.ndarray, words: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Fills `masked`, bool [n], in place. spans, words: int [.,2], first and last token of
        each."""
        left = self.budget(len(masked))
        for first, last in self.in_turn(spans, words, rng):
            size = last - first + 1
            if size <= left and not masked[first : last + 1].any():
                masked[first : last + 1] = True
                left -= size
            if not left:
                return

    def in_turn(
        self, spans: np.ndarray, words: np.ndarray, rng: np.random.Generator
    ) -> Iterator[list[int]]:
        """The units in the order in which they are tried."""
        if self.share is None:
            inside = ((words[:, :1] >= spans[:, 0]) & (words[:, 1:] <= spans[:, 1])).any(axis=1)
            units = np.concatenate([spans, words[~inside]])
            yield from units[rng.permutation(len(units))].tolist()
            return
        waiting = [iter(rng.permutation(units).tolist()) for units in (words, spans)]
        for of_spans in rng.random(len(spans) + len(words)) < self.share:
            yield from (unit for unit in [next(waiting[int(of_spans)], None)] if unit)
        yield from chain(*reversed(waiting))


def words_of(word_starts: np.ndarray) -> np.ndarray:
    """First and last token of each word, int [words,2]."""
    sizes = word_sizes(word_starts)
    ends = np.cumsum(sizes)
    return np.stack([ends - sizes, ends - 1], axis=1)
