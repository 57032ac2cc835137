"""Lines and columns of data files, cut where an editor cuts them. Chapter:
`book/workshop/your_own_data`.

A line ends at `\\n`, `\\r\\n` or `\\r`, and nowhere else: `str.splitlines` also cuts at U+2028, U+0085 and form
feeds, which occur inside of sentences. Columns are parted by spaces and tabs only: `str.split` also cuts at no-break
and ideographic spaces, which occur inside of words. The readers of data use these functions instead.
"""

import gzip
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from spanbert_tutorial.errors import InputError, parse_json

OPENERS: dict[str, Callable[..., IO]] = {"": open, ".xz": lzma.open, ".gz": gzip.open}
BROKEN_PACKING = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError)
LINE_END = re.compile(r"\r\n|\r|\n")
GAP = re.compile(r"[ \t]+")
SPACE = " \t"
# separators, control, format and private characters: no tokenizer of BERT's kind has a token of them
NOT_VISIBLE = {"Zs", "Zl", "Zp", "Cc", "Cf", "Co"}


class Examples(list):
    """What was read of files. skipped: how many examples were left out, because the official file is
    known to hold broken ones, or because another file held them already."""

    skipped = 0


def read_text(path: str | Path, wanted: str, translate: bool = True) -> str:
    """The text of a file in UTF-8, also packed as `.xz` or `.gz`, without a byte-order mark.

    wanted: what to give instead, for messages. translate: whether each line end becomes `\\n`.
    Raises InputError naming the file and the reason.
    """
    path = Path(path)
    opener = OPENERS.get(path.suffix, open)
    newline = None if translate else ""
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline=newline) as file:
            return file.read()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: give {wanted}.") from None
    except (OSError, ValueError, *BROKEN_PACKING) as error:
        raise InputError(f"{path} cannot be read ({error}): give {wanted}, in UTF-8.") from None


def kind_of_file(path: str | Path) -> str:
    """The ending of a file's name, without that of its packing: .json of `a.json.xz`."""
    path = Path(path)
    return Path(path.stem).suffix if path.suffix in OPENERS else path.suffix


def lines_of(text: str) -> list[str]:
    return LINE_END.split(text)


def columns_of(line: str) -> list[str]:
    """The columns of a line, parted by spaces and tabs."""
    return GAP.split(line.strip(SPACE))


def visible(text: str) -> bool:
    """Whether a text holds a character that can be seen: no space, line end, byte-order mark, soft
    hyphen, replacement character or other sign without a shape."""
    letters = set(text) - {"\ufffd"}
    return any(unicodedata.category(letter) not in NOT_VISIBLE for letter in letters)


def files_in(folder: Path) -> list[Path]:
    """The files of a folder, in the order of their names, without those that are hidden or in a
    hidden folder, such as a notebook's checkpoints."""
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not hidden(file.relative_to(folder))
    ]


def hidden(path: Path) -> bool:
    """Whether a part of the path begins with a dot."""
    return any(part.startswith(".") for part in path.parts)


ESCAPES = {
    **{"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"},
    **{"/.": ".", "/?": "?", "/-": "-", "``": '"', "''": '"', "\\/": "/", "\\*": "*"},
}  # what treebanks write → what is meant
FILLER = re.compile(r"%[a-z]+")  # of speech, such as %um


def unescaped(word: str) -> str:
    """A word as the text had it, without the escapes of treebanks, such as -LRB- for a bracket."""
    if FILLER.fullmatch(word):
        return word[1:]
    return ESCAPES.get(word.upper(), word.replace("\\/", "/"))


def check_columns(names: Iterable[str], where: str) -> None:
    """Raises InputError when two columns have one name: it would be a guess which of them is meant."""
    for name, often in Counter(names).items():
        if often > 1 and name:
            raise InputError(
                f'{where}: {often} columns have the name "{name}"; rename or remove all but one.'
            )


def parse_data(text: str) -> Any:
    """The content of JSON. Raises ValueError for what is none, and for an object that has a key twice:
    it would be a guess which of the values is meant."""
    return parse_json(text, object_pairs_hook=object_of)


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f'an object has the key "{twice}" twice')
    return found
