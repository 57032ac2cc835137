"""Check for the exercise of `book/relatives/roberta`: positions."""

import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Diagnosis
from spanbert_tutorial.relatives.roberta import position_numbers

# Rows without padding, with padding on the right, in the middle, on the left.
REAL = torch.tensor(
    [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 1]]
).bool()
CASES = [
    (torch.where(REAL, torch.arange(REAL.numel()).reshape(REAL.shape) + 5, pad), pad)
    for pad in (1, 3)
]


def columns(ids: Tensor) -> Tensor:
    """The number of each token's column."""
    return torch.arange(ids.shape[1]).expand(ids.shape)


MISTAKES = (
    (
        lambda ids, pad: columns(ids),
        "these are BERT's positions, from 0. Here the first token has pad_id + 1.",
    ),
    (
        lambda ids, pad: columns(ids) + pad + 1,
        "padding is counted like a token. Count only where ids != pad_id.",
    ),
    (
        lambda ids, pad: (ids != pad).long().cumsum(1) + pad,
        "padding has the number of the token before it. Its row is pad_id: multiply the count by "
        "ids != pad_id first.",
    ),
)

diagnose_positions = Diagnosis(
    CASES,
    position_numbers,
    MISTAKES,
    "real tokens are numbered from pad_id + 1, and padding has pad_id wherever it is.",
    returns="a tensor [B,n]",
)

#: Prints whether `attempt(ids int64 [B,n], pad_id) -> int64 [B,n]` gives RoBERTa's positions.
check_positions = diagnose_positions.say
