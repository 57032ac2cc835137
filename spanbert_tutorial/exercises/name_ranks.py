"""Checks for the exercise of `book/spanbert/name_ranks`."""

from collections.abc import Callable, Sequence
from math import exp

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Logs = Sequence[Sequence[float]]  # [k,V], a row for each masked position
Names = Sequence[tuple[int, ...]]  # the ids of each candidate, k each
Rank = Callable[[Logs, Names, int], float]

CASES = [
    ([[-0.5, -1.5, -3.0, -2.0]], [(0,), (1,), (2,), (3,)], 3),
    (
        [[-0.1, -3.0, -4.0, -5.0], [-6.0, -5.0, -0.5, -1.0]],
        [(0, 1), (1, 2), (2, 3), (0, 2), (3, 0)],
        1,
    ),
    (
        [[-0.2, -0.9, -2.0, -4.0], [-9.0, -1.0, -1.5, -2.0]],
        [(0, 0), (1, 1), (2, 2), (3, 3), (2, 3)],
        2,
    ),
    ([[-2.0, -1.0, -3.0, -2.0]], [(0,), (3,), (1,), (2,)], 0),
    (
        [[-1.4, -1.4, -1.4, -1.4], [-1.4, -1.4, -1.4, -1.4]],
        [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0)],
        0,
    ),
]  # the last two: equal scores


def summed(logs: Logs, name: tuple[int, ...]) -> float:
    """The score of a candidate: the sum of its log-probabilities, each at its own position."""
    return sum(row[token] for row, token in zip(logs, name, strict=True))


def placed(
    logs: Logs, candidates: Names, true: int, score: Callable = summed, shared: float = 0.5
) -> float:
    """1, the candidates with a higher score, and of the equal ones the share `shared`."""
    scores = [score(logs, name) for name in candidates]
    own = scores.pop(true)
    return 1 + sum(one > own for one in scores) + shared * sum(one == own for one in scores)


def rank(logs: Logs, candidates: Names, true: int) -> float:
    """The right answer."""
    return placed(logs, candidates, true)


# --- the likely mistakes ------------------------------------------------------------


def of_all_in_the_first_row(logs: Logs, name: tuple[int, ...]) -> float:
    """Every token as if it were at the first masked position."""
    return sum(logs[0][token] for token in name)


def by_probabilities(logs: Logs, name: tuple[int, ...]) -> float:
    """The sum of the probabilities."""
    return sum(exp(row[token]) for row, token in zip(logs, name, strict=True))


MISTAKES: list[tuple[Rank, str]] = [
    (
        lambda logs, names, true: placed(logs, names, true, shared=0),
        "you give every tie to the true name. A model that scores all names alike would then "
        "always be right. Count half of the names with an equal score.",
    ),
    (
        lambda logs, names, true: placed(logs, names, true, shared=1),
        "you count every tie against the true name. Of equal scores each has the mean of their "
        "ranks: count half of the "
        "equal ones.",
    ),
    (
        lambda logs, names, true: rank(logs, names, true) + 0.5,
        "you count the true name among the names that have its own score. Leave it out.",
    ),
    (
        lambda logs, names, true: rank(logs, names, true) - 1,
        "you count from 0. The best rank is 1.",
    ),
    (
        lambda logs, names, true: len(names) + 1 - rank(logs, names, true),
        "you give the lowest score rank 1. A log-probability near 0 is a high one.",
    ),
    (
        lambda logs, names, true: placed(logs, names, true, lambda logs, name: logs[0][name[0]]),
        "you look at the first token only. Add the log-probabilities of all tokens.",
    ),
    (
        lambda logs, names, true: placed(logs, names, true, of_all_in_the_first_row),
        "you read all tokens in the first row. Each token has its own position: row 0 for the "
        "first, row 1 for the second.",
    ),
    (
        lambda logs, names, true: placed(logs, names, true, by_probabilities),
        "you add probabilities. Tokens are predicted independently, so their probabilities are "
        "multiplied, and their "
        "logarithms added.",
    ),
]


diagnose_rank = Diagnosis(
    cases=CASES,
    where=lambda logs, candidates, true: f"for the candidates {candidates}",
    read=number,
    returns="one number, the rank",
    right=rank,
    mistakes=MISTAKES,
    correct="each token counts at its own position, and equal scores share their ranks, so knowing "
    "nothing gives no gain.",
)


def check_rank(attempt: Rank) -> None:
    """Prints whether `attempt(logs, candidates, true)` gives the rank of the true name among the
    candidates.

    logs: [k,V], the log-probability of each token at each masked position. candidates: a tuple of k
    ids each. true: which of them is right. Of equal scores each has the mean of their ranks.
    """
    say(diagnose_rank(attempt))
