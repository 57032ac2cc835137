"""Checks for the exercise of `book/spanbert/boundary`."""

from collections.abc import Callable
from itertools import product
from textwrap import fill

import numpy as np

from spanbert_tutorial.span_masking import spans_of

Row = tuple[int, int, list[int]]

# (spans, n): the football example, touching spans, overlapping ones out of order, a shared neighbour, edges.
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
    ("shift", 0): "the indices are places in the block. The model's input has [CLS] in front, so add 1",
    ("shift", 2): "every index is 1 too high. Add 1 for [CLS] once",
    ("outside", 0): "left and right lie inside the span, and these are masked. Take the neighbours outside",
    ("position", 0): "positions count from 0. The first token has p1; only the table's rows count from 0",
    ("fused", False): "touching or overlapping spans have rows of their own. Fuse them: they are one span",
    ("left_edge", True): "a span at the block's start has a row, with [CLS] as left boundary. Leave it out",
    ("right_edge", True): "a span at the block's end has a row, with [SEP] as right boundary. Leave it out",
}
RIGHT = {"shift": 1, "outside": 1, "position": 1, "fused": True, "left_edge": False, "right_edge": False}


def check_boundary_rows(attempt: Callable[[list, int], list[Row]]) -> None:
    """Prints whether `attempt(spans, n)` gives (left, right, positions) of each span, from left to right."""
    print(fill(diagnose_boundary_rows(attempt), width=68))


def diagnose_boundary_rows(attempt: Callable[[list, int], list[Row]]) -> str:
    """One sentence: correct, or the likely mistakes."""
    answers = []
    for spans, n in CASES:
        answer = attempt(list(spans), n)
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        try:
            answers.append(sorted((int(left), int(right), list(map(int, p))) for left, right, p in answer))
        except (TypeError, ValueError):
            return f"Not yet: {answer} is no list of (left, right, positions) like [(4, 9, [1, 2, 3, 4])]."
    wrong = _fewest_mistakes(answers)
    if wrong:
        return f"Not yet: {'; and '.join(MISTAKES[mistake] for mistake in wrong)}."
    for (spans, n), answer in zip(CASES, answers, strict=True):
        wanted = boundary_rows_with(spans, n, **RIGHT)
        if answer != wanted:
            return (
                f"Not yet: for the spans {spans} in a block of {n}, wanted is {wanted}, and you say {answer}."
            )
    return "Correct: the neighbours outside, counted with [CLS]; positions from 1; no row at an edge."


def _fewest_mistakes(answers: list[list[Row]]) -> tuple:
    """The smallest set of mistakes that explains all answers; empty when none does or all are right."""
    choices = [[RIGHT[name], *(value for key, value in MISTAKES if key == name)] for name in RIGHT]
    combinations = [tuple(zip(RIGHT, values, strict=True)) for values in product(*choices)]
    for settings in sorted(combinations, key=lambda settings: len(set(settings) - set(RIGHT.items()))):
        if [boundary_rows_with(spans, n, **dict(settings)) for spans, n in CASES] == answers:
            return tuple(setting for setting in settings if setting in MISTAKES)
    return ()


def boundary_rows_with(
    spans: list[tuple[int, int]],
    n: int,
    *,
    shift: int,
    outside: int,
    position: int,
    fused: bool,
    left_edge: bool,
    right_edge: bool,
) -> list[Row]:
    """The exercise's answer, right or with mistakes. spans: (first, last) as drawn, in a block of n."""
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
