"""Check for the exercise of `book/relatives/beyond`: masked spans in T5's format."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.relatives.beyond import span_corruption

TEXT = list(range(10, 20))
SENTINELS = list(range(90, 100))
# Spans inside, at the start, at the end, of one token and of several; nothing, everything masked.
MASKED: tuple[list[int], ...] = ([2, 3, 8], [0, 1, 5], [4, 7, 8, 9], [], list(range(10)))
CASES = [(TEXT, [at in masked for at in range(len(TEXT))], SENTINELS) for masked in MASKED]
Lists = tuple[list[int], list[int]]


def right(ids: list[int], selected: list[bool], sentinels: list[int]) -> Lists:
    source, target = span_corruption(np.array(ids), np.array(selected), sentinels)
    return source.tolist(), target.tolist()


def one_each(ids: list[int], selected: list[bool], sentinels: list[int]) -> Lists:
    marks = iter(sentinels)
    source = [next(marks) if hidden else i for i, hidden in zip(ids, selected, strict=True)]
    return source, right(ids, selected, sentinels)[1]


def unclosed(*case: list) -> Lists:
    source, target = right(*case)
    return source, target[:-1]


#: Prints whether `attempt(ids, selected, sentinels)`, lists, gives T5's input and target.
check_span_corruption = Check(
    CASES,
    right,
    {
        "you give each masked token a sentinel. One sentinel replaces the whole span.": one_each,
        "the target has no closing sentinel, which marks its end.": unclosed,
        "input and target are swapped.": lambda *case: right(*case)[::-1],
    },
    "one sentinel for each span, and the target gives the tokens that it replaces.",
    returns="a pair of lists of ids, the input and the target",
    read=lambda value: [plain(list(part)) for part in value],
)
