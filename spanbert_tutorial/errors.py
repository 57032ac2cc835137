"""The exception for bad input, its one special kind, and what many rooms check alike."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

LONGEST = 400  # characters of a message
VALUE = 100  # characters of a value in a message


class InputError(ValueError):
    """Bad input, said in one sentence that names the value or file and how to fix it.

    The command line prints the sentence and exits with code 2. `str` of it is one line, whatever
    the value was, and what a terminal would not show is written as its code.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class NoRoom(InputError):
    """Something cannot be written, for lack of room or of the right to; what was kept before is
    whole."""


def one_line(message: str) -> str:
    """The message as one printable line, without its middle where it is long."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
    return without_middle(line, LONGEST)


def without_middle(text: str, most: int) -> str:
    """The text with `most` characters, its beginning and its end, where it has more."""
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


# --- what many rooms check alike ----------------------------------------------------


def require(condition: object, message: str) -> None:
    """Raises InputError with the message unless the condition holds."""
    if not condition:
        raise InputError(message)


@contextmanager
def reading(where: str, mend: str = "mend it") -> Iterator[None]:
    """What goes wrong with the data inside becomes one sentence: where (file and line), what, and
    how to mend it. An InputError stays as it is."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{where}: {what}; {mend}.") from error


def is_number(value: object) -> bool:
    """Whether a value is a real number that floats reach: not NaN, nor True or False, which Python
    takes as 1 and 0."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:  # a whole number such as 10**400
        return False


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, such as 3 or 3.0."""
    return isinstance(value, Real) and is_number(value) and value % 1 == 0


def check_text(what: str, *texts: str) -> None:
    """Raises InputError for what is no text, and for half a character (a lone surrogate), which no
    file can hold."""
    for text in texts:
        require(isinstance(text, str), f"{what} is {shown(text)}: give text.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            raise InputError(
                f"{what} holds half a character ({half}): mend its encoding."
            ) from None


def parse_json(text: str, **how: Any) -> Any:
    """The content of JSON. how: for `json.loads`. Raises ValueError for what is none, or is nested
    too deeply."""
    try:
        return json.loads(text, **how)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def shown(value: object) -> str:
    """A value as a message shows it, without its middle where it is long; by its kind where it is
    nested too deeply, or a number of too many digits."""
    try:
        return without_middle(repr(value), VALUE)
    except (RecursionError, ValueError):
        return f"a value of the kind {type(value).__name__}"
