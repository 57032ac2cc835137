"""The check of the exercise on T5's format names each likely mistake."""

import numpy as np
import pytest

from spanbert_tutorial.exercises.beyond import check_span_corruption, diagnose_span_corruption
from spanbert_tutorial.spanbert.span_masking import spans_of


def right(ids, selected, sentinels):
    source = []
    target = []
    marks = iter(sentinels)
    for place, (token, hidden) in enumerate(zip(ids, selected, strict=True)):
        if hidden and not (place and selected[place - 1]):
            mark = next(marks)
            source.append(mark)
            target.append(mark)
        (target if hidden else source).append(token)
    return source, [*target, next(marks)]


def by_spans(ids, selected, sentinels):
    source = []
    target = []
    start = 0
    spans = spans_of(np.array(selected)).tolist()
    for mark, (a, b) in zip(sentinels, spans, strict=False):
        source += [*ids[start:a], mark]
        target += [mark, *ids[a : b + 1]]
        start = b + 1
    return np.array([*source, *ids[start:]]), np.array([*target, sentinels[len(spans)]])


@pytest.mark.parametrize("attempt", [right, by_spans])
def test_right_answers(attempt, capsys):
    check_span_corruption(attempt)
    assert capsys.readouterr().out.startswith("Correct")


def source_of(change):
    return lambda ids, selected, marks: (
        change(ids, selected, marks),
        right(ids, selected, marks)[1],
    )


def target_of(change):
    return lambda ids, selected, marks: (
        right(ids, selected, marks)[0],
        change(ids, selected, marks),
    )


def behind(ids, selected, marks):
    parts = zip(marks, spans_of(np.array(selected)).tolist(), strict=False)
    return [token for mark, (a, b) in parts for token in (*ids[a : b + 1], mark)]


def too_short(ids, selected, marks):
    spans = spans_of(np.array(selected)).tolist()
    parts = zip(marks, spans, strict=False)
    return [*(token for mark, (a, b) in parts for token in (mark, *ids[a:b])), marks[len(spans)]]


def one_each(ids, selected, marks):
    each = iter(marks)
    return [next(each) if hidden else token for token, hidden in zip(ids, selected, strict=True)]


MISTAKES = [
    (source_of(one_each), "replaces the whole span"),
    (
        source_of(
            lambda ids, selected, _: [
                i for i, hidden in zip(ids, selected, strict=True) if not hidden
            ]
        ),
        "no sentinels: put one",
    ),
    (
        source_of(lambda *given: [90 if i >= 90 else i for i in right(*given)[0]]),
        "every span the same",
    ),
    (source_of(lambda ids, *_: ids), "cut the spans out"),
    (source_of(lambda *given: [i + (i >= 90) for i in right(*given)[0]]), "begin with sentinels"),
    (
        source_of(lambda *given: right(*given)[0] + right(*given)[1][-1:]),
        "closing sentinel is in the input",
    ),
    (source_of(lambda *given: right(*given)[0][::-1]), "the input should be"),
    (target_of(lambda *given: right(*given)[1][:-1]), "no closing sentinel"),
    (
        target_of(
            lambda ids, selected, _: [i for i, hidden in zip(ids, selected, strict=True) if hidden]
        ),
        "ends of the spans are lost",
    ),
    (target_of(behind), "after their spans"),
    (target_of(lambda *given: [*behind(*given), right(*given)[1][-1]]), "after their spans"),
    (target_of(too_short), "last token of each span"),
    (target_of(lambda ids, *_: ids), "whole text"),
    (target_of(lambda *given: right(*given)[1][::-1]), "the target should be"),
    (lambda *given: right(*given)[::-1], "are swapped"),
    (lambda *_: None, "returns nothing"),
    (lambda ids, *_: ids, "Return a pair, the input and the target"),
    (lambda *given: ([right(*given)[0]], right(*given)[1]), "flat list"),
    (lambda ids, *_: ids[99], "IndexError"),
]


@pytest.mark.parametrize("attempt, words", MISTAKES, ids=[words for _, words in MISTAKES])
def test_each_mistake_has_its_message(attempt, words):
    message = diagnose_span_corruption(attempt)
    assert message.startswith("Not yet: ") and words in message, message
