"""The exception for bad input, and its one special kind, used by every room of the house."""

import re

LONGEST = 300  # characters of a message
SHOWN = 60  # of a value in a message that would be longer


class InputError(ValueError):
    """Bad input, said in one sentence that names the value or file and how to fix it.

    The command line prints the sentence and exits with code 2. `str` of it is one line of at most `LONGEST` characters,
    whatever the value was: long values lose their middle, and what a terminal would not show is written as its code.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class NoRoom(InputError):
    """Something cannot be written, for lack of room or of the right to; what was kept before is whole."""


def one_line(message: str) -> str:
    """The message as one printable line of at most `LONGEST` characters."""
    printable = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
    if len(printable) > LONGEST:
        printable = re.sub(rf"\S{{{SHOWN + 1},}}", lambda found: without_middle(found[0], SHOWN), printable)
    return without_middle(printable, LONGEST)


def without_middle(text: str, most: int) -> str:
    """The text with `most` characters, its beginning and its end, where it has more."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"
