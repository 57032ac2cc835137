"""Check for the exercise of `book/tasks/real_questions`."""

from collections.abc import Sequence
from statistics import fmean

from spanbert_tutorial.exercises.diagnosis import Diagnosis

VALUES = [1.0, 0.0, 0.5, 0.0, 0.25, 1.0]
TITLES = ["Oslo", "Oslo", "Oslo", "Tea", "Tea", "Chess"]
DRAWS = (
    ["Oslo", "Tea", "Chess"],
    ["Tea", "Tea", "Chess"],
    ["Chess", "Chess", "Chess"],
    ["Oslo", "Chess", "Chess"],
    ["Tea", "Tea", "Tea", "Oslo"],
)
Texts = Sequence[str]


def drawn_values(values: Sequence[float], titles: Texts, drawn: Texts) -> list[float]:
    """The values of all questions of the drawn articles, as often as each was drawn."""
    pairs = list(zip(values, titles, strict=True))
    return [value for title in drawn for value, own in pairs if own == title]


def drawn_mean(values: Sequence[float], titles: Texts, drawn: Texts) -> float:
    """The mean over them."""
    return fmean(drawn_values(values, titles, drawn))


MISTAKES = (
    (
        lambda values, titles, drawn: drawn_mean(values, titles, sorted(set(drawn))),
        "you count an article once that was drawn twice. It contributes its questions twice.",
    ),
    (
        lambda values, titles, drawn: fmean(drawn_mean(values, titles, [one]) for one in drawn),
        "you take the mean of the articles' means. All questions have the same weight, "
        "so an article with more questions weighs more.",
    ),
    (
        lambda *case: sum(drawn_values(*case)) / len(VALUES),
        "you divide by the number of all questions. Divide by the number that was drawn.",
    ),
)

diagnose_draw = Diagnosis(
    [(VALUES, TITLES, drawn) for drawn in DRAWS],
    drawn_mean,
    MISTAKES,
    "a drawn article contributes all its questions, as often as it was drawn.",
    returns="one number",
    read=float,
)

#: Prints whether `attempt(values, titles, drawn)` gives the mean over the questions of the drawn
#: articles.
check_draw = diagnose_draw.say
