"""Checks for the exercise of `book/tasks/question_answering`."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis, combined, say
from spanbert_tutorial.tasks.windows import Window, central_windows, window_ranges

Scores = Sequence[tuple[np.ndarray, np.ndarray]]
Span = tuple[int, int] | None
Decoder = Callable[[list[Window], Scores, float, int], Span]
Case = tuple[list[Window], Scores, float, int]

FIRST = 4  # position of the first context token: [CLS], two tokens of the question, [SEP]
NULLS: dict[str, Callable[..., Any]] = {
    "least": min,
    "greatest": max,
    "mean": np.mean,
    "first": lambda nulls: nulls[0],
}
NULL = "the null score is the lowest over the windows: one window that finds an answer is enough"

RIGHT = {
    "order": True,
    "place": "context",
    "central": True,
    "more": 0,
    "null": "least",
    "cls": "S + E",
    "sign": 1,
    "limit": "threshold",
    "reached": False,
    "unit": "score",
    "over": "each",
    "apart": False,
    "counted": "context",
}
# A setting of `answer_with` that is wrong, and what to say.
MISTAKES = {
    (
        "order",
        False,
    ): "you let an answer end before it starts. Look only at pairs with first ≤ last",
    (
        "place",
        "question",
    ): "you let an answer be in the question, or extend from it into the context. Begin at "
    "`window.first`",
    (
        "central",
        False,
    ): "you count a span in every window that contains it. Take it only where `window.central` is "
    "True for its first token, which then has the most context",
    (
        "more",
        1,
    ): "you let an answer be one token too long. From first to last there are last − first + 1 tokens",
    (
        "more",
        -1,
    ): "you leave out the longest answers. From first to last there are last − first + 1 tokens",
    ("more", 999): "you let an answer be of any length. Keep to `longest` tokens",
    (
        "null",
        "greatest",
    ): f"you take the highest null score of the windows. {NULL[0].upper()}{NULL[1:]}",
    ("null", "mean"): f"you take the mean of the null scores. {NULL[0].upper()}{NULL[1:]}",
    ("null", "first"): f"you take the null score of one window only. {NULL[0].upper()}{NULL[1:]}",
    ("cls", "S"): "your null score is S of [CLS] alone. Add E of [CLS], as for every span",
    (
        "cls",
        "none",
    ): "you ignore null score and threshold. Return None when null score − best score is "
    "above the "
    "threshold",
    (
        "sign",
        -1,
    ): "you take the difference the wrong way around. There is no answer when null score − best score is "
    "above the threshold",
    (
        "limit",
        "zero",
    ): "you ignore the threshold. Compare null score − best score with it, not with 0",
    (
        "reached",
        True,
    ): "you count a difference equal to the threshold as no answer. Only above it there is none",
    (
        "unit",
        "share",
    ): "you compute probabilities in each window. A softmax depends on what else is in its "
    "window, so they cannot be compared across windows: compare the scores S + E",
    (
        "over",
        "merged",
    ): "you let an answer start in one window and end in another. No window has seen it as a whole: "
    "keep both ends in one window",
    ("over", "first"): "you look for the span in one window only. Go through all of them",
    ("apart", True): "you choose start and end separately. Choose the pair with the largest sum",
    (
        "counted",
        "input",
    ): "you give positions in the input. Give tokens of the context: + window.start − window.first",
    ("counted", "window"): "you count from the beginning of the window. Add `window.start`",
    (
        "counted",
        "after",
    ): "your second number is the token after the last. Give the last token itself",
}


def draw_cases() -> list[Case]:
    """(windows, scores, threshold, longest): contexts of 9 to 12 tokens in windows of 5 to 9, with
    random scores.

    In every sixth the null score is exactly at the threshold. Scores are multiples of 1/64, so sums
    are exact.
    """
    rng = np.random.default_rng(0)
    made: list[Case] = []
    for number in range(36):
        tokens = int(rng.integers(9, 13))
        room = int(rng.integers(5, 10))
        longest = int(rng.integers(2, 5))
        windows = some_windows(tokens, room, int(rng.integers(2, 5)))
        scores = [
            (starts, ends)
            for window in windows
            for starts, ends in [rng.normal(0, 2, (2, FIRST + window.end - window.start + 1))]
        ]
        threshold = float(rng.integers(-2, 3))
        for starts, ends in scores:
            starts[:] = np.round(64 * starts) / 64
            ends[:] = np.round(64 * ends) / 64
            starts[0], ends[0] = np.round(64 * rng.normal(3.5, 2, 2)) / 64
        if number % 6 == 0:
            gap = best_of(windows, scores, longest) + threshold
            nulls = [s[0] + e[0] for s, e in scores]
            for starts, _ in scores:
                starts[0] += gap - min(nulls)
        made.append((windows, scores, threshold, longest))
    return made


def some_windows(tokens: int, room: int, stride: int) -> list[Window]:
    """Windows on a context of so many tokens; all ids and segments are 0 here."""
    ranges = window_ranges(tokens, room, stride)
    winner = central_windows(ranges, tokens)
    zeros = [np.zeros(FIRST + end - start + 1, int) for start, end in ranges]
    return [
        Window(zeros[number], zeros[number], start, end, FIRST, winner[start:end] == number)
        for number, (start, end) in enumerate(ranges)
    ]


def _case_in_words(windows: list[Window], *_: object) -> str:
    return f"in case {next(number for number, case in enumerate(CASES) if case[0] is windows)}"


def _span(answer: Any, *case: object) -> Span:
    if answer is None:
        return None
    first, last = answer
    return index(first), index(last)  # whole numbers of NumPy and torch, too


# --- the answer, right or with mistakes ---------------------------------------------


def answer_with(
    windows: list[Window], scores: Scores, threshold: float, longest: int, **changed: Any
) -> Span:
    """The exercise's answer. changed: settings that differ from `RIGHT`."""
    rules: dict[str, Any] = RIGHT | changed
    if rules["unit"] == "share":
        scores = [(log_share(starts), log_share(ends)) for starts, ends in scores]
    nulls = [starts[0] + (ends[0] if rules["cls"] == "S + E" else 0) for starts, ends in scores]
    if rules["over"] == "merged":
        windows, scores = merged(windows, scores)
    if rules["over"] == "first":
        windows = windows[:1]
        scores = scores[:1]
    best, first, last, window = max(
        (best_pair(*both, longest, rules) for both in zip(windows, scores, strict=True)),
        key=lambda pair: pair[0],
    )
    difference = rules["sign"] * (NULLS[rules["null"]](nulls) - best)
    limit = threshold if rules["limit"] == "threshold" else 0.0
    if rules["cls"] != "none" and (
        difference > limit or (rules["reached"] and difference == limit)
    ):
        return None
    shift = {
        "context": window.start - window.first,
        "after": window.start - window.first,
        "input": 0,
        "window": -window.first,
    }[rules["counted"]]
    return int(first + shift), int(last + shift + (rules["counted"] == "after"))


def best_pair(
    window: Window, both: tuple, longest: int, rules: dict
) -> tuple[float, int, int, Window]:
    """(score, first and last position, window) of the best pair of a window."""
    starts, ends = both
    place = np.arange(len(starts))
    after = window.first + window.end - window.start
    inside = (
        (place >= window.first) & (place < after)
        if rules["place"] == "context"
        else (place > 0) & (place < after)
    )
    length = place[None] - place[:, None] + 1
    allowed = inside[:, None] & inside[None] & (length <= longest + rules["more"])
    if rules["order"]:
        allowed &= length >= 1
    if rules["central"]:
        central = np.ones(len(starts), dtype=bool)
        central[window.first : after] = window.central
        allowed &= central[:, None]
    if rules["apart"]:
        context = slice(window.first, after)
        first = window.first + int(np.argmax(starts[context]))
        last = window.first + int(np.argmax(ends[context]))
        return float(starts[first] + ends[last]), first, last, window
    values = np.where(allowed, starts[:, None] + ends[None], -np.inf)
    first, last = divmod(int(np.argmax(values)), len(starts))
    return float(values[first, last]), first, last, window


def best_of(windows: list[Window], scores: Scores, longest: int) -> float:
    """The score of the right span."""
    return max(best_pair(*both, longest, RIGHT)[0] for both in zip(windows, scores, strict=True))


def merged(windows: list[Window], scores: Scores) -> tuple[list[Window], Scores]:
    """One window for all: each token with its highest S and its highest E of any window."""
    tokens = windows[-1].end
    both = np.full((2, FIRST + tokens + 1), -np.inf)
    for window, pair in zip(windows, scores, strict=True):
        here = slice(FIRST + window.start, FIRST + window.end)
        both[:, here] = np.maximum(both[:, here], np.array(pair)[:, FIRST:-1])
    return some_windows(tokens, tokens, 1), [(both[0], both[1])]


def log_share(scores: np.ndarray) -> np.ndarray:
    """The logarithm of the softmax over a window."""
    return scores - np.log(np.exp(scores).sum())


CASES = draw_cases()
# What says nothing agrees with too few mistakes to name them one by one.
SILENT = (
    (lambda *case: None),
    "you never give an answer. End the function with a `return` of the span.",
)

diagnose_answer = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=_span,
    returns="two whole numbers, (first, last), or None",
    none_is_an_answer=True,
    right=answer_with,
    mistakes=[SILENT, *combined(answer_with, MISTAKES, max_count=2)],
    correct="one window contains the whole answer, and the lowest null score decides.",
)


def check_answer(attempt: Decoder) -> None:
    """Prints whether `attempt(windows, scores, threshold, longest)` gives (first, last) context
    token, or None."""
    say(diagnose_answer(attempt))
