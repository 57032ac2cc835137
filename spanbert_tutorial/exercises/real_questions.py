"""Checks for the exercises of `book/tasks/real_questions`."""

from collections.abc import Callable, Sequence
from statistics import fmean
from textwrap import fill

from spanbert_tutorial.exercises.squad import number

Draw = Callable[[Sequence[float], Sequence[str], Sequence[str]], float]

VALUES, TITLES = [1.0, 0.0, 0.5, 0.0, 0.25, 1.0], ["Oslo", "Oslo", "Oslo", "Tea", "Tea", "Chess"]
DRAWS = [
    ["Oslo", "Tea", "Chess"],
    ["Tea", "Tea", "Chess"],
    ["Chess", "Chess", "Chess"],
    ["Oslo", "Chess", "Chess"],
    ["Tea", "Oslo", "Tea"],
    ["Tea", "Tea", "Tea", "Oslo"],
]


def check_draw(attempt: Draw) -> None:
    """Prints whether `attempt(values, titles, drawn)` gives the mean over the questions of the drawn articles."""
    print(fill(diagnose_draw(attempt), 68))


def diagnose_draw(attempt: Draw) -> str:
    """One sentence: correct, or the likely mistake."""
    answers = []
    for drawn in DRAWS:
        try:
            answer = attempt(list(VALUES), list(TITLES), list(drawn))
        except Exception as error:
            return f"Not yet: for the drawn articles {', '.join(drawn)} the function raises {type(error).__name__}."
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        answers.append(number(answer))
    if same(answers, drawn_mean):
        return "Correct: a drawn article brings all its questions, as often as it was drawn."
    named = next((sentence for mistake, sentence in MISTAKES if same(answers, mistake)), "")
    return f"Not yet: {named or first_difference(answers)}"


def same(answers: Sequence[float], draw: Draw) -> bool:
    """Whether the answers are those that a function gives to the draws."""
    wanted = [draw(VALUES, TITLES, drawn) for drawn in DRAWS]
    return all(abs(answer - value) < 1e-6 for answer, value in zip(answers, wanted, strict=True))


def first_difference(answers: Sequence[float]) -> str:
    pairs = [(drawn, drawn_mean(VALUES, TITLES, drawn), answer) for drawn, answer in zip(DRAWS, answers, strict=True)]
    drawn, wanted, answer = next(pair for pair in pairs if not abs(pair[1] - pair[2]) < 1e-6)
    return f"for the drawn articles {', '.join(drawn)} the mean is {wanted:.3f}, and you say {answer:.3f}."


def values_of(title: str, values: Sequence[float], titles: Sequence[str]) -> list[float]:
    """The values of one article's questions."""
    return [value for value, own in zip(values, titles, strict=True) if own == title]


def drawn_mean(values: Sequence[float], titles: Sequence[str], drawn: Sequence[str]) -> float:
    """The mean over all questions of the drawn articles."""
    return fmean(value for title in drawn for value in values_of(title, values, titles))


# --- the likely mistakes ------------------------------------------------------------------------------------------


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
    (each_once, "an article that was drawn twice counts once with you. It brings its questions twice."),
    (at_most_twice, "an article that was drawn three times counts twice with you. It brings its questions each time."),
    (mean_of_means, "you take the mean of the articles' means. A question shall weigh as much as any other, so an "
                    "article with more questions weighs more."),
    (over_all, "you divide by the number of all questions. Divide by the number that was drawn."),
    (lambda values, titles, drawn: fmean(values), "you do not look at what was drawn: this is the mean of all values."),
    (lambda values, titles, drawn: 100 * drawn_mean(values, titles, drawn),
     "this is in percent. Give the mean itself."),
    (lambda values, titles, drawn: sum(value for title in drawn for value in values_of(title, values, titles)),
     "this is the sum. Divide it by the number of questions that were drawn."),
]
