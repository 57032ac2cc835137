"""Check for the exercise of `book/bert/directions`: who may look at whom, with padding."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Diagnosis, NotYet, array, named, say
from spanbert_tutorial.pretraining.directions import attention_pattern

Pattern = Callable[[str, Tensor], Tensor]
NAMES = ("left-to-right", "right-to-left", "all but yourself")
REAL = torch.tensor([False] + [True] * 4 + [False] * 2)  # four tokens, padding on either side


def right_rows(name: str, real: Tensor) -> Tensor:
    """The package's rows [real,n] of the real tokens."""
    return attention_pattern(name, real[None])[0][real]


def _rows_of_tokens(answer: Any, name: str, real: Tensor) -> Tensor:
    n = len(real)
    shape = np.shape(answer)
    pattern = torch.tensor(array(answer, shape))
    if shape != (n, n):
        raise NotYet(
            f"the shape is {list(shape)}. Give [n,n] = [{n}, {n}]: one row per token that looks."
        )
    if not ((pattern == 0) | (pattern == 1)).all():
        raise NotYet(
            "there are values other than 0 and 1. Say who may look at whom; the encoder puts in "
            "-inf itself."
        )
    return pattern[real].bool()


def _mistake(rows: Tensor, right: Tensor, name: str, real: Tensor) -> str:
    """The likely mistake in the rows [real,n] of the real tokens."""
    known = named(rows, ((pattern[real], sentence) for pattern, sentence in mistakes(name, real)))
    place, column = (rows != right).nonzero()[0].tolist()
    row = real.nonzero().flatten()[place].item()
    may = "may" if right[place, column] else "may not"
    return (
        known or f"row {row}, column {column} is wrong: token {row} {may} look at token {column}."
    )


def mistakes(name: str, real: Tensor) -> list[tuple[Tensor, str]]:
    """The patterns bool[n,n] that likely mistakes give."""
    wanted, loose = (
        attention_pattern(name, tokens[None])[0] for tokens in (real, torch.ones_like(real))
    )
    itself = torch.eye(len(real), dtype=torch.bool)
    everybody = torch.ones_like(itself)
    of_any = [
        (loose, "you let tokens look at padding. Close the columns where `real` is False."),
        (
            wanted.T & real,
            "rows and columns are swapped (row i is for the token that looks), or you gave the "
            "pattern of the other direction.",
        ),
        (
            loose.T,
            "rows and columns are swapped (or you gave the pattern of the other direction), and "
            "you let tokens look at padding.",
        ),
        (
            itself & real,
            "you let every token look only at itself. Here it is the other way around.",
        ),
        (~wanted, "true and false are swapped: true means that the row may look."),
        (
            ~loose,
            "true and false are swapped (and padding is forgotten): true means that the row may "
            "look.",
        ),
    ]
    if name == "all but yourself":
        return [
            *of_any,
            (everybody & real, "you let tokens look at themselves: the diagonal must be closed."),
            (everybody, "you let tokens look at themselves, and at padding."),
        ]
    return [
        *of_any,
        (
            wanted & ~itself,
            "your diagonal is missing: a token may look at itself, and the first would see "
            "nothing at all (a strict "
            "triangle).",
        ),
        (
            loose & ~itself,
            "your diagonal is missing (a strict triangle), and you let tokens look at padding.",
        ),
        (
            wanted.T & ~itself,
            "you have the strict triangle of the other direction: flip it and keep the diagonal.",
        ),
        (
            loose.T & ~itself,
            "you have the strict triangle of the other direction, and let tokens look at padding.",
        ),
        (everybody & real, "you let every token look at every other one: close one side."),
    ]


diagnose_pattern = Diagnosis(
    cases=[(name, REAL) for name in NAMES],
    where=lambda name, real: f'for "{name}"',
    read=_rows_of_tokens,
    returns="a tensor of the shape [n,n]",
    right=right_rows,
    otherwise=_mistake,
    correct="rows look, columns are looked at, and nobody looks at padding.",
)


def check_pattern(attempt: Pattern) -> None:
    """Prints whether `attempt(name, real: bool[n])` gives the attention pattern bool[n,n] for each
    name of NAMES."""
    say(diagnose_pattern(attempt))
