"""Check for the exercise of `book/tasks/squad`."""

from spanbert_tutorial.exercises.diagnosis import Check
from spanbert_tutorial.tasks.squad import f1, normalize

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


def with_sets(prediction: str, gold: str) -> float:
    words, wanted = set(normalize(prediction).split()), set(normalize(gold).split())
    if not words or not wanted:
        return float(words == wanted)
    return 2 * len(words & wanted) / (len(words) + len(wanted))


#: Prints whether `attempt(prediction, gold)` gives the F1 of two texts.
check_f1 = Check(
    CASES,
    f1,
    {
        "you count a repeated word once. "
        "The words of an answer are a multiset: use `Counter`, not `set`.": with_sets,
        "this is the exact match. F1 counts the words that both share.": lambda one, two: float(
            normalize(one) == normalize(two)
        ),
        "this is in percent. Give a number from 0 to 1.": lambda *case: 100 * f1(*case),
    },
    "each word counts as often as both sides have it, and empty sides are handled.",
    returns="one number, from 0 to 1",
    read=float,
)
