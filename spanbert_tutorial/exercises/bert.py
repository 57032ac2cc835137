"""Check for the exercise of `book/bert/bert.ipynb`: attention of one head, with padding, by
hand."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from spanbert_tutorial.exercises.diagnosis import Diagnosis, array, say

N = 5  # tokens, the last of them padding
D = 4  # width of the head
QUERY, KEY, VALUE = torch.randn(
    3, N, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
)
CASE = QUERY, KEY, VALUE, torch.arange(N) < N - 1
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _solution(query: Tensor, key: Tensor, value: Tensor, real: Tensor) -> Tensor:
    scores = query @ key.T / math.sqrt(query.shape[-1])
    return scores.masked_fill(~real, -math.inf).softmax(-1) @ value


def _variant(
    scale: float = 0.5, axis: int = -1, key_first: bool = False, hide: str = "before"
) -> Attention:
    """The solution with one part changed: what a likely mistake computes."""

    def attention(query: Tensor, key: Tensor, value: Tensor, real: Tensor) -> Tensor:
        scores = (key @ query.T if key_first else query @ key.T) / query.shape[-1] ** scale
        hidden = {"before": ~real, "turned round": real, "rows": ~real[:, None]}.get(hide)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        weights = scores.softmax(axis)
        return (weights * real if hide == "after" else weights) @ value

    return attention


# What a mistake computes, and what to say to the person who made it.
MISTAKES = (
    (
        _variant(scale=0),
        "you do not divide the scores by √d, so the weights are too sharp: d is query.shape[-1].",
    ),
    (_variant(scale=1), "you divide the scores by d. Divide by its square root."),
    (
        _variant(axis=0),
        "your softmax runs over the wrong axis: the weights of one query, a row, must sum to 1.",
    ),
    (
        _variant(key_first=True),
        "your scores are transposed: row i, column j is query i times key j.",
    ),
    (
        _variant(hide="after"),
        "you mask padding after softmax, so the other weights no longer sum to 1: "
        "set its scores to -inf before softmax.",
    ),
    (_variant(hide="no"), "you do not mask padding: its tokens still get weight."),
    (
        _variant(hide="turned round"),
        "your mask is inverted: `real` is True at the tokens to keep.",
    ),
    (
        _variant(hide="rows"),
        "you mask queries (rows). Mask keys: the columns of the scores.",
    ),
)


def _steps(*_: object) -> str:
    return "take the steps one by one: scores, divide by √d, mask padding, softmax, mix the values."


diagnose_attention = Diagnosis(
    cases=[CASE],
    read=lambda value, *case: array(value, (N, D), Tensor),
    returns=f"a tensor of the shape [n,d] = {N, D}",
    right=_solution,
    mistakes=MISTAKES,
    otherwise=_steps,
    correct="scaled, masked before softmax, one distribution for each query.",
)


def check_attention(attempt: Attention) -> None:
    """Prints whether `attempt(query [n,d], key [n,d], value [n,d], real bool[n]) -> [n,d]` is
    attention."""
    say(diagnose_attention(attempt))
