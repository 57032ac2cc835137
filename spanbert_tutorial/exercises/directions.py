"""Check for the exercise of `book/bert/directions`: who may attend to whom, with padding."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Check
from spanbert_tutorial.pretraining.directions import direction_mask

NAMES = ("left-to-right", "right-to-left", "all but yourself")
REAL = torch.tensor([False] + [True] * 4 + [False] * 2)  # four tokens, padding on either side
ITSELF = torch.eye(len(REAL), dtype=torch.bool)


def right(name: str, real: Tensor) -> Tensor:
    return direction_mask(name, real[None])[0]


def rows_of_tokens(answer: Any) -> list:
    """The rows of real tokens; what padding looks at does not count."""
    pattern = np.asarray(answer).astype(float)
    assert pattern.shape == ITSELF.shape
    return pattern[REAL.numpy()].tolist()


#: Prints whether `attempt(name, real: bool[n])` gives the mask bool[n,n] for each name of NAMES.
check_mask = Check(
    [(name, REAL) for name in NAMES],
    right,
    {
        "your diagonal is missing: a token may look at itself, and the first would "
        "see nothing at all (a strict triangle).": lambda name, real: right(name, real) & ~ITSELF,
        "you let tokens look at padding. Close the columns "
        "where `real` is False.": lambda name, real: right(name, torch.ones_like(real)),
        "rows and columns are swapped: row i is for the token that looks.": lambda name, real: (
            right(name, real).T & real
        ),
    },
    "rows attend, columns are attended to, and nobody attends to padding.",
    returns="a mask [n,n]: one row per token that looks",
    read=rows_of_tokens,
)
