"""Check for an exercise of `book/bert/wordpiece`: a batch of pairs as ids, segments and attention
mask."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis, NotYet, combined, say

# as in BERT's cased vocabulary
PAD = 0
CLS = 101
SEP = 102
Pair = tuple[list[int], list[int]]
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]
NAMES = ("ids", "segments", "mask")

# (pairs, longest): rows of different length, pairs to cut (a tie among them), and one that just
# fits.
CASES = [
    ([([11, 12, 13, 14], [21, 22, 23]), ([31, 32], [41]), ([51], [61, 62, 63, 64])], 512),
    (
        [
            ([11, 12, 13, 14, 15, 16], [21, 22, 23]),
            ([31], [41, 42]),
            ([51, 52], [61, 62, 63, 64, 65, 66, 67, 68]),
        ],
        9,
    ),
    ([([11, 12, 13, 14], [21, 22, 23, 24]), ([31, 32, 33], [41])], 8),
    ([([11, 12], [21, 22, 23])], 8),
]

# A setting of `batch_with` that is wrong, and what to say.
MISTAKES = {
    ("cls", "none"): "[CLS] is missing. It opens every input",
    (
        "cls",
        "both",
    ): "you put [CLS] before the second sentence, too. An input has one, at the very start",
    ("first_sep", False): "there is no [SEP] between the sentences",
    ("final_sep", False): "the final [SEP] is missing. Each sentence is closed by its own",
    (
        "first_sep_segment",
        1,
    ): "you put the first [SEP] in segment 1. It closes the first sentence, in segment 0",
    (
        "final_sep_segment",
        0,
    ): "you put the final [SEP] in segment 0. It closes the second sentence, in segment 1",
    (
        "pad_segment",
        1,
    ): "you put padding in segment 1. Nobody looks at it, but here it has segment 0",
    ("first_segment", 1): "you count segments from 1. The table has the rows 0 and 1",
    ("second_segment", 0): "you put everything in segment 0. The second sentence is in segment 1",
    (
        "mask",
        "all",
    ): "you set the mask to 1 at padding, so the padding would be read as text. It is 1 at "
    "real tokens only",
    ("mask", "turned"): "you inverted the mask. It is 1 at real tokens and 0 at padding",
    (
        "mask",
        "words",
    ): "you set the mask to 0 at [CLS] or [SEP]. They are real tokens; only padding has 0",
    (
        "order",
        "mask second",
    ): "you swapped mask and segments. Return ids, segments, mask in this order",
    (
        "side",
        "left",
    ): "you padded on the left. Pad on the right, so that [CLS] has position 0",
    (
        "width",
        "longest",
    ): "you padded all rows to the maximum length. Pad only to the longest row of the batch",
    ("cut", "none"): "a row is longer than allowed. Cut the sentences first, then frame them",
    (
        "cut",
        "framed",
    ): "you cut the row after framing, so a [SEP] is lost. Cut the sentences first, then frame "
    "them",
    (
        "cut",
        "second",
    ): "you cut only the second sentence. Take each token from the one that is longer at that "
    "moment",
    (
        "cut",
        "first",
    ): "you cut only the first sentence. Take each token from the one that is longer at that "
    "moment",
    (
        "cut",
        "first at a tie",
    ): "you cut the first of two equally long sentences. At a tie, cut the second",
    ("cut", "front"): "you cut tokens at the start of a sentence. Cut at its end",
    (
        "specials",
        2,
    ): "you cut too few tokens: three positions are needed for [CLS] and two [SEP]",
    (
        "specials",
        0,
    ): "you cut too few tokens: three positions are needed for [CLS] and two [SEP]",
    ("specials", 4): "you cut one token too many. [CLS] and two [SEP] take three positions",
}
RIGHT = {
    "cls": "first",
    "first_sep": True,
    "final_sep": True,
    "first_sep_segment": 0,
    "final_sep_segment": 1,
    "pad_segment": 0,
    "first_segment": 0,
    "second_segment": 1,
    "mask": "right",
    "side": "right",
    "width": "batch",
    "cut": "longer",
    "specials": 3,
    "order": "mask last",
}


def _three_arrays(answer: Any, pairs: list[Pair], longest: int) -> Batch:
    ids, segments, mask = answer
    arrays = []
    for name, array in zip(NAMES, (ids, segments, mask), strict=True):
        try:
            arrays.append(np.asarray(array).astype(int))
        except (TypeError, ValueError):
            raise NotYet(
                f"the rows of {name} have different lengths. Pad the shorter ones."
            ) from None
        shape = arrays[-1].shape
        if len(shape) != 2 or shape != (len(pairs), arrays[0].shape[-1]):
            rows = f"one row for each of the {len(pairs)} pairs"
            raise NotYet(f"{name} has the shape {shape}. All three have [B,n], {rows}.")
    return arrays[0], arrays[1], arrays[2]


def _first_difference(batch: Batch, wanted: Batch, pairs: list[Pair], longest: int) -> str:
    """The first row that is not as wanted, for a mistake without a name."""
    rows = (
        (name, pair, row, right)
        for name, array, expected in zip(NAMES, batch, wanted, strict=True)
        for pair, row, right in zip(pairs, array.tolist(), expected.tolist(), strict=True)
    )
    name, pair, row, right = next(found for found in rows if found[2] != found[3])
    return f"{name} of the pair {pair} are {row}; they should be {right}."


def batch_with(pairs: list[Pair], longest: int, **changed: object) -> Batch:
    """The exercise's answer. changed: settings that differ from `RIGHT`."""
    settings = RIGHT | changed
    rows = [framed_with(*shortened(*pair, longest, settings), settings) for pair in pairs]
    if settings["cut"] == "framed":
        rows = [row[:longest] for row in rows]
    width = longest if settings["width"] == "longest" else max(map(len, rows))
    batch = []
    for row in rows:
        space = [(PAD, settings["pad_segment"], settings["mask"] in ("all", "turned"))] * (
            width - len(row)
        )
        batch.append(space + row if settings["side"] == "left" else row + space)
    ids, segments, mask = np.array(batch, dtype=int).transpose(2, 0, 1)
    return (ids, mask, segments) if settings["order"] == "mask second" else (ids, segments, mask)


def shortened(
    first: list[int], second: list[int], longest: int, settings: dict
) -> tuple[list[int], list[int]]:
    """The sentences, cut until they fit beside the special tokens."""
    first = list(first)
    second = list(second)
    cut = settings["cut"]
    while len(first) + len(second) > longest - settings["specials"] and cut not in (
        "none",
        "framed",
    ):
        longer = first if len(first) > len(second) - (cut == "first at a tie") else second
        longer = second if cut == "second" and len(second) > 1 else longer
        longer = first if cut == "first" and first else longer
        longer.pop(0 if cut == "front" else -1)
    return first, second


def framed_with(first: list[int], second: list[int], settings: dict) -> list[tuple[int, int, int]]:
    """(id, segment, mask) of each token of one input."""
    one = settings["first_segment"]
    two = settings["second_segment"]
    mask = settings["mask"]
    two = two + one  # segments counted from 1 are all one too high
    of_word = int(mask != "turned")
    of_special = int(mask in ("right", "all"))
    row = [(CLS, one, of_special)] * (settings["cls"] != "none")
    row += [(token, one, of_word) for token in first]
    row += [(SEP, one + settings["first_sep_segment"] * (two - one), of_special)] * settings[
        "first_sep"
    ]
    row += [(CLS, two, of_special)] * (settings["cls"] == "both")
    row += [(token, two, of_word) for token in second]
    closing = two if settings["final_sep_segment"] else one
    return row + [(SEP, closing, of_special)] * settings["final_sep"]


diagnose_batch = Diagnosis(
    cases=CASES,
    where=lambda pairs, longest: f"for {len(pairs)} pairs and at most {longest} tokens",
    read=_three_arrays,
    returns="three arrays: ids, segments, mask",
    right=batch_with,
    mistakes=list(combined(batch_with, MISTAKES, max_count=3)),
    otherwise=_first_difference,
    correct="one [CLS], two [SEP], each in its own segment; the mask is 1 at real tokens.",
)


def check_batch(attempt: Callable[[list[Pair], int], Batch]) -> None:
    """Prints whether `attempt(pairs, longest)` gives ids, segments and mask [B,n] of a batch of
    pairs."""
    say(diagnose_batch(attempt))
