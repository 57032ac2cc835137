"""Documents from files, from the hub, or of the almanac. Chapter: `book/spanbert/single_sequence`.

A document is a list of sentences. Files may be `.txt` (a blank line ends a document, as in BERT's
and SpanBERT's data), `.jsonl` (one document a line, under the key `text`), either of these packed
as `.xz` or `.gz`, or a folder of them. A name such as `Salesforce/wikitext:wikitext-103-raw-v1`
that is no path is read from the Hugging Face hub.
"""

import json
import lzma
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError, check_text, reading, require, shown
from spanbert_tutorial.text.lines import (
    files_in,
    kind_of_file,
    lines_of,
    opened,
    parse_data,
    visible,
)
from spanbert_tutorial.text.sentences import Document, split_sentences

# OWNER/NAME or OWNER/NAME:CONFIGURATION
HUB_SET = re.compile(r"([\w.-]+/[\w.-]+)(?::([\w.-]+))?")
FORMS = (".txt", ".jsonl")
ARTICLE = re.compile(r"<(/?)doc(?: [^>]*)?>")  # as articles are extracted from Wikipedia
TITLE = re.compile(r"= [^=].* =")  # as in WikiText; its sections have = = on each side


def hub_set(source: str | Path, *forms: str) -> tuple[str, str | None] | None:
    """(OWNER/NAME, what stands after the colon) where the source names a set of the hub; None for a
    path, also of no file yet, if it ends like one of the forms."""
    found = HUB_SET.fullmatch(str(source))
    path = Path(source)
    if not found or path.exists() or path.suffix.lower() in (*forms, ".xz", ".gz"):
        return None
    return found[1], found[2]


def corpus_files(path: str | Path) -> list[Path]:
    """The readable files at a path, in the order of their names. Raises InputError when there is
    none."""
    path = Path(path)
    told = f"the corpus {path} does not exist: give a file, a folder, or OWNER/NAME of the hub."
    require(os.path.exists(path), told)
    found = files_in(path) if path.is_dir() else [path]
    files = [file for file in found if kind_of_file(file) in FORMS]
    require(files, f"the corpus {path} holds no .txt or .jsonl (or .xz, .gz): give or unpack one.")
    return files


def text_documents(lines: Iterable[str]) -> Iterator[str]:
    """Texts between blank lines; in a file of articles, between `<doc …>` and `</doc>` or from one
    heading `= Title =` to the next, whatever blank lines they hold."""
    kept = ""
    article = False
    for line in lines:
        mark, title = ARTICLE.fullmatch(line.strip()), TITLE.fullmatch(line.strip())
        article = bool(title) or (article if mark is None else not mark[1])
        if kept and (mark or title or not (article or visible(line))):
            yield kept
            kept = ""
        if visible(line) and not mark:
            kept += line
    if kept:
        yield kept


def jsonl_documents(
    lines: Iterable[str], path: Path, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """The value of `text` on each line, without the documents whose `title` is to be left out."""
    for number, line in enumerate(lines, start=1):
        if visible(line):
            where = f'{path}, line {number}: not a JSON object with a string under "text"'
            with reading(where, "mend that line"):
                document = parse_data(line)
                text, title = document["text"], document.get("title")
                left_out = isinstance(title, str | None) and title in leave_out
                # JSON can spell half a character (\ud83d alone), which no vocabulary can read
                check_text(f"{path}, line {number}: text", text)
            if not left_out:
                yield text


class Titles(frozenset[str]):
    """Titles of documents to leave out; `skipped` are those that were asked for and found."""

    def __init__(self, titles: Iterable[str] = ()) -> None:
        self.skipped: set[object] = set()

    def __contains__(self, title: object) -> bool:
        if found := super().__contains__(title):
            self.skipped.add(title)
        return found


def read_file(path: Path, leave_out: Collection[str] = ()) -> Iterator[str]:
    with opened(path, "a .txt or .jsonl file") as lines:
        if kind_of_file(path) == ".txt":
            yield from text_documents(lines)
        else:
            yield from jsonl_documents(lines, path, leave_out)


def documents(path: str | Path, leave_out: Collection[str] = ()) -> Iterator[Document]:
    """Every document of a file or folder as its sentences; of `.jsonl` files and the hub not those
    whose `title` is in `leave_out`. Raises InputError naming the file and what to do."""
    if name := hub_set(path, *FORMS):
        rows = hub_texts(*name, leave_out)  # a row a document, or of WikiText a line
        texts = text_documents(line for text in rows for line in (f"{text}\n", ""))
    else:
        texts = (text for file in corpus_files(path) for text in read_file(file, leave_out))
    found = False
    for text in texts:
        if sentences := split_sentences(text):
            found = True
            yield sentences
    require(found, f"the corpus {path} holds no text: give a file with at least one sentence.")


def hub_rows(name: str, *configuration: str | None, **which: object) -> Iterator[dict]:
    """The rows of a set of the Hugging Face hub. which: for `datasets.load_dataset`, such as
    `split`. Raises InputError when there is no network, no such set, or no such part of it."""
    import datasets  # slow to import, and only this needs it

    datasets.disable_progress_bars()
    try:
        yield from datasets.load_dataset(name, *configuration, **which)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        first_line = lines_of(str(error))[0] or type(error).__name__
        wrong = f"the set {name} of the Hugging Face hub cannot be read ({first_line})"
        raise InputError(f"{wrong}: check name and network, or give the path of a file.") from None


def hub_texts(
    name: str, configuration: str | None, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """The column `text` of a set's part `train`, read as it arrives, without the titles to leave
    out."""
    for row in hub_rows(name, configuration, split="train", streaming=True):
        told = f"the set {name} has no column of strings called text: save it as .jsonl with one."
        require(isinstance(row.get("text"), str), told)
        if row.get("title") not in leave_out:
            yield row["text"]


def read_almanac(split: str | None = None) -> Iterator[dict]:
    """The shipped documents of the almanac, all or those of one split (train, validation, test)."""
    told = f"split is {shown(split)}: give train, validation or test, or None for all."
    require(split in (None, "train", "validation", "test"), told)
    with lzma.open(data_path("almanac", "documents.jsonl.xz"), "rt", encoding="ascii") as lines:
        for document in map(json.loads, lines):
            if split is None or document["split"] == split:
                yield document
