"""Masked language modelling: which pieces are chosen, what the model sees. Chapter: `book/bert/masking`.

Source: BERT §3.1 and appendix A.1; whole words: SpanBERT §6.1. NumPy only.

All arrays describe blocks WITHOUT [CLS] and [SEP]. These two are added after masking, so they can never be
masked.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.errors import InputError

SHARES = 0.8, 0.1  # of [MASK] and of random tokens; the rest, 0.1, keeps the original token


class Blocks(NamedTuple):
    """What a scheme may look at to choose: word_starts: bool [B,n]; lengths: int [B], real lengths; ids: int [B,n];
    labelled: int [k,4], spans that the text names by their kind, such as entities: (row, first, last, kind)."""

    word_starts: np.ndarray
    lengths: np.ndarray
    ids: np.ndarray
    labelled: np.ndarray


class MaskedBlocks(NamedTuple):
    """What masking hands on: ids: int [B,n], the original ones; corrupted: int [B,n], what the model sees; selected:
    bool [B,n], what it has to predict; lengths: int [B], real lengths."""

    ids: np.ndarray
    corrupted: np.ndarray
    selected: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class MaskingScheme:
    """What all schemes share: the budget of ⌈mask_ratio · n⌉ pieces and the way through a batch.

    Raises InputError when `mask_ratio` is not between 0 and 1.
    """

    mask_ratio: float = 0.15

    def __post_init__(self) -> None:
        if not 0 <= self.mask_ratio <= 1:
            raise InputError(f"mask_ratio is {self.mask_ratio}, but a share lies between 0 and 1: try 0.15.")

    def budget(self, pieces: int) -> int:
        """⌈mask_ratio · pieces⌉, an int.

        The ratio is read as the decimal that one writes: 0.3 of 10 pieces is 3, whatever floats make of it.
        """
        return math.ceil(Fraction(str(self.mask_ratio)) * pieces)

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Chooses the pieces of one block that the model has to predict.

        word_starts: bool [n], whether a piece begins a word; a block may begin inside one. Returns bool [n].
        """
        raise NotImplementedError

    def select_batch(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """`select` for each row. Padding is never chosen.

        word_starts: bool [B,n]; lengths: int [B], real lengths. Returns bool [B,n].
        Raises InputError when the shapes do not fit together, or for numbers (token ids) in place of booleans.
        """
        word_starts, lengths = np.asarray(word_starts), np.asarray(lengths)
        if word_starts.ndim != 2 or lengths.shape != word_starts.shape[:1]:
            raise InputError(
                f"word_starts has shape {word_starts.shape} and lengths {lengths.shape}: give [B,n] and [B]."
            )
        if word_starts.dtype != bool and word_starts.size:
            raise InputError(
                f"word_starts holds numbers of {word_starts.dtype}: pass True where a piece begins a word, else False."
            )
        if ((lengths < 0) | (lengths > word_starts.shape[1])).any():
            raise InputError(f"lengths {lengths.tolist()} must lie between 0 and {word_starts.shape[1]}.")
        return self.select_rows(word_starts, lengths, rng)

    def check(self, labelled: np.ndarray) -> None:
        """Raises InputError for a text that lacks what the scheme looks for. labelled: spans of the corpus, [m,3]."""

    def select_blocks(self, blocks: Blocks, rng: np.random.Generator) -> np.ndarray:
        """`select_batch`, for a scheme that needs more than the starts of words. Returns bool [B,n]."""
        return self.select_batch(blocks.word_starts, blocks.lengths, rng)

    def select_rows(self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What `select_batch` does once it has checked; a scheme may know a faster way."""
        selected = np.zeros(word_starts.shape, dtype=bool)
        for row, length in enumerate(lengths.tolist()):
            selected[row, :length] = self.select(word_starts[row, :length], rng)
        return selected


@dataclass(frozen=True)
class TokenMasking(MaskingScheme):
    """BERT's first masking: single pieces, each equally likely (BERT §3.1)."""

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """⌈mask_ratio · n⌉ pieces without replacement; see `MaskingScheme.select`."""
        pieces = len(checked_word_starts(word_starts))
        selected = np.zeros(pieces, dtype=bool)
        selected[rng.choice(pieces, self.budget(pieces), replace=False)] = True
        return selected


@dataclass(frozen=True)
class WholeWordMasking(MaskingScheme):
    """All pieces of a chosen word; words are tried in random order (SpanBERT §6.1, "whole words")."""

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A word that would push past the budget is passed over; see `MaskingScheme.select`."""
        sizes = word_sizes(word_starts)
        chosen, left = np.zeros(len(sizes), dtype=bool), self.budget(len(word_starts))
        pieces_of = sizes.tolist()
        for word in rng.permutation(len(sizes)).tolist():
            if pieces_of[word] <= left:
                chosen[word] = True
                left -= pieces_of[word]
            if left == 0:
                break
        return np.repeat(chosen, sizes)


def checked_word_starts(word_starts: np.ndarray) -> np.ndarray:
    """The block as a bool [n] array. Raises InputError for another shape, or for numbers (token ids)."""
    block = np.asarray(word_starts)
    if block.ndim != 1 or (block.dtype != bool and block.size):
        raise InputError(
            f"word_starts must be one block of booleans, got shape {block.shape} of {block.dtype}: "
            "pass True where a piece begins a word, or use select_batch for several blocks."
        )
    return block.astype(bool)


def word_sizes(word_starts: np.ndarray) -> np.ndarray:
    """Pieces of each word, int [words]. The pieces before the first start form a word, too."""
    starts = checked_word_starts(word_starts).copy()
    starts[:1] = True
    return np.diff(np.flatnonzero(starts), append=len(starts))


def corrupt(
    ids: np.ndarray,
    selected: np.ndarray,
    rng: np.random.Generator,
    *,
    mask_id: int,
    random_ids: np.ndarray,
    unit: str = "span",
    shares: tuple[float, float] = SHARES,
) -> np.ndarray:
    """What the model sees: [MASK] for 80 % of the units, random tokens for 10 %, the original ones for 10 %.

    ids: int [n] or [B,n]; selected: bool of the same shape. random_ids: int [any], drawn from with equal
    weight, so that a stretch of the corpus gives the corpus's frequencies. unit: "token" draws for each token
    alone (BERT §3.1), "span" once for each maximal run of chosen tokens (SpanBERT §3.1); runs never cross
    rows. In a unit replaced by random tokens each token has its own draw, which may equal the original.
    shares: of [MASK] and of random tokens, for those who try others than 80/10/10 (BERT appendix C.2).
    Returns a new array of the same dtype.
    Raises InputError for an unknown unit, shapes that differ, empty `random_ids`, or shares beyond 1.
    """
    ids, selected, random_ids = np.asarray(ids), np.asarray(selected, dtype=bool), np.asarray(random_ids)
    if unit not in ("span", "token"):
        raise InputError(f'unit is "{unit}": use "span" or "token".')
    if ids.shape != selected.shape:
        raise InputError(f"ids has shape {ids.shape} and selected {selected.shape}: they must be the same.")
    if random_ids.ndim != 1 or not len(random_ids):
        raise InputError(
            f"random_ids has shape {random_ids.shape}: give a flat array of token ids, not empty."
        )
    mask_share, random_share = shares
    if min(mask_share, random_share) < 0 or mask_share + random_share > 1 + 1e-9:  # 1e-9: rounding
        raise InputError(f"shares are {shares}: give those of [MASK] and of random tokens, together at most 1.")
    first_of_unit = selected.copy()
    if unit == "span":
        first_of_unit[..., 1:] &= ~selected[..., :-1]
    places = np.flatnonzero(selected)  # of the chosen tokens
    unit_of_token = np.cumsum(first_of_unit.ravel()[places]) - 1
    draws = rng.random(np.count_nonzero(first_of_unit))[unit_of_token]  # one a unit, repeated for its tokens
    masked = places[draws < mask_share]
    replaced = places[(draws >= mask_share) & (draws < mask_share + random_share)]
    corrupted = ids.flatten()  # a copy
    corrupted[masked] = mask_id
    corrupted[replaced] = random_ids[rng.integers(len(random_ids), size=len(replaced))]
    return corrupted.reshape(ids.shape)
