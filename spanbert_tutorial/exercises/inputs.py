"""Check for an exercise of `book/bert/bert`: a batch of pairs as ids, segments and attention
mask."""

from functools import partial

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check, plain

PAD, CLS, SEP = 0, 101, 102  # as in BERT's cased vocabulary
Pair = tuple[list[int], list[int]]
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]

# (pairs, longest): rows of different length, pairs to cut (a tie among them), one that just fits.
CASES = [
    ([([11, 12, 13, 14], [21, 22, 23]), ([31, 32], [41]), ([51], [61, 62, 63, 64])], 512),
    ([([11, 12, 13, 14, 15, 16], [21, 22, 23]), ([31], [41, 42]), ([51, 52], [61] * 8)], 9),
    ([([11, 12, 13, 14], [21, 22, 23, 24]), ([31, 32, 33], [41])], 8),
    ([([11, 12], [21, 22, 23])], 8),
]


def batch(pairs: list[Pair], longest: int, *, last_segment: int = 1, real: int = 1) -> Batch:
    """The exercise's answer. last_segment: of the final [SEP]; real: what the mask is at tokens."""
    rows = []
    for first, second in pairs:
        first, second = list(first), list(second)
        while len(first) + len(second) > longest - 3:
            (first if len(first) > len(second) else second).pop()
        ids = [CLS, *first, SEP, *second, SEP]
        segments = [0] * (len(first) + 2) + [1] * len(second) + [last_segment]
        rows.append([ids, segments, [real] * len(ids)])
    width = max(len(ids) for ids, _, _ in rows)
    fill = PAD, 0, 1 - real
    padded = [
        [part + [empty] * (width - len(part)) for part, empty in zip(row, fill, strict=True)]
        for row in rows
    ]
    ids, segments, mask = np.array(padded).transpose(1, 0, 2)
    return ids, segments, mask


#: Prints whether `attempt(pairs, longest)` gives ids, segments and mask [B,n] of a batch of pairs.
check_batch = Check(
    CASES,
    batch,
    {
        "you cut the row after framing, so a [SEP] is lost. Cut the sentences first, then frame "
        "them.": lambda pairs, longest: tuple(part[:, :longest] for part in batch(pairs, 10_000)),
        "you put the final [SEP] in segment 0. It closes the second sentence, "
        "in segment 1.": partial(batch, last_segment=0),
        "you inverted the mask. It is 1 at real tokens and 0 at padding.": partial(batch, real=0),
    },
    "one [CLS], two [SEP], each in its own segment; the mask is 1 at real tokens.",
    returns="three arrays [B,n]: ids, segments, mask",
    read=lambda value: [plain(np.asarray(part).astype(int)) for part in value],
)
