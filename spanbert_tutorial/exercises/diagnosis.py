"""What the checks of all exercises share, such as that of `book/bert/masking`: they call a reader's
function, compare its answers with the right ones, and name a likely mistake."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from numbers import Real
from textwrap import fill, shorten
from typing import Any

WIDTH = 68  # of a printed line; it fits a page and a phone on its side


def say(sentence: str) -> None:
    """Prints a sentence in short lines."""
    print(fill(sentence, WIDTH))


def plain(value: Any) -> Any:
    """A value as lists and numbers: arrays and tensors by what is in them, tuples as lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def same(one: Any, other: Any) -> bool:
    """Whether two plain values agree: numbers nearly, everything else exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Real) and isinstance(other, Real):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-6)
    return bool(one == other)


def kind(value: Any) -> type:
    return Real if isinstance(value, Real) else type(value)


def stopped(error: Exception) -> str:
    return f"Not yet: the function stopped with {type(error).__name__}: {error}."


@dataclass(frozen=True)
class Check:
    """The check of an exercise. Calling it with a reader's function prints one sentence,
    `Correct: …` or `Not yet: …`, which `diagnose` returns.

    cases: the arguments of each call. right: `(*case)` → the right answer. mistakes: sentence →
    what a likely mistake computes. returns: what is wanted, in words, for an answer of another kind
    than the right ones. read: the answer as it is compared; whatever it raises means the same.
    """

    cases: Sequence[tuple]
    right: Callable
    mistakes: Mapping[str, Callable]
    correct: str
    returns: str
    read: Callable[[Any], Any] = plain

    def __call__(self, attempt: Callable) -> None:
        say(self.diagnose(attempt))

    def diagnose(self, attempt: Callable) -> str:
        rights = self._answers(self.right)
        answers = []
        for case in self.cases:
            try:
                value = attempt(*deepcopy(case))
            except Exception as error:  # whatever the reader's code raises
                return stopped(error)
            if value is None and None not in rights:
                return "Not yet: the function returns nothing. End every path with a `return`."
            try:
                answers.append(self.read(value))
                assert kind(answers[-1]) in map(kind, rights)
            except Exception:
                return f"Not yet: the function returns {_short(value)}. Return {self.returns}."
        if same(answers, rights):
            return f"Correct: {self.correct}"
        for sentence, mistake in self.mistakes.items():
            if same(answers, self._answers(mistake)):
                return f"Not yet: {sentence}"
        rows = zip(self.cases, answers, rights, strict=True)
        case, answer, gold = next(row for row in rows if not same(*row[1:]))
        given = ", ".join(map(_short, case))
        return f"Not yet: for {given}, the right answer is {_short(gold)}, and yours is {_short(answer)}."

    def _answers(self, function: Callable) -> list:
        return [self.read(function(*deepcopy(case))) for case in self.cases]


def _short(value: Any) -> str:
    return shorten(repr(plain(value)), 200, placeholder=" …")
