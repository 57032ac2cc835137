"""Checks for the exercises of `book/tasks/squad`."""

import re
import string
from collections import Counter
from collections.abc import Callable

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say
from spanbert_tutorial.tasks.squad import f1, normalize

Measure = Callable[[str, str], float]

CASES = [
    ("Denver Broncos", "Denver Broncos"),
    ("Broncos", "Denver Broncos"),
    ("the Denver Broncos", "Denver Broncos"),
    ("denver broncos", "Denver Broncos"),
    ("Denver Broncos.", "the Denver Broncos"),
    ("a theatre in another town", "theatre in town"),
    ("the Denver football team", "Denver Broncos"),
    ("Broncos Denver", "Denver Broncos"),
    ("ha ha ha", "ha ha"),
    ("ha", "ha ha"),
    ("New York New Jersey", "New York"),
    ("Carolina Panthers", "Denver Broncos"),
    ("", "Denver Broncos"),
    ("Denver Broncos", ""),
    ("", ""),
    ("the", ""),
]


def _case_in_words(prediction: str, gold: str) -> str:
    return f'for the prediction "{prediction}" and the gold answer "{gold}"'


def _how_to_go_on(error: Exception, *case: str) -> str:
    if isinstance(error, ZeroDivisionError):
        return "Without a shared word F1 is 0, and two empty sides give 1: check before you divide."
    return ""


# --- the likely mistakes, as measures -----------------------------------------------


def measure(
    split: Callable[[str], list[str]] = lambda text: normalize(text).split(),
    join: Callable[[float, float], float] = lambda precision, recall: (
        2 * precision * recall / (precision + recall)
    ),
    shared: Callable[[list[str], list[str]], int] = lambda one, other: sum(
        (Counter(one) & Counter(other)).values()
    ),
    both_empty: float = 1.0,
    one_empty: float = 0.0,
) -> Measure:
    """F1 with one step changed."""

    def changed(prediction: str, gold: str) -> float:
        words = split(prediction)
        wanted = split(gold)
        if not words or not wanted:
            return both_empty if words == wanted else one_empty
        count = shared(words, wanted)
        return join(count / len(words), count / len(wanted)) if count else 0.0

    return changed


def without(step: str) -> Callable[[str], list[str]]:
    """Normalizing without one of its steps."""

    def split(text: str) -> list[str]:
        text = text if step == "case" else text.lower()
        text = (
            text
            if step == "punctuation"
            else text.translate(str.maketrans("", "", string.punctuation))
        )
        articles = r"(a|an|the)" if step == "whole words" else r"\b(a|an|the)\b"
        return (
            text if step == "articles" else re.sub(articles, " ", text, flags=re.IGNORECASE)
        ).split()

    return split


def with_sets(prediction: str, gold: str) -> float:
    """Everything with sets: also the lengths."""
    return measure(split=lambda text: sorted(set(normalize(text).split())))(prediction, gold)


AS_SET = (
    "you count a repeated word once. The words of an answer are a multiset: use `Counter`, not "
    "`set`."
)
MISTAKES: list[tuple[Measure, str]] = [
    (with_sets, AS_SET),
    (measure(shared=lambda one, other: len(set(one) & set(other))), AS_SET),
    (
        measure(shared=lambda one, other: sum(word in other for word in one)),
        "you count a repeated word of the prediction every time, although the gold answer has it "
        "less often. It counts as often as both have it.",
    ),
    (
        measure(shared=lambda one, other: sum(word in one for word in other)),
        "you count a repeated word of the gold answer every time, although the prediction has it "
        "less often. It counts as often as both have it.",
    ),
    (
        measure(without("articles")),
        "you still count articles as words. Normalize both sides first.",
    ),
    (
        measure(lambda text: text.split()),
        "you compare the texts as they are. Normalize both sides first.",
    ),
    (
        measure(without("punctuation")),
        "you still count punctuation. Normalize both sides first.",
    ),
    (
        measure(without("case")),
        "you still distinguish upper and lower case. Normalize both sides first.",
    ),
    (
        measure(without("whole words")),
        "you remove articles inside words, too. Remove whole words only.",
    ),
    (
        measure(both_empty=0.0),
        "you give 0 to two empty sides. They agree, no answer and none expected, so F1 is 1.",
    ),
    (measure(one_empty=1.0), "you give 1 when only one side is empty. F1 is 0 there."),
    (
        measure(join=lambda precision, recall: (precision + recall) / 2),
        "you take the mean of precision and recall. F1 is their harmonic mean, 2PR / (P + R).",
    ),
    (
        measure(join=lambda precision, recall: precision),
        "this is the precision alone. F1 needs the recall, too.",
    ),
    (
        measure(join=lambda precision, recall: recall),
        "this is the recall alone. F1 needs the precision, too.",
    ),
    (
        measure(join=lambda precision, recall: precision * recall / (precision + recall)),
        "you leave out the factor 2.",
    ),
    (
        measure(shared=lambda one, other: sum(a == b for a, b in zip(one, other, strict=False))),
        "you compare word by word in order. F1 does not look at the order.",
    ),
    (
        lambda prediction, gold: float(normalize(prediction) == normalize(gold)),
        "this is the exact match. F1 counts the words that both share.",
    ),
    (
        lambda prediction, gold: 100 * f1(prediction, gold),
        "this is in percent. Give a number from 0 to 1.",
    ),
]


diagnose_f1 = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=number,
    returns="one number, from 0 to 1",
    hint=_how_to_go_on,
    right=f1,
    mistakes=MISTAKES,
    correct="each word counts as often as both sides have it, and empty sides are handled.",
)


def check_f1(attempt: Measure) -> None:
    """Prints whether `attempt(prediction, gold)` gives the F1 of two texts."""
    say(diagnose_f1(attempt))
