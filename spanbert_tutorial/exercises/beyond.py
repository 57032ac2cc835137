"""Check for the exercise of `book/relatives/beyond`: masked spans in T5's format."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis, named, say
from spanbert_tutorial.relatives.beyond import span_corruption
from spanbert_tutorial.spanbert.span_masking import spans_of

Corruption = Callable[[list[int], list[bool], list[int]], tuple[list[int], list[int]]]
TEXT = list(range(10, 20))
SENTINELS = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]
# Spans inside, at the start, at the end, of one token and of several; nothing masked; everything
# masked.
MASKED: tuple[list[int], ...] = ([2, 3, 8], [0, 1, 5], [4, 7, 8, 9], [], list(range(10)))
CASES = [(TEXT, [at in masked for at in range(len(TEXT))], SENTINELS) for masked in MASKED]


def _case_in_words(ids: list[int], selected: list[bool], sentinels: list[int]) -> str:
    return f"with {np.flatnonzero(selected).tolist()} masked"


def _two_lists(answer: Any, *case: object) -> tuple[list[int], list[int]]:
    source, target = ([int(token) for token in part] for part in answer)
    return source, target


def right(
    ids: list[int], selected: list[bool], sentinels: list[int]
) -> tuple[list[int], list[int]]:
    """The package's answer."""
    source, target = span_corruption(np.array(ids), np.array(selected), sentinels)
    return source.tolist(), target.tolist()


def _mistake(
    answer: tuple, wanted: tuple, ids: list[int], selected: list[bool], sentinels: list[int]
) -> str:
    """What is wrong with the pair: both swapped, or the input, or the target."""
    if answer == wanted[::-1]:
        return "input and target are swapped."
    slips, part, name = (
        (_of_input, 0, "input") if answer[0] != wanted[0] else (_of_target, 1, "target")
    )
    known = named(answer[part], slips(wanted[part], np.array(ids), np.array(selected)))
    return known or f"the {name} should be {wanted[part]}, and yours is {answer[part]}."


def _of_input(right: list[int], ids: np.ndarray, chosen: np.ndarray) -> list[tuple[list[int], str]]:
    each = iter(SENTINELS)
    return [
        (
            [next(each) if masked else token for token, masked in zip(TEXT, chosen, strict=True)],
            "you give each masked token a sentinel. One sentinel replaces the whole span.",
        ),
        (ids[~chosen].tolist(), "the input has no sentinels: put one where each span was."),
        (
            [SENTINELS[0] if token in SENTINELS else token for token in right],
            "you give every span the same sentinel. That is BART's [MASK]; here each span has its own.",
        ),
        (ids.tolist(), "the input is the original text: cut the spans out."),
        (
            [token + 1 if token in SENTINELS else token for token in right],
            "you skip the first sentinel: begin with sentinels[0].",
        ),
        (
            [*right, SENTINELS[len(spans_of(chosen))]],
            "the closing sentinel is in the input. It belongs at the end of the target.",
        ),
    ]


def _of_target(
    right: list[int], ids: np.ndarray, chosen: np.ndarray
) -> list[tuple[list[int], str]]:
    spans = spans_of(chosen).tolist()
    behind = [
        part
        for mark, (a, b) in zip(SENTINELS, spans, strict=False)
        for part in (*TEXT[a : b + 1], mark)
    ]
    short = [
        part for mark, (a, b) in zip(SENTINELS, spans, strict=False) for part in (mark, *TEXT[a:b])
    ]
    return [
        (right[:-1], "the target has no closing sentinel, which marks its end."),
        (
            ids[chosen].tolist(),
            "the target has no sentinels, so the ends of the spans are lost.",
        ),
        (
            behind,
            "the sentinels come after their spans. Each sentinel comes first, then the tokens it "
            "replaces.",
        ),
        (
            [*behind, right[-1]],
            "the sentinels come after their spans. Each sentinel comes first, then the tokens it "
            "replaces.",
        ),
        (
            [*short, right[-1]],
            "the last token of each span is missing: `spans_of` gives the position of the last "
            "token itself.",
        ),
        (
            ids.tolist(),
            "the target is the whole text. That is BART's target; T5's contains only the masked "
            "tokens.",
        ),
    ]


diagnose_span_corruption = Diagnosis(
    cases=CASES,
    where=_case_in_words,
    read=_two_lists,
    returns="a pair, the input and the target. Put the parts of each together into one flat list "
    "of ids",
    right=right,
    otherwise=_mistake,
    correct="one sentinel for each span, and the target gives the tokens that it replaces.",
)


def check_span_corruption(attempt: Corruption) -> None:
    """Prints whether `attempt(ids, selected, sentinels)`, all lists, gives T5's (input, target) as
    two lists."""
    say(diagnose_span_corruption(attempt))
