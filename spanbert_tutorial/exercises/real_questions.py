"""Checks for the exercises of `book/tasks/real_questions`."""

from collections.abc import Callable, Sequence
from statistics import fmean

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Draw = Callable[[Sequence[float], Sequence[str], Sequence[str]], float]

VALUES = [1.0, 0.0, 0.5, 0.0, 0.25, 1.0]
TITLES = ["Oslo", "Oslo", "Oslo", "Tea", "Tea", "Chess"]
DRAWS = [
    ["Oslo", "Tea", "Chess"],
    ["Tea", "Tea", "Chess"],
    ["Chess", "Chess", "Chess"],
    ["Oslo", "Chess", "Chess"],
    ["Tea", "Oslo", "Tea"],
    ["Tea", "Tea", "Tea", "Oslo"],
]
CASES = [(VALUES, TITLES, drawn) for drawn in DRAWS]


def values_of(title: str, values: Sequence[float], titles: Sequence[str]) -> list[float]:
    """The values of one article's questions."""
    return [value for value, own in zip(values, titles, strict=True) if own == title]


def drawn_mean(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    """The mean over all questions of the drawn articles."""
    return fmean(value for title in drawn for value in values_of(title, values, titles))


# --- the likely mistakes ------------------------------------------------------------


def each_once(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    return fmean(value for value, title in zip(values, titles, strict=True) if title in drawn)


def at_most_twice(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    often = {title: min(drawn.count(title), 2) for title in drawn}
    return drawn_mean(values, titles, [title for title in often for _ in range(often[title])])


def mean_of_means(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    return fmean(fmean(values_of(title, values, titles)) for title in drawn)


def over_all(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    return sum(value for title in drawn for value in values_of(title, values, titles)) / len(values)


MISTAKES: list[tuple[Draw, str]] = [
    (
        each_once,
        "you count an article once that was drawn twice. It contributes its questions twice.",
    ),
    (
        at_most_twice,
        "you count an article twice that was drawn three times. It contributes its questions "
        "each time.",
    ),
    (
        mean_of_means,
        "you take the mean of the articles' means. All questions have the same weight, "
        "so an article with more questions weighs more.",
    ),
    (over_all, "you divide by the number of all questions. Divide by the number that was drawn."),
    (
        lambda values, titles, drawn: fmean(values),
        "you do not look at what was drawn: this is the mean of all values.",
    ),
    (
        lambda values, titles, drawn: 100 * drawn_mean(values, titles, drawn),
        "this is in percent. Give the mean itself.",
    ),
    (
        lambda values, titles, drawn: sum(
            value for title in drawn for value in values_of(title, values, titles)
        ),
        "this is the sum. Divide it by the number of questions that were drawn.",
    ),
]


diagnose_draw = Diagnosis(
    cases=CASES,
    where=lambda values, titles, drawn: f"for the drawn articles {', '.join(drawn)}",
    read=number,
    returns="one number",
    right=drawn_mean,
    mistakes=MISTAKES,
    correct="a drawn article contributes all its questions, as often as it was drawn.",
)


def check_draw(attempt: Draw) -> None:
    """Prints whether `attempt(values, titles, drawn)` gives the mean over the questions of the
    drawn articles."""
    say(diagnose_draw(attempt))
