"""What the checks of all exercises share, such as that of `book/bert/masking`: they ask a reader's
function, refuse what is no answer, compare, and name the mistake.

A check reads as cases, the right answer and the known mistakes::

    @verdict
    def diagnose_mean(attempt):
        answers = ask(attempt, CASES, read=number, returns="one number")
        compare(answers, mean, [(sum, "this is the sum. Divide it by the number of values.")])
        return "each value counts once."
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import partial, wraps
from itertools import chain, combinations
from pathlib import Path
from textwrap import fill, shorten
from traceback import extract_tb
from typing import NamedTuple

import numpy as np

WIDTH = 68  # of a printed line; it fits a page and a phone on its side
NEAR = {"rtol": 1e-5, "atol": 1e-6}  # numbers that differ by less are the same
NAN = (
    "Your answer has nan in it, which is no number: look for 0 / 0, for 0 · ln 0 and for the "
    "mean of nothing."
)

Mistake = tuple[
    Callable, str
]  # what it computes from a case, and the sentence for the person who made it


class NotYet(Exception):
    """Why an answer is not right yet: a sentence, and the case in which it was seen."""

    def __init__(self, sentence: str, place: str = ""):
        super().__init__(f"{place}, {sentence}" if place else sentence)


class Answer(NamedTuple):
    """What a reader's function gives in a case."""

    case: tuple
    place: str  # the case in words, such as `for the word "rower"`
    value: object


def say(sentence: str) -> None:
    """Prints a sentence in short lines."""
    print(fill(sentence, WIDTH))


def verdict(judge: Callable[[Callable], str]) -> Callable[[Callable], str]:
    """A judge's word in one sentence: `Correct: …` with what it returns, or `Not yet: …` when it
    raises NotYet."""

    @wraps(judge)
    def diagnose(attempt: Callable) -> str:
        try:
            return f"Correct: {judge(attempt)}"
        except NotYet as problem:
            return f"Not yet: {problem}"

    return diagnose


# --- asking -------------------------------------------------------------------------


def ask(
    attempt: Callable,
    cases: Iterable[tuple],
    *,
    where: Callable[..., str] = lambda *case: "",
    read: Callable = lambda value, *case: value,
    returns: str = "the answer",
    hint: Callable[..., str] = lambda error, *case: "",
    none_is_an_answer: bool = False,
) -> Iterator[Answer]:
    """Calls a reader's function on a copy of each case; one after the other, as the answers are
    wanted.

    where: `(*case)` → the case in words. read: `(value, *case)` → the answer as it is compared;
    whatever it raises means that the value has the wrong type or shape. returns: what the function
    should return, in words. hint: `(error, *case)` → a sentence for who hears that the function
    stopped. Raises NotYet if the function raises, returns nothing, or returns what cannot be read.
    """
    for case in cases:
        place = where(*case)
        try:
            value = call(attempt, *deepcopy(case), hint=hint)
            if value is None and not none_is_an_answer:
                raise NotYet(
                    f"the function returns nothing. End every way through it with a `return` of "
                    f"{returns}."
                )
            answer = Answer(case, place, _readable(value, case, read, returns))
        except NotYet as problem:
            raise NotYet(str(problem), place) from None
        yield answer


def call(
    attempt: Callable, *given: object, hint: Callable[..., str] = lambda error, *given: ""
) -> object:
    """What a reader's function returns. Raises NotYet with the kind of error, its text and its line
    if it raises."""
    try:
        return attempt(*given)
    except NotYet:
        raise
    except Exception as error:  # whatever the reader's code raises is the reader's message
        text = " ".join(str(error).split()).rstrip(".")
        said = (
            f"the function stopped with "
            f"{type(error).__name__}{': ' * bool(text)}{text}{_line_of(error)}."
        )
        raise NotYet(f"{said} {hint(error, *given)}".rstrip()) from None


def _line_of(error: Exception) -> str:
    """The line of the reader's function in which it stopped; empty when it did not begin."""
    here = Path(__file__).parent
    lines = (
        frame.line
        for frame in extract_tb(error.__traceback__)
        if Path(frame.filename).parent != here
    )
    line = next(lines, "")
    return f", in the line `{shorten(line, 80, placeholder=' …')}`" if line else ""


def _readable(value: object, case: tuple, read: Callable, returns: str) -> object:
    try:
        return read(value, *case)
    except NotYet:
        raise
    except Exception:
        raise NotYet(f"the function returns {in_short(value)}. Return {returns}.") from None


def without_changing(attempt: Callable, sentence: str) -> Callable:
    """The reader's function; calling it raises NotYet with this sentence when it changes an array
    that it was given."""

    def careful(*given: object) -> object:
        before = deepcopy(given)
        value = attempt(*given)
        both = zip(given, before, strict=True)
        if any(isinstance(now, np.ndarray) and not same(now, then) for now, then in both):
            raise NotYet(sentence)
        return value

    return careful


# --- reading ------------------------------------------------------------------------


def number(value: object, *case: object) -> float:
    """One number, also of NumPy or torch. Raises TypeError or ValueError for anything else."""
    if isinstance(value, str) or np.ndim(value):
        raise ValueError
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, int) else float(value)


def array(value: object, shape: tuple[int, ...], kind: type = object) -> np.ndarray:
    """An array of numbers. Raises ValueError unless the value is of that kind and has that
    shape."""
    found = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if not isinstance(value, kind) or found.shape != shape or found.dtype.kind not in "biuf":
        raise ValueError
    return found


def in_short(value: object) -> str:
    """A value in a few words and its type: arrays and tensors with rows by their shape."""
    kind = type(value).__name__
    text = " ".join(repr(value).split())
    if hasattr(value, "shape") and (len(value.shape) > 1 or len(text) > 60):
        return f"a value of the type {kind} and the shape {tuple(value.shape)}"
    return f"{shorten(text, 60, placeholder=' …')} ({kind})"


def plain(value: object) -> object:
    """A value as lists and numbers, rounded to six digits, to be shown: a difference stays
    visible."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return float(f"{value:.6g}") if isinstance(value, float) else value


# --- comparing ----------------------------------------------------------------------


def same(one: object, other: object) -> bool:
    """Whether two answers agree: numbers with a fraction nearly, all others exactly; nan agrees
    with nan."""
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


def differs(value: object, wanted: object, *case: object) -> str:
    """What is said of a mistake without a name."""
    return f"wanted is {plain(wanted)}, and yours is {plain(value)}."


def compare(
    answers: Iterable[Answer],
    right: Callable,
    mistakes: Iterable[Mistake],
    otherwise: Callable[..., str] = differs,
) -> None:
    """Does nothing if all answers are right, or else names the first mistake that explains them
    all.

    right: `(*case)` → the right answer. otherwise: `(value, wanted, *case)` → a sentence on the
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
    """Does nothing if all answers are right, or else raises NotYet for the first that is not; no
    other is asked then.

    why: `(value, wanted, *case)` → a sentence on what is wrong.
    """
    for case, place, value in answers:
        wanted = right(*case)
        if not same(value, wanted):
            raise NotYet(
                f"{why(value, wanted, *case)} {NAN if _has_nan(value) else ''}".rstrip(), place
            )


def named(value: object, mistakes: Iterable[tuple[object, str]]) -> str:
    """The sentence of the first mistake that gives this value; empty when none does. mistakes:
    (value, sentence)."""
    return next((sentence for known, sentence in mistakes if same(value, known)), "")


def combined(
    answer_with: Callable, mistakes: dict[tuple[str, object], str], most: int
) -> Iterator[Mistake]:
    """Each mistake alone, then two at once, and so on up to `most`: the fewest that explain the
    answers come first.

    mistakes: (setting, wrong value) → what to say, without a full stop. answer_with: `(*case,
    **settings)` → what is answered with these settings wrong.
    """
    for count in range(1, most + 1):
        for together in combinations(mistakes, count):
            if len(dict(together)) == count:  # one value for each setting
                meanings = dict.fromkeys(mistakes[mistake] for mistake in together)
                yield partial(answer_with, **dict(together)), f"{'; and '.join(meanings)}."


def _has_nan(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_nan, value))
    value = np.asarray(value)
    return value.dtype.kind == "f" and bool(np.isnan(value).any())
