"""The check of the decoding exercise accepts right attempts, also written differently, and names
each mistake."""

import numpy as np
import pytest
import torch

from spanbert_tutorial.exercises.question_answering import (
    CASES,
    MISTAKES,
    answer_with,
    check_answer,
    diagnose_answer,
)
from spanbert_tutorial.tasks.windows import decode


def with_decode(windows, scores, threshold, longest):
    """By the package."""
    (best, *_), null = decode(windows, iter(scores), max_answer_length=longest)
    return None if null - best.score > threshold else (best.first, best.last)


def by_loops(windows, scores, threshold, longest):
    """As a reader may write it."""
    best = -np.inf
    span = None
    null = np.inf
    for window, (starts, ends) in zip(windows, scores, strict=True):
        null = min(null, starts[0] + ends[0])
        shift = window.first - window.start
        for i in range(window.start, window.end):
            for j in range(i, min(i + longest, window.end)):
                value = starts[i + shift] + ends[j + shift]
                if window.central[i - window.start] and value > best:
                    best = value
                    span = (i, j)
    return None if null - best > threshold else span


@pytest.mark.parametrize("attempt", [with_decode, by_loops])
def test_right_attempts(attempt, capsys):
    check_answer(attempt)
    assert capsys.readouterr().out.startswith("Correct")


def test_the_cases_are_fair():
    """Both kinds of answer, several windows, a gap exactly at the threshold, and one best span
    only."""
    answers = [answer_with(*case) for case in CASES]
    assert 8 < answers.count(None) < len(answers) - 8
    assert sum(len(windows) > 1 for windows, *_ in CASES) > 30
    ties = 0
    for windows, scores, threshold, longest in CASES:
        (best, second, *_), null = decode(windows, iter(scores), max_answer_length=longest)
        ties += null - best.score == threshold
        assert best.score > second.score
    assert ties >= 6


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named_and_told_from_all_others(mistake):
    said = diagnose_answer(lambda *case: answer_with(*case, **dict([mistake])))
    assert said == f"Not yet: {MISTAKES[mistake]}."
    assert "\n" not in said and len(MISTAKES) >= 8


def loops(
    central=True,
    order=True,
    extra=0,
    null=min,
    cls=lambda s, e: s[0] + e[0],
    none=lambda gap, limit: gap > limit,
    begin=None,
    shift=True,
):
    """An attempt as a reader may write it, with one thing wrong."""

    def attempt(windows, scores, threshold, longest):
        found = []
        nulls = []
        for window, (s, e) in zip(windows, scores, strict=True):
            nulls.append(cls(s, e))
            size = window.end - window.start
            places = range(window.first if begin is None else begin, window.first + size)
            for i in places:
                for j in places:
                    fits = j - i < longest + extra and (j >= i or not order)
                    shown = i < window.first or window.central[i - window.first] or not central
                    if fits and shown:
                        move = window.start - window.first if shift else 0
                        found.append((s[i] + e[j], i + move, j + move))
        best, first, last = max(found)
        return None if none(null(nulls) - best, threshold) else (first, last)

    return attempt


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum()


def probabilities(windows, scores, threshold, longest):
    """Products of probabilities, their logarithms compared across windows."""
    shares = [(softmax(s), softmax(e)) for s, e in scores]
    found = [
        (s[i] * e[j], i - w.first + w.start, j - w.first + w.start)
        for w, (s, e) in zip(windows, shares, strict=True)
        for i in range(w.first, w.first + w.end - w.start)
        if w.central[i - w.first]
        for j in range(i, min(i + longest, w.first + w.end - w.start))
    ]
    best, first, last = max(found)
    null = min(s[0] * e[0] for s, e in shares)
    return None if np.log(null) - np.log(best) > threshold else (first, last)


@pytest.mark.parametrize(
    ("attempt", "named"),
    [
        (loops(order=False), "end before it starts"),
        (loops(begin=1), "in the question"),
        (loops(central=False), "window.central"),
        (loops(extra=1), "one token too long"),
        (loops(extra=-1), "you leave out the longest answers"),
        (loops(extra=99), "any length"),
        (loops(null=max), "highest null score"),
        (loops(null=np.mean), "mean of the null scores"),
        (loops(cls=lambda s, e: s[0]), "Add E of [CLS]"),
        (loops(none=lambda gap, limit: -gap > limit), "wrong way around"),
        (loops(none=lambda gap, limit: gap >= limit), "equal to the threshold"),
        (loops(none=lambda gap, limit: gap > 0), "you ignore the threshold"),
        (loops(none=lambda gap, limit: False), "you ignore null score and threshold"),
        (loops(shift=False), "positions in the input"),
        (probabilities, "softmax depends"),
        (loops(null=max, extra=1), "; and "),
        (lambda *case: None, "never give an answer"),
        (lambda *case: [][0], "stopped with IndexError"),
        (lambda windows, scores, threshold, longest: (0, 0), "in case "),
    ],
)
def test_a_reader_s_mistake_is_named(attempt, named):
    said = diagnose_answer(attempt)
    assert said.startswith("Not yet: ") and named in said and said.endswith(".")


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (lambda first, last: (float(first), float(last)), ".0) (tuple)"),
        (lambda first, last: np.array([first, last], dtype=float), ".]) (ndarray)"),
        (lambda first, last: (first, last, 7.5), "7.5) (tuple)"),
        (lambda first, last: (first, last, last), ") (tuple)"),
        (lambda first, last: (first,), ",) (tuple)"),
        (lambda first, last: first, " (int)"),
        (lambda first, last: f"{first}{last}", "' (str)"),
        (lambda first, last: (first, None), "None) (tuple)"),
    ],
)
def test_what_is_no_pair_of_whole_numbers_is_refused(kind, shown):
    """Even where the numbers are right."""
    said = diagnose_answer(lambda *case: kind(*answer) if (answer := by_loops(*case)) else None)
    assert said.startswith("Not yet: in case 0, the function returns ")
    assert said.endswith(f"{shown}. Return two whole numbers, (first, last), or None.")


@pytest.mark.parametrize("kind", [list, np.array, lambda pair: tuple(np.array(pair)), torch.tensor])
def test_pairs_of_other_types_are_right(kind):
    assert diagnose_answer(
        lambda *case: kind(answer) if (answer := by_loops(*case)) else None
    ).startswith("Correct")
