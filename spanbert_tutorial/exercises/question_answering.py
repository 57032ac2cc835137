"""Check for the exercise of `book/tasks/question_answering`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.tasks.windows import Window, central_windows, decode, window_ranges

Scores = Sequence[tuple[np.ndarray, np.ndarray]]
Span = tuple[int, int] | None
FIRST = 4  # position of the first context token: [CLS], two tokens of the question, [SEP]


def draw_case(rng: np.random.Generator) -> tuple[list[Window], Scores, float, int]:
    """(windows, scores, threshold, longest): a context of 9 to 12 tokens in windows of 5 to 9, with
    random scores."""
    tokens, room, longest = (int(rng.integers(*ends)) for ends in ((9, 13), (5, 10), (2, 5)))
    ranges = window_ranges(tokens, room, int(rng.integers(2, 5)))
    central = central_windows(ranges, tokens)
    windows, scores = [], []
    for number, (start, end) in enumerate(ranges):
        zeros = np.zeros(FIRST + end - start + 1, int)
        windows.append(Window(zeros, zeros, start, end, FIRST, central[start:end] == number))
        starts, ends = rng.normal(0, 2, (2, len(zeros)))
        starts[0], ends[0] = rng.normal(3.5, 2, 2)
        scores.append((starts, ends))
    return windows, scores, float(rng.integers(-2, 3)), longest


def answer(
    windows: list[Window], scores: Scores, threshold: float, longest: int, *, null: Any = min
) -> Span:
    """The right answer, or with another null score than the lowest."""
    (best, *_), _ = decode(windows, iter(scores), max_answer_length=longest)
    lack = null([starts[0] + ends[0] for starts, ends in scores]) - best.score
    return None if lack > threshold else (best.first, best.last)


#: Prints whether `attempt(windows, scores, threshold, longest)` gives (first, last), or None.
check_answer = Check(
    [draw_case(np.random.default_rng(seed)) for seed in range(36)],
    answer,
    {
        "you take the highest null score of the windows. The null score is the lowest over the "
        "windows: one window that finds an answer is enough.": partial(answer, null=max),
        "you ignore the threshold. Compare null score − best score with it, not with 0.": (
            lambda windows, scores, limit, longest: answer(windows, scores, 0.0, longest)
        ),
        "you leave out the longest answers. From first to last there are last − first + 1 tokens.": (
            lambda windows, scores, limit, longest: answer(windows, scores, limit, longest - 1)
        ),
    },
    "one window contains the whole answer, and the lowest null score decides.",
    returns="two whole numbers, (first, last), or None",
    read=lambda value: None if value is None else plain([int(place) for place in value]),
    none_is_an_answer=True,
)
