"""Masked language modeling: which tokens are chosen, what the model sees. Chapter:
`book/bert/masking`.

Source: BERT §3.1 and appendix A.1; whole words: SpanBERT §6.1. NumPy only.

All arrays describe blocks WITHOUT [CLS] and [SEP]. These two are added after masking, so they can
never be masked.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.errors import InputError, is_number, is_whole, shown

SHARES = 0.8, 0.1  # of [MASK] and of random tokens; the rest, 0.1, keeps the original token


class Blocks(NamedTuple):
    """What a scheme may look at to choose: word_starts: bool [B,n]; lengths: int [B], real lengths;
    ids: int [B,n]; labeled: int [k,4], spans that the text names by their kind, such as entities:
    (row, first, last, kind)."""

    word_starts: np.ndarray
    lengths: np.ndarray
    ids: np.ndarray
    labeled: np.ndarray


class MaskedBlocks(NamedTuple):
    """What masking hands on: ids: int [B,n], the original ones; corrupted: int [B,n], what the
    model sees; selected: bool [B,n], what it has to predict; lengths: int [B], real lengths."""

    ids: np.ndarray
    corrupted: np.ndarray
    selected: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class MaskingScheme:
    """What all schemes share: the budget of ⌈mask_ratio · n⌉ tokens and the way through a batch.

    Raises InputError when `mask_ratio` is not between 0 and 1.
    """

    mask_ratio: float = 0.15

    def __post_init__(self) -> None:
        if not is_number(self.mask_ratio) or not 0 <= self.mask_ratio <= 1:
            raise InputError(
                f"mask_ratio is {shown(self.mask_ratio)}, but a share lies between 0 and 1: try "
                f"0.15."
            )

    def budget(self, tokens: int) -> int:
        """⌈mask_ratio · tokens⌉, an int.

        The ratio is read as the decimal that one writes: 0.3 of 10 tokens is 3, whatever floats
        make of it.
        """
        return math.ceil(Fraction(str(self.mask_ratio)) * tokens)

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Chooses the tokens of one block that the model has to predict.

        word_starts: bool [n], whether a token begins a word; a block may begin inside one. Returns
        bool [n].
        """
        raise NotImplementedError

    def select_batch(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """`select` for each row. Padding is never chosen.

        word_starts: bool [B,n]; lengths: int [B], real lengths. Returns bool [B,n]. Raises
        InputError when the shapes do not fit together, for numbers (token ids) in place of
        booleans, and for lengths that are not whole.
        """
        word_starts = booleans("word_starts", word_starts, "a token begins a word")
        lengths = whole_numbers("lengths", lengths)
        if word_starts.ndim != 2 or lengths.shape != word_starts.shape[:1]:
            raise InputError(
                f"word_starts has shape {word_starts.shape} and lengths {lengths.shape}: give "
                f"[B,n] and [B]."
            )
        check_lengths(lengths, word_starts.shape[1])
        return self.select_rows(word_starts, lengths, rng)

    def check(self, labeled: np.ndarray) -> None:
        """Raises InputError for a text that lacks what the scheme looks for. labeled: spans of the
        corpus, [m,3]."""

    def select_blocks(self, blocks: Blocks, rng: np.random.Generator) -> np.ndarray:
        """`select_batch`, for a scheme that needs more than the starts of words. Returns bool
        [B,n]."""
        return self.select_batch(blocks.word_starts, blocks.lengths, rng)

    def select_rows(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """What `select_batch` does once it has checked; a scheme may know a faster way."""
        selected = np.zeros(word_starts.shape, dtype=bool)
        for row, length in enumerate(lengths.tolist()):
            selected[row, :length] = self.select(word_starts[row, :length], rng)
        return selected


@dataclass(frozen=True)
class TokenMasking(MaskingScheme):
    """BERT's first masking: single tokens, each equally likely (BERT §3.1)."""

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """⌈mask_ratio · n⌉ tokens without replacement; see `MaskingScheme.select`."""
        tokens = len(checked_word_starts(word_starts))
        selected = np.zeros(tokens, dtype=bool)
        selected[rng.choice(tokens, self.budget(tokens), replace=False)] = True
        return selected


@dataclass(frozen=True)
class WholeWordMasking(MaskingScheme):
    """All tokens of a chosen word; words are tried in random order (SpanBERT §6.1, "whole
    words")."""

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A word that would push past the budget is passed over; see `MaskingScheme.select`."""
        sizes = word_sizes(word_starts)
        chosen = np.zeros(len(sizes), dtype=bool)
        left = self.budget(len(word_starts))
        tokens_of = sizes.tolist()
        for word in rng.permutation(len(sizes)).tolist():
            if tokens_of[word] <= left:
                chosen[word] = True
                left -= tokens_of[word]
            if left == 0:
                break
        return np.repeat(chosen, sizes)


def checked_word_starts(word_starts: np.ndarray) -> np.ndarray:
    """The block as a bool [n] array. Raises InputError for another shape, or for numbers (token
    ids)."""
    block = booleans("word_starts", word_starts, "a token begins a word")
    if block.ndim != 1:
        raise InputError(
            f"word_starts must be one block of booleans, got shape {block.shape}: "
            "pass True where a token begins a word, or use select_batch for several blocks."
        )
    return block


def booleans(name: str, values: object, true: str) -> np.ndarray:
    """The values as an array of True and False. true: where it holds True. Raises InputError for
    others, such as token ids by mistake."""
    found = array_of(name, values)
    if found.dtype != bool and found.size:
        raise InputError(
            f"{name} must be booleans, got values of {found.dtype}: pass True where {true}, else "
            f"False."
        )
    return found.astype(bool, copy=False)


def whole_numbers(name: str, values: object) -> np.ndarray:
    """The values as an array of whole numbers. Raises InputError for others."""
    found = array_of(name, values)
    if found.dtype.kind not in "iu" and found.size:
        raise InputError(f"{name} holds values of {found.dtype}: give whole numbers.")
    return found if found.dtype.kind in "iu" else found.astype(np.int64)


def array_of(name: str, values: object) -> np.ndarray:
    """The values as an array. Raises InputError where they have no common shape."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} is no array of one shape ({error}): give rows of equal length."
        ) from None


def check_lengths(lengths: np.ndarray, n: int) -> None:
    """Raises InputError for a length that is not between 0 and n."""
    if ((lengths < 0) | (lengths > n)).any():
        raise InputError(f"lengths {lengths.tolist()} must lie between 0 and {n}.")


def word_sizes(word_starts: np.ndarray) -> np.ndarray:
    """Tokens of each word, int [words]. The tokens before the first start form a word, too."""
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
    """What the model sees: [MASK] for 80 % of the units, random tokens for 10 %, the original ones
    for 10 %.

    ids: int [n] or [B,n]; selected: bool of the same shape. random_ids: int [any], drawn from with
    equal weight, so that a stretch of the corpus gives the corpus's frequencies. unit: "token"
    draws for each token alone (BERT §3.1), "span" once for each maximal run of chosen tokens
    (SpanBERT §3.1); runs never cross rows. In a unit replaced by random tokens each token has its
    own draw, which may equal the original. shares: of [MASK] and of random tokens, for those who
    try others than 80/10/10 (BERT appendix C.2). Returns a new array of the same dtype. Raises
    InputError for an unknown unit, shapes that differ, empty `random_ids`, shares beyond 1, and
    arrays that hold something else.
    """
    ids = whole_numbers("ids", ids)
    random_ids = whole_numbers("random_ids", random_ids)
    selected = booleans("selected", selected, "a token is chosen")
    if unit not in ("span", "token"):
        raise InputError(f'unit is "{unit}": use "span" or "token".')
    if ids.shape != selected.shape:
        raise InputError(
            f"ids has shape {ids.shape} and selected {selected.shape}: they must be the same."
        )
    if random_ids.ndim != 1 or not len(random_ids):
        raise InputError(
            f"random_ids has shape {random_ids.shape}: give a flat array of token ids, not empty."
        )
    if not is_whole(mask_id) or not np.iinfo(ids.dtype).min <= mask_id <= np.iinfo(ids.dtype).max:
        raise InputError(f"mask_id is {shown(mask_id)}: give a token id that fits {ids.dtype}.")
    mask_share, random_share = checked_shares(shares)
    first_of_unit = selected.copy()
    if unit == "span":
        first_of_unit[..., 1:] &= ~selected[..., :-1]
    places = np.flatnonzero(selected)  # of the chosen tokens
    unit_of_token = np.cumsum(first_of_unit.ravel()[places]) - 1
    draws = rng.random(np.count_nonzero(first_of_unit))[
        unit_of_token
    ]  # one a unit, repeated for its tokens
    masked = places[draws < mask_share]
    replaced = places[(draws >= mask_share) & (draws < mask_share + random_share)]
    corrupted = ids.flatten()  # a copy
    corrupted[masked] = mask_id
    corrupted[replaced] = random_ids[rng.integers(len(random_ids), size=len(replaced))]
    return corrupted.reshape(ids.shape)


def checked_shares(shares: tuple[float, float]) -> tuple[float, float]:
    """The two shares. Raises InputError unless they are two numbers from 0 on, together at most
    1."""
    try:
        mask_share, random_share = shares
        fits = (
            is_number(mask_share)
            and is_number(random_share)
            and min(mask_share, random_share) >= 0
            and mask_share + random_share <= 1 + 1e-9  # rounding
        )
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            f"shares are {shown(shares)}: give those of [MASK] and of random tokens, together at "
            f"most 1."
        )
    return mask_share, random_share
