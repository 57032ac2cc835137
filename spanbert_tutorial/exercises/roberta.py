"""Check for the exercise of `book/relatives/roberta`: the rows of the position table."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Diagnosis, array, named, say
from spanbert_tutorial.relatives.roberta import position_numbers

Positions = Callable[[Tensor, int], Tensor]

# Rows without padding, with padding on the right, in the middle, on the left.
REAL = torch.tensor(
    [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1]]
).bool()
CASES = [
    (torch.where(REAL, torch.arange(REAL.numel()).reshape(REAL.shape) + 5, pad), pad)
    for pad in (1, 3)
]


def _columns(ids: Tensor) -> Tensor:
    return torch.arange(ids.shape[1]).expand(ids.shape)


def _counted(ids: Tensor, pad: int, axis: int = 1) -> Tensor:
    return (ids != pad).long().cumsum(axis)


# What a likely mistake computes, and what to say to the person who made it.
MISTAKES = (
    (
        lambda ids, pad: _columns(ids),
        "these are BERT's positions, from 0. Here the first token has pad_id + 1.",
    ),
    (
        lambda ids, pad: _columns(ids) + pad + 1,
        "padding is counted like a token. Count only where ids != pad_id.",
    ),
    (
        lambda ids, pad: torch.where(ids != pad, _columns(ids) + pad + 1, pad),
        "padding has its row, but the tokens after it are shifted: a token's number is the count "
        "of real tokens.",
    ),
    (
        lambda ids, pad: _counted(ids, pad) * (ids != pad),
        "the count starts at 1, whatever pad_id is. Add pad_id.",
    ),
    (
        lambda ids, pad: _counted(ids, pad) * (ids != pad) + pad + 1,
        "all numbers are 1 too high. cumsum gives 1 to the first token already, so add pad_id "
        "and no more.",
    ),
    (
        lambda ids, pad: torch.where(ids != pad, _counted(ids, pad) - 1 + pad, pad),
        "the first token has pad_id itself, and that row belongs to padding. It should be one "
        "higher.",
    ),
    (
        lambda ids, pad: _counted(ids, pad) + pad,
        "padding has the number of the token before it. Its row is pad_id: multiply the count by "
        "ids != pad_id first.",
    ),
    (
        lambda ids, pad: (_counted(ids, pad) + pad) * (ids != pad),
        "padding has row 0. Its row is pad_id: multiply first, and add pad_id afterwards.",
    ),
    (
        lambda ids, pad: _counted(ids, pad, 0) * (ids != pad) + pad,
        "the count runs down the batch. Along a row is axis 1.",
    ),
    (
        lambda ids, pad: (ids == pad).long().cumsum(1) * (ids == pad) + pad,
        "you count padding and not tokens. It is the other way around: ids != pad_id.",
    ),
    (
        lambda ids, pad: _counted(ids, 1) * (ids != 1) + 1,
        "you assume that pad_id is 1. Use the argument.",
    ),
)


def _mistake(got: np.ndarray, wanted: Tensor, ids: Tensor, pad: int) -> str:
    known = named(got, ((mistake(ids, pad), sentence) for mistake, sentence in MISTAKES))
    return (
        known
        or f"for ids {ids[2].tolist()} yours are {got[2].tolist()}. Take the steps one by one."
    )


diagnose_positions = Diagnosis(
    cases=CASES,
    where=lambda ids, pad: f"with pad_id = {pad}",
    read=lambda value, ids, pad: array(value, tuple(ids.shape), Tensor),
    returns=f"a tensor of the shape [B,n] = {tuple(REAL.shape)}",
    right=position_numbers,
    otherwise=_mistake,
    correct="real tokens are numbered from pad_id + 1, and padding has pad_id wherever it is.",
)


def check_positions(attempt: Positions) -> None:
    """Prints whether `attempt(ids int64 [B,n], pad_id) -> int64 [B,n]` gives RoBERTa's
    positions."""
    say(diagnose_positions(attempt))
