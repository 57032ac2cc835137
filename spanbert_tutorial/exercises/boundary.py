"""Checks for the exercise of `book/spanbert/boundary`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis, combined, say
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

# A setting of `boundary_rows_with` that is wrong, and what to say.
MISTAKES = {
    (
        "shift",
        0,
    ): "you give indices in the block. The model's input has [CLS] in front, so add 1",
    ("shift", 2): "you make every index 1 too high. Add 1 for [CLS] once",
    (
        "outside",
        0,
    ): "you take left and right inside the span, where tokens are masked. Take the neighbors"
    " outside",
    (
        "position",
        0,
    ): "you count positions from 0. The first token has p1; only the table's rows count from 0",
    (
        "fused",
        False,
    ): "you give touching or overlapping spans separate rows. Merge them: they are one span",
    (
        "left_edge",
        True,
    ): "you give a span at the block's start a row, with [CLS] as left boundary. Leave it out",
    (
        "right_edge",
        True,
    ): "you give a span at the block's end a row, with [SEP] as right boundary. Leave it out",
}
RIGHT = {
    "shift": 1,
    "outside": 1,
    "position": 1,
    "fused": True,
    "left_edge": False,
    "right_edge": False,
}


def _rows(answer: Any, *case: object) -> list[Row]:
    return sorted(
        (int(left), int(right), list(map(int, positions))) for left, right, positions in answer
    )


def boundary_rows_with(spans: list[tuple[int, int]], n: int, **changed: int) -> list[Row]:
    """The exercise's answer to spans (first, last) in a block of n. changed: settings that differ
    from `RIGHT`."""
    shift, outside, position, fused, left_edge, right_edge = (RIGHT | changed).values()
    if fused:
        selected = np.zeros(n, dtype=bool)
        for first, last in spans:
            selected[first : last + 1] = True
        spans = spans_of(selected).tolist()
    rows = []
    for first, last in spans:
        if (first > 0 or left_edge) and (last < n - 1 or right_edge):
            positions = list(range(position, position + last - first + 1))
            rows.append((first - outside + shift, last + outside + shift, positions))
    return sorted(rows)


diagnose_boundary_rows = Diagnosis(
    cases=CASES,
    where=lambda spans, n: f"for the spans {spans} in a block of {n}",
    read=_rows,
    returns="a list of (left, right, positions) like [(4, 9, [1, 2, 3, 4])]",
    right=boundary_rows_with,
    mistakes=list(combined(boundary_rows_with, MISTAKES, max_count=len(RIGHT))),
    correct="the neighbors outside, counted with [CLS]; positions from 1; no row at an edge.",
)


def check_boundary_rows(attempt: Callable[[list, int], list[Row]]) -> None:
    """Prints whether `attempt(spans, n)` gives (left, right, positions) of each span, from left to
    right."""
    say(diagnose_boundary_rows(attempt))
