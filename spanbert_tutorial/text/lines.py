"""Lines and columns of data files, cut where an editor cuts them. Chapter:
`book/workshop/your_own_data`.

`str.splitlines` also cuts at U+2028, U+0085 and form feeds, which occur inside of sentences, and
`str.split` at no-break and ideographic spaces, which occur inside of words.
"""

import gzip
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spanbert_tutorial.engine.files import OPENERS
from spanbert_tutorial.errors import InputError, parse_json, require

BROKEN_PACKING = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError)
LINE_END = re.compile(r"\r\n|\r|\n")
GAP = re.compile(r"[ \t]+")
SPACE = " \t"
# separators, control, format and private characters: no tokenizer of BERT's kind has a token of them
NOT_VISIBLE = {"Zs", "Zl", "Zp", "Cc", "Cf", "Co"}


class Examples(list):
    """What was read of files. skipped: how many were left out, because the official file is known to
    hold broken ones, or because another file held them already."""

    def __init__(self, items: Iterable = (), skipped: int = 0) -> None:
        super().__init__(items)
        self.skipped = skipped


@contextmanager
def opened(path: Path, wanted: str, newline: str | None = None) -> Iterator[IO[str]]:
    """A text file in UTF-8 to read from, also packed as `.xz` or `.gz`, without a byte-order mark.

    wanted: what to give instead, for messages. newline: as of `open`. What is wrong with the file
    becomes an InputError that names it.
    """
    archive = kind_of_file(path) in (".tar", ".tgz", ".zip")
    require(not archive, f"{path} is an archive: unpack it, then give {wanted}.")
    opener = OPENERS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline=newline) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: give {wanted}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8: convert it to UTF-8.") from None
    except BROKEN_PACKING:
        raise InputError(f"{path} is not a whole {path.suffix} file: copy it again.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give {wanted}.") from None


def read_text(path: str | Path, wanted: str, translate: bool = True) -> str:
    """All text of such a file. translate: whether each line end becomes `\\n`."""
    with opened(Path(path), wanted, None if translate else "") as file:
        return file.read()


def kind_of_file(path: str | Path) -> str:
    """The ending of a file's name in lower case, without that of its packing: .json of `a.JSON.xz`."""
    path = Path(str(path).lower())
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
    """The files of a folder, in the order of their names, without hidden ones, such as a
    notebook's checkpoints."""
    found = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return [file for file in found if not hidden(file.relative_to(folder))]


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
    """Raises InputError when two columns have one name, so that it is ambiguous which is meant."""
    for name, often in Counter(names).items():
        told = f'{where}: {often} columns have the name "{name}"; rename or remove all but one.'
        require(often == 1 or not name, told)


def parse_data(text: str) -> Any:
    """The content of JSON. Raises ValueError for what is none, and for an object that has a key twice,
    so that it is ambiguous which value is meant."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise ValueError(f'an object has the key "{twice}" twice')
        return found

    return parse_json(text, object_pairs_hook=unique)
