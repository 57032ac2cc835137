"""Documents with coreference in CoNLL-2012's format. Chapter: `book/tasks/coreference`. No torch.

A file holds documents; a document is a row of words, a blank line ends a sentence, and a line with
`#` in front is a comment. Columns are parted by tabs, or else by spaces. The fourth column is the word,
the last gives the mentions that begin and end there: `(7` begins one of cluster 7, `7)` ends it,
`(7)` is one word long, `|` parts several, and `-` (also `_`, `*`, or nothing) means none. Source:
CoNLL-2012's shared task.
"""

import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from spanbert_tutorial.errors import InputError, reading, require
from spanbert_tutorial.text.lines import (
    BROKEN_PACKING,
    SPACE,
    Examples,
    columns_of,
    files_in,
    hidden,
    lines_of,
    read_text,
    unescaped,
    visible,
)

Span = tuple[int, int]  # first and last word, counted from the document's first word
BEGIN = re.compile(r"# ?begin document[ \t]+\(?(.+?)\)?(?:; part (\w+))?[ \t]*")
EDGE = re.compile(r"#(?: (?=\w+ document))?(begin|end)\b")
BRACKET = re.compile(r"\((\w+)\)|\((\w+)|(\w+)\)")
NOTHING = ("", "-", "_", "*")  # what the last column may hold where there is no mention
FEWEST = 5  # columns of a row


@dataclass(frozen=True)
class Document:
    """Sentences of words, and clusters of mentions, in the order of their first words."""

    name: str
    sentences: list[list[str]]
    clusters: list[list[Span]] = field(default_factory=list)
    part: str = "0"

    @property
    def words(self) -> list[str]:
        return [word for sentence in self.sentences for word in sentence]

    def text(self, mention: Span) -> str:
        """The words of a mention, with spaces between."""
        return " ".join(self.words[mention[0] : mention[1] + 1])


def read(*paths: str | Path) -> Examples:
    """The documents of `.conll` files (also `.xz` or `.gz`), of folders of such files, or of archives
    (`.tar`, `.tar.xz`, `.tar.gz`), in the order of their names. One that stands there twice counts
    once, and the result's `skipped` counts the others. Raises InputError naming file, line and
    reason, and where the clusters of one document differ."""
    found: dict[tuple, tuple[Document, str]] = {}
    skipped = 0
    for path in paths:
        count = len(found) + skipped
        for name, lines in files(Path(path)):
            for document in parse(lines, name):
                key = (document.name, document.part, tuple(document.words))
                before, file = found.setdefault(key, (document, name))
                skipped += before is not document
                wrong = f"the document {document.name} stands in {file} and in {name}"
                same = before.clusters == document.clusters
                require(same, f"{wrong} with other clusters: leave one out.")
        mend = "give a file with at least one `#begin document` line"
        require(len(found) + skipped > count, f"{path} holds no document: {mend}.")
    documents = Examples(document for document, _ in found.values())
    documents.skipped = skipped
    return documents


WANTED = "a file in CoNLL's format (also .xz, .gz), a folder or an archive of such files"


def files(path: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Name and lines of each file at a path, also inside an archive."""
    if ".tar" not in path.suffixes:
        folder = files_in(path) if path.is_dir() else []
        for file in [file for file in folder if "conll" in file.name] or [path]:
            yield str(file), lines_of(read_text(file, WANTED))
        return
    try:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                content = archive.extractfile(member)  # None for a folder
                inside = Path(member.name)
                if content is not None and "conll" in inside.name and not hidden(inside):
                    text = content.read().decode("utf-8-sig")
                    yield f"{path}, {Path(member.name).name}", lines_of(text)
    except (OSError, tarfile.TarError, UnicodeDecodeError, *BROKEN_PACKING) as error:
        raise InputError(f"{path} cannot be read ({error}): give {WANTED}.") from None


def parse(lines: Iterable[str], name: str) -> Iterator[Document]:
    """The documents of a file's lines. name: of the file, for messages."""
    reader: Reader | None = None
    for number, line in enumerate(lines, start=1):
        edge = EDGE.match(line)
        with reading(f"{name}, line {number}"):
            if edge and edge[1] == "begin":
                fits(reader is None, "a document begins before the last has ended")
                reader = Reader(line)
            elif edge:
                fits(reader, "a document ends that has not begun")
                yield cast(Reader, reader).document()
                reader = None
            elif not line.lstrip(SPACE).startswith("#"):  # no comment
                fits(reader or not visible(line), OUTSIDE)
                if reader is not None:
                    reader.add(line)
    require(reader is None, f"{name} ends inside a document; write #end document.")


def fits(condition: object, wrong: str) -> None:
    """Raises ValueError saying what is wrong with a line unless the condition holds."""
    if not condition:
        raise ValueError(wrong)


OUTSIDE = (
    "a row outside of a document, #begin and #end (`predict coreference` takes plain text as .txt)"
)


class Reader:
    """Collects the rows of one document. Raises ValueError for a row that does not fit."""

    def __init__(self, line: str):
        found = BEGIN.fullmatch(line)
        fits(found, "not a begin of a document, #begin document (NAME); part 0")
        self.name, part = cast(re.Match, found).groups()
        self.part = part or "0"
        self.sentences: list[list[str]] = [[]]
        self.count = 0
        self.clusters: dict[str, list[Span]] = defaultdict(list)
        # cluster → first words of the mentions that have not ended
        self.open: dict[str, list[int]] = defaultdict(list)

    def add(self, line: str) -> None:
        """A row, or the blank line that ends a sentence."""
        if not visible(line):
            if self.sentences[-1]:
                self.sentences.append([])
            return
        cells = [cell.strip(SPACE) for cell in line.split("\t")]
        if len(cells) < FEWEST:  # parted by spaces; only between tabs may one be empty
            cells = columns_of(line)
        fits(len(cells) >= FEWEST, f"{len(cells)} columns, but a row has at least {FEWEST}")
        fits(visible(cells[3]), "the fourth column holds no word that can be seen")
        missing = "the words are missing, this is a skeleton; fill it with the corpus's own script"
        fits(cells[3] != "[WORD]", missing)
        shifted = not cells[-1] and BRACKET.search(cells[-2])
        fits(not shifted, "a tab at its end makes the last column empty")
        self.sentences[-1].append(unescaped(cells[3]))
        if cells[-1] not in NOTHING:
            for text in cells[-1].split("|"):
                self.bracket(text.strip(SPACE))
        self.count += 1

    def bracket(self, text: str) -> None:
        """One of `(7`, `7)` and `(7)`, at the word that is being read."""
        found = BRACKET.fullmatch(text)
        fits(found, f'"{text}" is no mention, such as (7, 7) or (7), with | between several')
        alone, begins, ends = cast(re.Match, found).groups()
        if begins:
            self.open[begins].append(self.count)
            return
        fits(alone or self.open[ends], f"a mention of cluster {ends} ends that has not begun")
        span = (self.count if alone else self.open[ends].pop(), self.count)
        self.clusters[alone or ends].append(span)

    def document(self) -> Document:
        """What has been read."""
        begun = [cluster for cluster, firsts in self.open.items() if firsts]
        fits(not begun, f"a mention of cluster {', '.join(begun)} begins that never ends")
        sentences = [sentence for sentence in self.sentences if sentence]
        fits(sentences, f"the document {self.name} holds no words")
        clusters = sorted(sorted(cluster) for cluster in self.clusters.values())
        return Document(self.name, sentences, clusters, self.part)
