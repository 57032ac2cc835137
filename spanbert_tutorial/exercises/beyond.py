"""Check for the exercise of `book/relatives/beyond`: hidden spans in T5's format."""

from collections.abc import Callable
from textwrap import fill

import numpy as np

from spanbert_tutorial.relatives.beyond import span_corruption
from spanbert_tutorial.span_masking import spans_of

Corruption = Callable[[list[int], list[bool], list[int]], tuple[list[int], list[int]]]
TEXT = list(range(10, 20))
SENTINELS = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]
# Spans inside, at the start, at the end, of one token and of several; nothing hidden; everything hidden.
HIDDEN = ([2, 3, 8], [0, 1, 5], [4, 7, 8, 9], [], list(range(10)))


def check_span_corruption(attempt: Corruption) -> None:
    """Prints whether `attempt(ids, selected, sentinels)`, all lists, gives T5's (input, target) as two lists."""
    print(fill(diagnose_span_corruption(attempt), 68))


def diagnose_span_corruption(attempt: Corruption) -> str:
    """One sentence: correct, or the likely mistake."""
    for hidden in HIDDEN:
        selected = [place in hidden for place in range(len(TEXT))]
        try:
            answer = attempt(list(TEXT), list(selected), list(SENTINELS))
        except Exception as error:  # whatever the reader's code raises is the reader's message
            return f"Not yet: with {hidden} hidden the function stopped with {type(error).__name__}: {error}"
        problem = _form_mistake(answer) or _mistake(*map(_plain, answer), selected)
        if problem:
            return f"Not yet: with {hidden} hidden {problem}"
    return "Correct: one sentinel for each span, and the target says what each stands for."


def _plain(part: object) -> list[int]:
    return [int(value) for value in part]


def _form_mistake(answer: object) -> str:
    """What is wrong before any id is looked at; empty when nothing is."""
    if answer is None:
        return "the function returns nothing. End it with `return`."
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return "the result is not a pair. Return the input and the target, as two lists."
    try:
        for part in answer:
            _plain(part)
    except (TypeError, ValueError):
        return "the input or the target is not a flat list of ids: put the parts together into one list."
    return ""


def _mistake(source: list[int], target: list[int], selected: list[bool]) -> str:
    """The likely mistake; empty when both lists are right."""
    ids, chosen = np.array(TEXT), np.array(selected)
    right = tuple(part.tolist() for part in span_corruption(ids, chosen, SENTINELS))
    if (source, target) == right:
        return ""
    if (target, source) == right:
        return "input and target have changed places."
    if source != right[0]:
        return _input_mistake(source, right[0], ids, chosen)
    return _target_mistake(target, right[1], ids, chosen)


def _input_mistake(source: list[int], right: list[int], ids: np.ndarray, chosen: np.ndarray) -> str:
    each = iter(SENTINELS)
    slips = (
        ([next(each) if hidden else token for token, hidden in zip(TEXT, chosen, strict=True)],
         "each hidden token has a sentinel. One stands for the whole span."),
        (ids[~chosen].tolist(), "the input has no sentinels: put one where a span was."),
        ([SENTINELS[0] if token in SENTINELS else token for token in right],
         "every span has the same sentinel. That is BART's [MASK]; here each span has its own."),
        (ids.tolist(), "the input is the undamaged text: cut the spans out."),
        ([token + 1 if token in SENTINELS else token for token in right],
         "the first sentinel is left out: begin with sentinels[0]."),
    )  # fmt: skip
    for slip, sentence in slips:
        if source == slip and slip != right:
            return sentence
    if source == [*right, SENTINELS[len(spans_of(chosen))]]:
        return "the closing sentinel stands in the input. It belongs at the end of the target."
    return f"the input should be {right}, and yours is {source}."


def _target_mistake(target: list[int], right: list[int], ids: np.ndarray, chosen: np.ndarray) -> str:
    spans = spans_of(chosen).tolist()
    behind = [part for mark, (a, b) in zip(SENTINELS, spans, strict=False) for part in (*TEXT[a : b + 1], mark)]
    short = [part for mark, (a, b) in zip(SENTINELS, spans, strict=False) for part in (mark, *TEXT[a:b])]
    slips = (
        (right[:-1], "the target has no closing sentinel, which says that nothing more comes."),
        (ids[chosen].tolist(), "the target has no sentinels: nobody could tell where one span ends."),
        (behind, "the sentinels stand behind their spans. Each comes first, then what it stands for."),
        ([*behind, right[-1]], "the sentinels stand behind their spans. Each comes first, then what it stands for."),
        ([*short, right[-1]], "the last token of each span is missing: `spans_of` gives the last place itself."),
        (ids.tolist(), "the target is the whole text. That is BART's target; T5's holds only what was hidden."),
    )
    for slip, sentence in slips:
        if target == slip and slip != right:
            return sentence
    return f"the target should be {right}, and yours is {target}."
