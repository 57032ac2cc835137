"""Documents from files, from the hub, or of the almanac. Chapter: `book/spanbert/single_sequence`.

A document is a list of sentences. Files may be `.txt` (a blank line ends a document, as in BERT's
and SpanBERT's data), `.jsonl` (one document a line, under the key `text`), either of these packed
as `.xz` or `.gz`, or a folder of them. A name such as `Salesforce/wikitext:wikitext-103-raw-v1`
that is no path is read from the Hugging Face hub.
"""

import json
import lzma
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import IO

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError, check_text, regular_file
from spanbert_tutorial.text.lines import BROKEN_PACKING, OPENERS, lines_of, parse_data, visible
from spanbert_tutorial.text.sentences import Document, split_sentences

# OWNER/NAME or OWNER/NAME:CONFIGURATION
HUB_SET = re.compile(r"([\w.-]+/[\w.-]+)(?::([\w.-]+))?")
FORMS = (".txt", ".jsonl")


def form_and_packing(path: Path) -> tuple[str, str]:
    """(`.txt` or `.jsonl`, packing or ""), or ("", "") for a file of another kind."""
    packing = path.suffix if path.suffix in OPENERS else ""
    form = Path(path.stem).suffix if packing else path.suffix
    return (form, packing) if form in FORMS else ("", "")


def corpus_files(path: str | Path) -> list[Path]:
    """The readable files at a path, in the order of their names. Raises InputError when there is
    none."""
    path = Path(path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"the corpus {path} does not exist: give a .txt or .jsonl file (also .xz, .gz), a "
            f"folder, or "
            "OWNER/NAME of the Hugging Face hub."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"the corpus {path} cannot be read ({error}): give another, or mend that."
        ) from None
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    files = [file for file in files if form_and_packing(file)[0]]
    if not files:
        raise InputError(
            f"the corpus {path} holds no .txt or .jsonl file (also .xz, .gz): give one that does."
        )
    return files


def text_documents(lines: Iterable[str]) -> Iterator[str]:
    """Texts between blank lines."""
    kept: list[str] = []
    for line in lines:
        if visible(line):
            kept.append(line)
        elif kept:
            yield "".join(kept)
            kept = []
    if kept:
        yield "".join(kept)


def jsonl_documents(
    lines: Iterable[str], path: Path, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """The value of `text` on each line, without the documents whose `title` is to be left out."""
    for number, line in enumerate(lines, start=1):
        if not visible(line):
            continue
        try:
            document = parse_data(line)
            text = document["text"]
            check_text(
                "it", text
            )  # JSON can spell half a character (\ud83d alone), which no vocabulary can read
        except (ValueError, KeyError, TypeError):
            wrong = (
                f'{path}, line {number}: not a JSON object with a string under "text"; mend '
                f"that line."
            )
            raise InputError(wrong) from None
        if not left_out(document.get("title"), leave_out, f"{path}, line {number}"):
            yield text


class Titles(frozenset[str]):
    """Titles of documents to leave out; `skipped` are those that were found."""

    skipped: set[str]

    def __new__(cls, titles: Iterable[str] = ()) -> "Titles":
        new = super().__new__(cls, titles)
        new.skipped = set()
        return new


def left_out(title: object, leave_out: Collection[str], where: str) -> bool:
    """Whether a document is to be left out. Raises InputError for a title that is no text: it might
    be one of them."""
    if leave_out and not isinstance(title, str | None):
        raise InputError(
            f"{where}: the title is no string, so it cannot be compared with those to leave out; "
            f"mend it."
        )
    if not isinstance(title, str | None) or title not in leave_out:
        return False
    if isinstance(leave_out, Titles) and title is not None:
        leave_out.skipped.add(title)
    return True


def read_file(path: Path, leave_out: Collection[str] = ()) -> Iterator[str]:
    """Texts of the documents of one file."""
    form, packing = form_and_packing(path)
    opener = OPENERS[packing]
    try:
        with opener(
            regular_file(path), "rt", encoding="utf-8-sig"
        ) as lines:  # -sig: some editors put a mark in front
            yield from (
                text_documents(lines) if form == ".txt" else jsonl_documents(lines, path, leave_out)
            )
    except UnicodeDecodeError:
        raise InputError(not_utf8(path, opener)) from None
    except BROKEN_PACKING:
        raise InputError(f"{path} is not a whole {packing} file: pack or copy it again.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read: change its permissions.") from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): copy it to another place, or mend that."
        ) from None


def not_utf8(path: Path, opener: Callable[..., IO]) -> str:
    """What to say of a file in which there is a byte that is not UTF-8; a packed one may also break
    off after it."""
    try:
        return (
            f"{path} is not UTF-8 at byte {first_bad_byte(opener(path, 'rb')):,}: convert it "
            f"to UTF-8."
        )
    except BROKEN_PACKING:
        return f"{path} is not a whole {path.suffix} file: pack or copy it again."


def first_bad_byte(file: IO[bytes]) -> int:
    """Place of the first byte that is not UTF-8, counted from 0 in the unpacked file. Closes the
    file."""
    place = 0
    with file:
        for line in file:  # a line end is one byte in UTF-8 and never part of a character
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return place + error.start
            place += len(line)
    return place


def documents(path: str | Path, leave_out: Collection[str] = ()) -> Iterator[Document]:
    """Every document of a file or folder as its sentences; of `.jsonl` files not those whose
    `title` is in `leave_out`.

    Raises InputError naming the file and what to do.
    """
    found = False
    name = HUB_SET.fullmatch(str(path))
    if name and not Path(path).exists() and not form_and_packing(Path(path))[0]:
        texts = hub_texts(name[1], name[2], leave_out)
    else:
        texts = (text for file in corpus_files(path) for text in read_file(file, leave_out))
    for text in texts:
        if sentences := split_sentences(text):
            found = True
            yield sentences
    if not found:
        raise InputError(
            f"the corpus {path} holds no text: give a file with at least one sentence."
        )


def hub_rows(name: str, *configuration: str | None, **which: object) -> Iterable[dict]:
    """The rows of a set of the Hugging Face hub. which: for `datasets.load_dataset`, such as
    `split`.

    Raises InputError when there is no network, no such set, or no such part of it.
    """
    import datasets  # slow to import, and only this needs it

    datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(name, *configuration, **which)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        first_line = lines_of(str(error))[0] or type(error).__name__
        wrong = f"the set {name} of the Hugging Face hub cannot be read ({first_line})"
        raise InputError(f"{wrong}: check name and network, or give the path of a file.") from None


def hub_texts(
    name: str, configuration: str | None, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """The column `text` of a set's part `train`, read as it arrives, without the titles to leave
    out."""
    rows = iter(hub_rows(name, configuration, split="train", streaming=True))
    while (row := next_row(rows, name)) is not None:
        if not isinstance(row.get("text"), str):
            raise InputError(
                f"the set {name} has no column of strings called text: save it as a .jsonl that "
                f"has one."
            )
        if not left_out(row.get("title"), leave_out, f"the set {name}"):
            yield row["text"]


def next_row(rows: Iterator[dict], name: str) -> dict | None:
    """The next row as it arrives, or None at the end."""
    from datasets.exceptions import DatasetsError

    try:
        return next(rows, None)
    except (OSError, DatasetsError) as error:
        wrong = f"the set {name} of the Hugging Face hub broke off ({type(error).__name__})"
        raise InputError(f"{wrong}: check the network and start again.") from None


def read_almanac(split: str | None = None) -> Iterator[dict]:
    """The shipped documents of the almanac, all or those of one split (train, validation, test)."""
    with lzma.open(data_path("almanac", "documents.jsonl.xz"), "rt", encoding="ascii") as lines:
        for line in lines:
            document = json.loads(line)
            if split is None or document["split"] == split:
                yield document
