"""Check for the exercise of `book/bert/bert.ipynb`: attention of one head, with padding."""

import math
from functools import partial

import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Check

N = 5  # tokens, the last of them padding
D = 4  # width of the head
QUERY, KEY, VALUE = torch.randn(
    3, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
)


def attention(
    query: Tensor, key: Tensor, value: Tensor, real: Tensor, *, scale: float = 0.5
) -> Tensor:
    scores = query @ key.T / query.shape[-1] ** scale
    return scores.masked_fill(~real, -math.inf).softmax(-1) @ value


#: Prints whether `attempt(query, key, value: [n,d], real: bool[n]) -> [n,d]` is attention.
check_attention = Check(
    [(QUERY, KEY, VALUE, torch.arange(N) < N - 1)],
    attention,
    {
        "you mask padding after softmax, so the other weights no longer sum to 1: "
        "set its scores to -inf before softmax.": lambda query, key, value, real: (
            ((query @ key.T / math.sqrt(D)).softmax(-1) * real) @ value
        ),
        "you do not divide the scores by √d, so the weights are too sharp: "
        "d is query.shape[-1].": partial(attention, scale=0),
        "you do not mask padding: its tokens still get weight.": (
            lambda query, key, value, real: attention(query, key, value, torch.ones_like(real))
        ),
    },
    "scaled, masked before softmax, one distribution for each query.",
    returns="a tensor of the shape [n,d]",
)
