"""Check for the exercise of `book/spanbert/boundary`."""

from functools import partial

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.spanbert.span_masking import spans_of

Row = tuple[int, int, list[int]]
# (spans, n): the football example, touching spans, overlapping ones out of order, a shared
# neighbor, edges.
CASES = [
    ([(4, 7)], 12),
    ([(2, 3), (4, 5)], 9),
    ([(6, 8), (1, 2), (7, 9)], 12),
    ([(1, 2), (4, 4)], 7),
    ([(0, 1), (3, 3)], 6),
    ([(2, 2), (4, 5)], 6),
    ([], 5),
]


def rows(
    spans: list[tuple[int, int]], n: int, *, shift: int = 1, first: int = 1, fused: bool = True
) -> list[Row]:
    """The exercise's answer. shift: of [CLS]; first: the first position; fused: touching spans are
    one."""
    if fused:
        masked = np.zeros(n, dtype=bool)
        for a, b in spans:
            masked[a : b + 1] = True
        spans = spans_of(masked).tolist()
    inner = [(a, b) for a, b in spans if a > 0 and b < n - 1]
    return [(a - 1 + shift, b + 1 + shift, list(range(first, first + b - a + 1))) for a, b in inner]


BLOCK = "you give indices in the block. The model's input has [CLS] in front, so add 1"
APART = "you give touching or overlapping spans separate rows. Merge them: they are one span."

#: Prints whether `attempt(spans, n)` gives (left, right, positions) of each span, in order.
check_boundary_rows = Check(
    CASES,
    rows,
    {
        f"{BLOCK}.": partial(rows, shift=0),
        f"{BLOCK}; and {APART}": partial(rows, shift=0, fused=False),
        "you count positions from 0. The first token has p1; "
        "only the table's rows count from 0.": partial(rows, first=0),
    },
    "the neighbors outside, counted with [CLS]; positions from 1; no row at an edge.",
    returns="a list of (left, right, positions) like [(4, 9, [1, 2, 3, 4])]",
    read=lambda value: sorted(plain(row) for row in value),
)
