"""Check for the exercise of `book/spanbert/name_ranks`."""

from collections.abc import Sequence
from functools import partial

from spanbert_tutorial.exercises.diagnosis import Check

Logs = Sequence[Sequence[float]]  # [k,V], a row for each masked position
Names = Sequence[tuple[int, ...]]  # the ids of each candidate, k each

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
    ([[-2.0, -1.0, -3.0, -2.0]], [(0,), (3,), (1,), (2,)], 0),  # two of equal scores, then all
    ([[-1.4] * 4, [-1.4] * 4], [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0)], 0),
]


def rank(
    logs: Logs, candidates: Names, true: int, *, shared: float = 0.5, tokens: int | None = None
) -> float:
    """1, the candidates with a higher score, and of the equal ones the share `shared`."""
    rows = logs[:tokens]
    scores = [sum(row[i] for row, i in zip(rows, name, strict=False)) for name in candidates]
    own = scores.pop(true)
    return 1 + sum(one > own for one in scores) + shared * sum(one == own for one in scores)


#: Prints whether `attempt(logs, candidates, true)` gives the rank of the true name. logs: [k,V]
#: log-probabilities; candidates: k ids each. Of equal scores each has the mean of their ranks.
check_rank = Check(
    CASES,
    rank,
    {
        "you give every tie to the true name. A model that scores all names alike would then "
        "always be right. Count half of the names with an equal score.": partial(rank, shared=0),
        "you look at the first token only. Add the log-probabilities of all tokens.": partial(
            rank, tokens=1
        ),
        "you count from 0. The best rank is 1.": lambda *case: rank(*case) - 1,
    },
    "each token counts at its own position, and equal scores share their ranks, so knowing "
    "nothing gives no gain.",
    returns="one number, the rank",
    read=float,
)
