"""What the checks of all exercises share, such as that of `book/bert/masking`: they call a reader's
function, refuse what is no answer, compare, and name the mistake.

An exercise is its cases, its right answer and its known mistakes::

    diagnose_mean = Diagnosis(
        cases=CASES,
        read=number,
        returns="one number",
        right=mean,
        mistakes=[(sum, "this is the sum. Divide it by the number of values.")],
        correct="each value counts once.",
    )
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from itertools import chain, combinations
from pathlib import Path
from textwrap import fill, shorten
from traceback import extract_tb
from typing import Any, NamedTuple

import numpy as np

WIDTH = 68  # of a printed line; it fits a page and a phone on its side
NEAR = {"rtol": 1e-5, "atol": 1e-6}  # numbers that differ by less are the same
NAN = (
    "Your answer contains nan, which is not a number: look for 0 / 0, for 0 · ln 0 and for the "
    "mean of nothing."
)

Value = Any  # whatever a reader's function returns
Mistake = tuple[Callable, str]  # what it computes from a case, and the sentence for the reader


class NotYet(Exception):
    """Why an answer is not right yet: a sentence, and the case in which it was seen."""

    def __init__(self, sentence: str, place: str = ""):
        super().__init__(f"{place}, {sentence}" if place else sentence)


class Answer(NamedTuple):
    """What a reader's function returns for a case."""

    case: tuple
    place: str  # the case in words, such as `for the word "rower"`
    value: Value


def say(sentence: str) -> None:
    """Prints a sentence in short lines."""
    print(fill(sentence, WIDTH))


def verdict(judge: Callable[[Callable], str]) -> Callable[[Callable], str]:
    """The judge as a function that returns one sentence: `Correct: …` with what the judge returns,
    or `Not yet: …` with the NotYet that it raises."""

    @wraps(judge)
    def diagnose(attempt: Callable) -> str:
        try:
            return f"Correct: {judge(attempt)}"
        except NotYet as problem:
            return f"Not yet: {problem}"

    return diagnose


def nothing(*_: object) -> str:
    """No words."""
    return ""


def as_it_is(value: Value, *case: object) -> Value:
    """The value itself."""
    return value


# --- asking -------------------------------------------------------------------------


def ask(
    attempt: Callable,
    cases: Iterable[tuple],
    *,
    where: Callable[..., str] = nothing,
    read: Callable[..., Value] = as_it_is,
    returns: str = "the answer",
    hint: Callable[..., str] = nothing,
    none_is_an_answer: bool = False,
) -> Iterator[Answer]:
    """Calls a reader's function on a copy of each case, lazily: each case when its answer is
    needed.

    where: `(*case)` → the case in words. read: `(value, *case)` → the answer as it is compared;
    whatever it raises means that the value has the wrong type or shape. returns: what the function
    should return, in words. hint: `(error, *case)` → a sentence to add when the function raises.
    Raises NotYet if the function raises, returns nothing, or returns what cannot be read.
    """
    for case in cases:
        place = where(*case)
        try:
            value = call(attempt, *deepcopy(case), hint=hint)
            if value is None and not none_is_an_answer:
                raise NotYet(
                    f"the function returns nothing. End every path through it with a `return` of "
                    f"{returns}."
                )
            answer = Answer(case, place, _readable(value, case, read, returns))
        except NotYet as problem:
            raise NotYet(str(problem), place) from None
        yield answer


def call(attempt: Callable, *given: object, hint: Callable[..., str] = nothing) -> Value:
    """What a reader's function returns. Raises NotYet with the type of the error, its text and its
    line if it raises."""
    try:
        return attempt(*given)
    except NotYet:
        raise
    except Exception as error:  # whatever the reader's code raises is the reader's message
        text = " ".join(str(error).split()).rstrip(".")
        text = f": {text}" if text else ""
        stopped = f"the function stopped with {type(error).__name__}{text}{_line_of(error)}."
        raise NotYet(f"{stopped} {hint(error, *given)}".rstrip()) from None


def _line_of(error: Exception) -> str:
    """The line of the reader's function that raised the error; empty when it was not entered."""
    here = Path(__file__).parent
    lines = (
        frame.line
        for frame in extract_tb(error.__traceback__)
        if Path(frame.filename).parent != here
    )
    line = next(lines, "")
    return f", in the line `{shorten(line, 80, placeholder=' …')}`" if line else ""


def _readable(value: Value, case: tuple, read: Callable[..., Value], returns: str) -> Value:
    try:
        return read(value, *case)
    except NotYet:
        raise
    except Exception:
        raise NotYet(f"the function returns {in_short(value)}. Return {returns}.") from None


def without_changing(attempt: Callable, sentence: str) -> Callable:
    """The reader's function; a call raises NotYet with this sentence when it changes an array that
    it was given."""

    def careful(*given: object) -> Value:
        before = deepcopy(given)
        value = attempt(*given)
        both = zip(given, before, strict=True)
        if any(isinstance(now, np.ndarray) and not same(now, then) for now, then in both):
            raise NotYet(sentence)
        return value

    return careful


# --- reading ------------------------------------------------------------------------


def number(value: Value, *case: object) -> float:
    """One number, from NumPy or torch, too. Raises TypeError or ValueError for anything else."""
    if isinstance(value, str) or np.ndim(value):
        raise ValueError
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, int) else float(value)


def array(value: Value, shape: tuple[int, ...], kind: type = object) -> np.ndarray:
    """The value as an array of numbers. Raises ValueError unless it is a `kind` of this shape."""
    numbers = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if not isinstance(value, kind) or numbers.shape != shape or numbers.dtype.kind not in "biuf":
        raise ValueError
    return numbers


def in_short(value: Value) -> str:
    """A value in a few words and its type: arrays and tensors with rows by their shape."""
    kind = type(value).__name__
    text = " ".join(repr(value).split())
    if hasattr(value, "shape") and (len(value.shape) > 1 or len(text) > 60):
        return f"a value of type {kind} and shape {tuple(value.shape)}"
    return f"{shorten(text, 60, placeholder=' …')} ({kind})"


def plain(value: Value) -> Value:
    """A value as lists and numbers to print. Six digits, so that a difference stays visible."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return float(f"{value:.6g}") if isinstance(value, float) else value


# --- comparing ----------------------------------------------------------------------


def same(one: Value, other: Value) -> bool:
    """Whether two answers agree: floats nearly, everything else exactly; nan agrees with nan."""
    if isinstance(one, list | tuple):
        return (
            isinstance(other, list | tuple)
            and len(one) == len(other)
            and all(map(same, one, other))
        )
    one = np.asarray(one)
    other = np.asarray(other)
    if one.shape != other.shape:
        return False
    kinds = one.dtype.kind + other.dtype.kind
    if "f" in kinds and set(kinds) <= set("biuf"):
        return np.allclose(one, other, **NEAR, equal_nan=True)
    return bool(np.all(one == other))


def differs(value: Value, gold: Value, *case: object) -> str:
    """The sentence for a mistake without a name."""
    return f"the right answer is {plain(gold)}, and yours is {plain(value)}."


def compare(
    answers: Iterable[Answer],
    right: Callable,
    mistakes: Iterable[Mistake],
    otherwise: Callable[..., str] = differs,
) -> None:
    """Does nothing if all answers are right, or else names the first mistake that explains them
    all.

    right: `(*case)` → the right answer. otherwise: `(value, gold, *case)` → a sentence on the
    first wrong answer, when no mistake explains the answers. Raises NotYet.
    """
    answers = list(answers)
    for known, sentence in chain([(right, "")], mistakes):
        if all(same(answer.value, known(*answer.case)) for answer in answers):
            if sentence:
                raise NotYet(sentence)
            return
    one_by_one(answers, right, otherwise)


def one_by_one(answers: Iterable[Answer], right: Callable, why: Callable[..., str]) -> None:
    """Does nothing if all answers are right, or else raises NotYet for the first that is not; the
    cases after it are not tried.

    why: `(value, gold, *case)` → a sentence on what is wrong.
    """
    for case, place, value in answers:
        gold = right(*case)
        if not same(value, gold):
            nan = NAN if _has_nan(value) else ""
            raise NotYet(f"{why(value, gold, *case)} {nan}".rstrip(), place)


def named(value: Value, mistakes: Iterable[tuple[Value, str]]) -> str:
    """The sentence of the first mistake that gives this value; empty when none does. mistakes:
    (value, sentence)."""
    return next((sentence for known, sentence in mistakes if same(value, known)), "")


def combined(
    answer_with: Callable[..., Value], mistakes: Mapping[tuple[str, Any], str], max_count: int
) -> Iterator[Mistake]:
    """Each mistake alone, then two at once, and so on up to `max_count`: the fewest that explain
    the answers come first.

    mistakes: (setting, wrong value) → the sentence, without a full stop. answer_with: `(*case,
    **settings)` → the answer with these settings wrong.
    """
    for count in range(1, max_count + 1):
        for together in combinations(mistakes, count):
            settings = dict(together)
            if len(settings) == count:  # one value for each setting
                sentences = dict.fromkeys(mistakes[mistake] for mistake in together)
                yield partial(answer_with, **settings), f"{'; and '.join(sentences)}."


def _has_nan(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_nan, value))
    value = np.asarray(value)
    return value.dtype.kind == "f" and bool(np.isnan(value).any())


# --- the pattern of an exercise -----------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """An exercise; calling it with a reader's function returns one sentence, `Correct: …` or
    `Not yet: …`.

    cases, where, read, returns, hint, none_is_an_answer: as in `ask`. right, mistakes, otherwise:
    as in `compare`; without mistakes `otherwise` names the mistake in the first wrong answer, and
    no further case is tried. correct: why the answer is right. prepare: what is done to the
    reader's function before it is called.
    """

    cases: Iterable[tuple]
    right: Callable[..., Value]
    mistakes: Sequence[Mistake] = ()
    otherwise: Callable[..., str] = differs
    correct: str
    where: Callable[..., str] = nothing
    read: Callable[..., Value] = as_it_is
    returns: str = "the answer"
    hint: Callable[..., str] = nothing
    none_is_an_answer: bool = False
    prepare: Callable[[Callable], Callable] = as_it_is

    def __call__(self, attempt: Callable) -> str:
        return verdict(self._judge)(attempt)

    def _judge(self, attempt: Callable) -> str:
        answers = ask(
            self.prepare(attempt),
            self.cases,
            where=self.where,
            read=self.read,
            returns=self.returns,
            hint=self.hint,
            none_is_an_answer=self.none_is_an_answer,
        )
        if self.mistakes:
            compare(answers, self.right, self.mistakes, self.otherwise)
        else:
            one_by_one(answers, self.right, self.otherwise)
        return self.correct
