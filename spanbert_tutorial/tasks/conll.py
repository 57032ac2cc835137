"""Documents with coreference in CoNLL-2012's format: read and written. Chapter:
`book/tasks/coreference`. No torch.

A file holds documents; a document is a row of words, a blank line ends a sentence, and a line with
`#` in front is a comment. Columns are parted by tabs, or else by spaces. The fourth column is the word,
the last gives the mentions that begin and end there: `(7` begins one of cluster 7, `7)` ends it,
`(7)` is one word long, `|` parts several, and `-` (also `_`, `*`, or nothing) means none. The rows of
a sentence have equally many columns. Source: CoNLL-2012's shared task.
"""

import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import InputError, shown
from spanbert_tutorial.text.lines import (
    BROKEN_PACKING,
    SPACE,
    columns_of,
    lines_of,
    read_text,
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
    """A text as sentences of words, and its clusters of mentions, in the order of their first
    words."""

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


def read(path: str | Path) -> list[Document]:
    """The documents of a `.conll` file (also `.xz` or `.gz`), of a folder of such files, or of an
    archive (`.tar`, `.tar.xz`, `.tar.gz`), in the order of their names. Raises InputError naming
    file, line and reason."""
    path = Path(path)
    documents = [one for name, lines in files(path) for one in parse(lines, name)]
    if not documents:
        raise InputError(
            f"{path} holds no document: give a file with at least one `#begin document` line."
        )
    return documents


WANTED = "a file in CoNLL's format (also .xz, .gz), a folder or an archive of such files"


def files(path: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Name and lines of each file at a path."""
    if ".tar" in path.suffixes:
        yield from archived(path)
        return
    inside = [path]
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if "conll" in file.name)
    for file in inside:
        yield str(file), lines_of(read_text(file, WANTED))


def archived(path: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Name and lines of each file of an archive."""
    try:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                content = archive.extractfile(member)  # None for a folder
                if content is not None and "conll" in Path(member.name).name:
                    text = content.read().decode("utf-8-sig")
                    yield f"{path}, {Path(member.name).name}", lines_of(text)
    except (OSError, tarfile.TarError, UnicodeDecodeError, *BROKEN_PACKING) as error:
        raise InputError(f"{path} cannot be read ({error}): give {WANTED}.") from None


def parse(lines: Iterable[str], name: str) -> Iterator[Document]:
    """The documents of a file's lines. name: of the file, for messages."""
    reader: Reader | None = None
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        edge = EDGE.match(line)
        if edge and edge[1] == "begin":
            if reader is not None:
                raise InputError(
                    f"{where}: a document begins before {reader.name} has ended; write #end "
                    "document."
                )
            reader = Reader(where, line)
        elif edge:
            if reader is None:
                raise InputError(
                    f"{where}: a document ends that has not begun; write #begin document before it."
                )
            yield reader.document(where)
            reader = None
        elif line.lstrip(SPACE).startswith("#"):
            continue  # a comment
        elif reader is not None:
            reader.add(where, line)
        elif visible(line):
            raise InputError(
                f"{where}: a row outside of a document; write #begin document (NAME); part 0 "
                "before it."
            )
    if reader is not None:
        raise InputError(
            f"{name}: the file ends inside the document {reader.name}; write #end document."
        )


def cells_of(line: str) -> list[str]:
    """The columns of a row: between tabs, which may leave one empty, or else between spaces."""
    if "\t" not in line:
        return columns_of(line)
    cells = [cell.strip(SPACE) for cell in line.split("\t")]
    return cells if len(cells) >= FEWEST else columns_of(line)


class Reader:
    """Collects the rows of one document."""

    def __init__(self, where: str, line: str):
        found = BEGIN.fullmatch(line)
        if not found:
            raise InputError(
                f"{where}: not a begin of a document; write #begin document (NAME); part 0."
            )
        self.name = found[1]
        self.part = found[2] or "0"
        self.sentences: list[list[str]] = [[]]
        self.columns = 0  # of the last row
        self.count = 0
        self.clusters: dict[str, list[Span]] = defaultdict(list)
        self.seen: set[Span] = set()
        # cluster → first words of the mentions that have not ended, and their lines
        self.open: dict[str, list[tuple[int, str]]] = defaultdict(list)

    def add(self, where: str, line: str) -> None:
        """A row, or the blank line that ends a sentence."""
        if not visible(line):
            if self.sentences[-1]:
                self.sentences.append([])
            return
        cells = cells_of(line)
        if len(cells) < FEWEST:
            raise InputError(
                f"{where}: a row needs at least {FEWEST} columns (the fourth is the word, the last "
                f"the coreference), and this one has {len(cells)}; mend it."
            )
        if self.sentences[-1] and len(cells) != self.columns:
            raise InputError(
                f"{where}: {len(cells)} columns, and the row before has {self.columns}; give the "
                "rows of a sentence equally many."
            )
        if not visible(cells[3]):
            raise InputError(f"{where}: the fourth column holds no word that can be seen; mend it.")
        if not cells[-1] and BRACKET.search(cells[-2]):
            raise InputError(
                f"{where}: the last column is empty, and the one before has {shown(cells[-2])}; "
                "take the tab at the end out."
            )
        self.columns = len(cells)
        self.sentences[-1].append(cells[3])
        if cells[-1] not in NOTHING:
            for text in cells[-1].split("|"):
                self.bracket(where, text.strip(SPACE))
        self.count += 1

    def bracket(self, where: str, text: str) -> None:
        """One of `(7`, `7)` and `(7)`, at the word that is being read."""
        found = BRACKET.fullmatch(text)
        if not found:
            raise InputError(
                f'{where}: "{text}" is no mention; write (7, 7) or (7), with | between several.'
            )
        alone, begins, ends = found.groups()
        if begins:
            self.open[begins].append((self.count, where))
        elif alone:
            self.mention(where, alone, self.count)
        elif not self.open[ends]:
            raise InputError(
                f"{where}: a mention of cluster {ends} ends that has not begun; mend its bracket."
            )
        else:
            self.mention(where, ends, self.open[ends].pop()[0])

    def mention(self, where: str, cluster: str, first: int) -> None:
        span = (first, self.count)
        if span in self.seen:
            words = [word for sentence in self.sentences for word in sentence][first:]
            raise InputError(
                f'{where}: the mention "{" ".join(words)}" is given twice; give each mention one '
                f"cluster."
            )
        self.seen.add(span)
        self.clusters[cluster].append(span)

    def document(self, where: str) -> Document:
        """What has been read; `where` it ended."""
        for cluster, begun in self.open.items():
            if begun:
                raise InputError(
                    f"{begun[0][1]}: a mention of cluster {cluster} begins that never ends; mend "
                    f"it."
                )
        sentences = [sentence for sentence in self.sentences if sentence]
        if not sentences:
            raise InputError(f"{where}: the document {self.name} holds no words; leave it out.")
        clusters = sorted(sorted(cluster) for cluster in self.clusters.values())
        return Document(self.name, sentences, clusters, self.part)


# --- writing ------------------------------------------------------------------------


def write(path: str | Path, documents: Iterable[Document]) -> None:
    """A file that `read` gives back as it was; whole or not at all. Raises InputError for two
    mentions of one cluster that cross, which the format cannot tell from two nested ones."""
    write_text(path, "\n".join(line for document in documents for line in rows(document)) + "\n")


def rows(document: Document) -> Iterator[str]:
    """The lines of a document."""
    brackets = last_column(document)
    yield f"#begin document ({document.name}); part {document.part}"
    number = 0
    for sentence in document.sentences:
        for place, word in enumerate(sentence):
            yield "\t".join(
                [
                    document.name,
                    document.part,
                    str(place),
                    word,
                    *"-------",
                    brackets.get(number, "-"),
                ]
            )
            number += 1
        yield ""
    yield "#end document"


def last_column(document: Document) -> dict[int, str]:
    """The coreference of each word at which a mention begins or ends. At one word the outer ones
    begin first, and the inner ones end first."""
    begins = defaultdict(list)
    ends = defaultdict(list)
    for number, cluster in enumerate(document.clusters):
        check_nested(document, cluster)
        for first, last in sorted(cluster, key=lambda span: (span[0], -span[1])):
            if first < last:
                begins[first].append((-last, f"({number}"))
                ends[last].append((-first, f"{number})"))
            else:
                begins[first].append((-last, f"({number})"))
    found = {}
    for word in begins.keys() | ends.keys():
        found[word] = "|".join(
            text for side in (ends, begins) for _, text in sorted(side.get(word, ()))
        )
    return found


def check_nested(document: Document, cluster: list[Span]) -> None:
    """Raises InputError when two of the mentions cross."""
    for first, last in cluster:
        for other, end in cluster:
            if first < other <= last < end:
                raise InputError(
                    f'"{document.text((first, last))}" and "{document.text((other, end))}" of '
                    f"{document.name} cross in one cluster: CoNLL's format cannot write that."
                )
