"""The exception for bad input, its one special kind, and the check of files; used by every room of the house."""

import errno
import os
import re
import stat
from pathlib import Path

LONGEST = 300  # characters of a message, unless it lists what we wrote ourselves, such as names of weights
VALUE, SHOWN = 100, 60  # in a longer message a value of more characters than the first is cut to the second


class InputError(ValueError):
    """Bad input, said in one sentence that names the value or file and how to fix it.

    The command line prints the sentence and exits with code 2. `str` of it is one short line, whatever the value was:
    long values lose their middle, and what a terminal would not show is written as its code.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class NoRoom(InputError):
    """Something cannot be written, for lack of room or of the right to; what was kept before is whole."""


def one_line(message: str) -> str:
    """The message as one printable line, shortened where it is too long to be read."""
    line = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in message)
    if len(line) > LONGEST:
        line = re.sub(rf"\S{{{VALUE + 1},}}", lambda found: without_middle(found[0], SHOWN), line)
    return without_middle(line, LONGEST) if len(line) > 2 * LONGEST else line


def without_middle(text: str, most: int) -> str:
    """The text with `most` characters, its beginning and its end, where it has more."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def regular_file(path: str | Path) -> Path:
    """The path, once it is known for a file that has an end: opening a pipe would wait for ever, and a device may have
    no end. Raises OSError for anything else, and where there is nothing."""
    kind = os.stat(path).st_mode
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    return Path(path)
