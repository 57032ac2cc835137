"""Documents with coreference in CoNLL-2012's format: read and written. Chapter:
`book/tasks/coreference`. No torch.

A file holds documents; a document is a row of words, a blank line ends a sentence. The fourth
column is the word, the last says which mentions begin and end there: `(7` begins one of cluster 7,
`7)` ends it, `(7)` is one word long, `|` stands between several, and `-` (also `_`, or nothing)
says that there are none. Source: CoNLL-2012's shared task.
"""

import lzma
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.corpora import OPENERS

Span = tuple[int, int]  # first and last word, counted from the document's first word
BEGIN = re.compile(r"#begin document \(?(.+?)\)?(?:; part (\w+))?\s*")
BRACKET = re.compile(r"\((\w+)\)|\((\w+)|(\w+)\)")
NOTHING, FEWEST = ("", "-", "_"), 5  # what the last column may say of no mention; columns of a row


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
    try:
        documents = [one for name, lines in files(path) for one in parse(lines, name)]
    except (OSError, EOFError, lzma.LZMAError, tarfile.TarError, UnicodeDecodeError) as error:
        wrong = f"{path} cannot be read ({error})"
        raise InputError(
            f"{wrong}: give a file in CoNLL's format, a folder or an archive of such."
        ) from None
    if not documents:
        raise InputError(
            f"{path} holds no document: give a file with at least one `#begin document` line."
        )
    return documents


def files(path: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Name and lines of each file at a path."""
    if ".tar" in path.suffixes:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                if member.isfile() and "conll" in Path(member.name).name:
                    content = archive.extractfile(member).read().decode("utf-8")
                    yield f"{path}, {Path(member.name).name}", content.split("\n")
    else:
        inside = (
            sorted(file for file in path.rglob("*") if "conll" in file.name)
            if path.is_dir()
            else [path]
        )
        for file in inside:
            with OPENERS.get(file.suffix, open)(
                file, "rt", encoding="utf-8-sig", newline="\n"
            ) as lines:
                yield str(file), lines


def parse(lines: Iterable[str], name: str) -> Iterator[Document]:
    """The documents of a file's lines. name: of the file, for messages."""
    reader: Reader | None = None
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        line = line.rstrip("\r\n")
        if line.startswith("#begin"):
            if reader is not None:
                raise InputError(
                    f"{where}: a document begins before {reader.name} has ended; write #end "
                    f"document."
                )
            reader = Reader(where, line)
        elif line.startswith("#end"):
            if reader is None:
                raise InputError(
                    f"{where}: a document ends that has not begun; write #begin document before it."
                )
            yield reader.document(where)
            reader = None
        elif reader is not None:
            reader.add(where, line)
        elif line.strip() and not line.startswith("#"):
            raise InputError(
                f"{where}: a row outside of a document; write #begin document (NAME); part 0 "
                f"before it."
            )
    if reader is not None:
        raise InputError(
            f"{name}: the file ends inside the document {reader.name}; write #end document."
        )


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
        self.count = 0
        self.clusters = defaultdict(list)
        self.seen = set()
        self.open: dict[str, list[tuple[int, str]]] = defaultdict(
            list
        )  # cluster → first words, and where they stand

    def add(self, where: str, line: str) -> None:
        """A row, or the blank line that ends a sentence."""
        if not line.strip():
            if self.sentences[-1]:
                self.sentences.append([])
            return
        columns = line.split("\t") if "\t" in line else line.split()
        if len(columns) < FEWEST or not columns[3].strip():
            raise InputError(
                f"{where}: a row needs at least {FEWEST} columns (the fourth is the word, the "
                f"last the "
                f"coreference), and this one has {len(columns)}; mend it."
            )
        self.sentences[-1].append(columns[3].strip())
        if columns[-1].strip() not in NOTHING:
            for bracket in columns[-1].strip().split("|"):
                self.bracket(where, bracket)
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
                f'{where}: the mention "{" ".join(words)}" stands twice; give each mention one '
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
