"""Check for the exercise of `book/bert/directions`: who may look at whom, with padding."""

from collections.abc import Callable
from textwrap import fill

import torch
from torch import Tensor

from spanbert_tutorial.directions import attention_pattern

Pattern = Callable[[str, Tensor], Tensor]
NAMES = ("left-to-right", "right-to-left", "all but yourself")
REAL = torch.tensor([False] + [True] * 4 + [False] * 2)  # four tokens, padding on either side


def check_pattern(attempt: Pattern) -> None:
    """Prints whether `attempt(name, real: bool[n])` gives the attention pattern bool[n,n] for each name of NAMES."""
    print(fill(diagnose_pattern(attempt), 68))


def diagnose_pattern(attempt: Pattern) -> str:
    """One sentence: correct, or the likely mistake. Rows of padding may hold anything."""
    for name in NAMES:
        try:
            answer = attempt(name, REAL.clone())
        except Exception as error:  # whatever the reader's code raises is the reader's message
            return f'Not yet: for "{name}" the function stopped with {type(error).__name__}: {error}'
        problem = _shape_mistake(answer)
        if not problem:
            rows, wanted = torch.as_tensor(answer)[REAL].bool(), attention_pattern(name, REAL[None])[0][REAL]
            problem = "" if torch.equal(rows, wanted) else _mistake(name, rows)
        if problem:
            return f'Not yet: for "{name}" {problem}'
    return "Correct: rows look, columns are looked at, and nobody looks at padding."


def _shape_mistake(answer: object) -> str:
    """What is wrong before any single cell is looked at; empty when nothing is."""
    n = len(REAL)
    if answer is None:
        return "the function returns nothing. End it with `return`."
    try:
        answer = torch.as_tensor(answer)
    except (TypeError, ValueError, RuntimeError):
        return f"the result is {type(answer).__name__}, and not a tensor of the shape [n,n]."
    if answer.shape != (n, n):
        return f"the shape is {list(answer.shape)}. Give [n,n] = [{n}, {n}]: a row for each token that looks."
    if not ((answer == 0) | (answer == 1)).all():
        return "there are values other than 0 and 1. Say who may look at whom; the encoder puts in -inf itself."
    return ""


def _mistake(name: str, rows: Tensor) -> str:
    """The likely mistake in the rows [real,n] of the real tokens."""
    everybody = torch.ones_like(REAL)
    wanted, loose = (attention_pattern(name, real[None])[0] for real in (REAL, everybody))
    itself = torch.eye(len(REAL), dtype=torch.bool)
    padding = "padding may be looked at. Close the columns where `real` is False."
    slips = [
        (loose, padding),
        (
            wanted.T & REAL,
            "rows and columns have changed places (row i says whom token i looks at), or you gave the "
            "pattern of the other direction.",
        ),
        (
            loose.T,
            "rows and columns have changed places (or you gave the pattern of the other direction), and padding "
            "may be looked at.",
        ),
        (itself & REAL, "every token looks at itself only. Here it is the other way round."),
        (~wanted, "true and false have changed places: true means that the row may look."),
        (~loose, "true and false have changed places (and padding is forgotten): true means that the row may look."),
    ]
    if name == "all but yourself":
        slips += [
            (everybody & REAL.expand_as(itself), "tokens look at themselves: the diagonal must be closed."),
            (everybody.expand_as(itself), "tokens look at themselves, and at padding."),
        ]
    else:
        slips += [
            (
                wanted & ~itself,
                "the diagonal is missing: a token may look at itself, and the first would see "
                "nothing at all (a strict triangle).",
            ),
            (loose & ~itself, "the diagonal is missing (a strict triangle), and padding may be looked at."),
            (
                wanted.T & ~itself,
                "you have the strict triangle of the other direction: turn it round and keep the diagonal.",
            ),
            (loose.T & ~itself, "you have the strict triangle of the other direction, and padding may be looked at."),
            (everybody & REAL.expand_as(itself), "every token looks at every other one: close one side."),
        ]
    for slip, sentence in slips:
        if torch.equal(rows, slip[REAL]):
            return sentence
    place, column = (rows != wanted[REAL]).nonzero()[0].tolist()
    row = REAL.nonzero().flatten()[place].item()
    may = "may" if wanted[row, column] else "may not"
    return f"row {row}, column {column} is wrong: token {row} {may} look at token {column}."
