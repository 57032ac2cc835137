"""The check of the F1 exercise accepts right attempts, also written differently, and names each
likely mistake."""

from collections import Counter

import pytest

from spanbert_tutorial.exercises.diagnosis import same
from spanbert_tutorial.exercises.squad import CASES, MISTAKES, check_f1, diagnose_f1
from spanbert_tutorial.tasks.squad import f1, normalize


def test_a_right_attempt(capsys):
    check_f1(f1)
    assert capsys.readouterr().out.startswith("Correct")


def test_a_right_attempt_written_differently():
    def other_way(prediction, gold):
        words = normalize(prediction).split()
        wanted = normalize(gold).split()
        rest = list(wanted)
        shared = 0
        for word in words:
            if word in rest:
                rest.remove(word)
                shared += 1
        return 2 * shared / (len(words) + len(wanted)) if words or wanted else 1

    assert diagnose_f1(other_way).startswith("Correct")


def counted(shared, join=lambda p, r: 2 * p * r / (p + r), prepare=normalize, both=1.0):
    """An attempt as a reader may write it, with one thing wrong."""

    def attempt(prediction, gold):
        words = prepare(prediction).split()
        wanted = prepare(gold).split()
        if not words or not wanted:
            return both if words == wanted else 0
        count = shared(words, wanted)
        return 0 if count == 0 else join(count / len(words), count / len(wanted))

    return attempt


def both(words, wanted):
    return sum((Counter(words) & Counter(wanted)).values())


def as_sets(prediction, gold):
    words = set(normalize(prediction).split())
    wanted = set(normalize(gold).split())
    if not words or not wanted:
        return float(words == wanted)
    return 2 * len(words & wanted) / (len(words) + len(wanted))


def no_questions_asked(prediction, gold):
    words = normalize(prediction).split()
    wanted = normalize(gold).split()
    precision = both(words, wanted) / len(words)
    recall = both(words, wanted) / len(wanted)
    return 2 * precision * recall / (precision + recall)


def no_punctuation(text):
    return "".join(c for c in text.lower() if c.isalnum() or c.isspace())


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (as_sets, "multiset"),
        (counted(lambda words, wanted: len(set(words) & set(wanted))), "multiset"),
        (
            counted(lambda words, wanted: sum(word in wanted for word in words)),
            "a repeated word of the prediction",
        ),
        (
            counted(lambda words, wanted: sum(word in words for word in wanted)),
            "a repeated word of the gold answer",
        ),
        (counted(both, prepare=no_punctuation), "articles"),
        (counted(both, prepare=str), "Normalize both sides"),
        (counted(both, both=0.0), "two empty sides"),
        (counted(both, join=lambda p, r: (p + r) / 2), "harmonic"),
        (counted(both, join=lambda p, r: p), "precision alone"),
        (counted(both, join=lambda p, r: r), "recall alone"),
        (counted(both, join=lambda p, r: p * r / (p + r)), "factor 2"),
        (lambda prediction, gold: normalize(prediction) == normalize(gold), "exact match"),
        (lambda prediction, gold: 100 * f1(prediction, gold), "percent"),
        (
            no_questions_asked,
            "ZeroDivisionError: float division by zero, in the line `return 2 * precision",
        ),
        (lambda prediction, gold: None, "returns nothing"),
        (lambda prediction, gold: [][1], "IndexError"),
        (lambda prediction, gold: 0.5, 'for the prediction "Denver Broncos"'),
        (
            lambda prediction, gold: float("nan"),
            "yours is nan. Your answer contains nan, which is not a number",
        ),
        (
            lambda prediction, gold: [f1(prediction, gold)],
            "returns [1.0] (list). Return one number",
        ),
    ],
)
def test_each_mistake_is_named(attempt, named):
    said = diagnose_f1(attempt)
    assert (
        said.startswith("Not yet: ") and named in said and "\n" not in said and said.endswith(".")
    )


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_each_listed_mistake_is_told_from_all_others(number):
    mistake, sentence = MISTAKES[number]
    answers = [mistake(*case) for case in CASES]
    assert not same(answers, [f1(*case) for case in CASES])
    assert diagnose_f1(mistake) == f"Not yet: {sentence}"
    assert [other for other, _ in MISTAKES if same(answers, [other(*case) for case in CASES])] == [
        mistake
    ]
