"""Documents with coreference in CoNLL-2012's format. Chapter: `book/tasks/coreference`. No torch.

A file holds documents; a document is a row of words, a blank line ends a sentence, and a line with
`#` in front is a comment. Columns are parted by tabs, or else by spaces. The fourth column is the word,
the last gives the mentions that begin and end there: `(7` begins one of cluster 7, `7)` ends it,
`(7)` is one word long, `|` parts several, and `-` (also `_` or `*`) means none. Source:
CoNLL-2012's shared task.
"""

import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spanbert_tutorial.errors import InputError, require
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
EDGE = re.compile(r"# ?(begin|end) document[ \t]*\(?(.*?)\)?(?:; part (\w+))?[ \t]*")
BRACKET = re.compile(r"(?=.*[()])(\(?)(\w+)(\)?)")  # (7, 7) or (7)
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


def parse(lines: Iterable[str], file: str) -> Iterator[Document]:
    """The documents of a file's lines. file: its name, for messages."""
    begin: re.Match | None = None
    rows: list[tuple[str, str]] = []  # of the document that has begun: file and line, text
    for number, line in enumerate(lines, start=1):
        where = f"{file}, line {number}"
        if edge := EDGE.fullmatch(line):
            ends = edge[1] == "end"
            wrong = "ends that has not begun" if ends else "begins before the last has ended"
            require(ends == bool(begin), f"{where}: a document {wrong}; mend it.")
            if begin:
                yield document_of(begin, rows, where)
            begin, rows = None if ends else edge, []
        elif not line.lstrip(SPACE).startswith("#"):  # no comment
            require(begin or not visible(line), f"{where}: {OUTSIDE}.")
            rows.append((where, line))
    require(not begin, f"{file} ends inside a document; write #end document.")


OUTSIDE = (
    "a row outside of a document, #begin and #end (`predict coreference` takes plain text as .txt)"
)


def document_of(begin: re.Match, rows: Sequence[tuple[str, str]], end: str) -> Document:
    """A document from the line that begins it and its rows, each with the place in its file. end: the
    place where it ends."""
    sentences: list[list[str]] = [[]]
    clusters: dict[str, list[Span]] = defaultdict(list)
    # cluster → first words of the mentions that have not ended
    begun: dict[str, list[int]] = defaultdict(list)
    count = 0  # of words
    for where, line in rows:
        if not visible(line):
            sentences.append([])
            continue
        word, mentions = word_and_mentions(line, where)
        sentences[-1].append(word)
        for begins, cluster, ends in mentions:
            if begins:
                begun[cluster].append(count)
            if ends:
                wrong = f"a mention of cluster {cluster} ends that has not begun"
                require(begun[cluster], f"{where}: {wrong}; mend it.")
                clusters[cluster].append((begun[cluster].pop(), count))
        count += 1
    open_ = ", ".join(cluster for cluster, firsts in begun.items() if firsts)
    require(not open_, f"{end}: a mention of cluster {open_} begins that never ends; mend it.")
    require(count, f"{end}: the document {begin[2]} holds no words; mend it.")
    found = sorted(map(sorted, clusters.values()))
    return Document(begin[2], [*filter(None, sentences)], found, begin[3] or "0")


def word_and_mentions(line: str, where: str) -> tuple[str, list[tuple[str, str, str]]]:
    """What a row says: its word, and ("(" or "", cluster, ")" or "") of each mention."""
    cells = [cell.strip(SPACE) for cell in line.rstrip(SPACE).split("\t")]
    if len(cells) < FEWEST:  # parted by spaces; only between tabs may one be empty
        cells = columns_of(line)
    wrong = f"{len(cells)} columns, but a row has at least {FEWEST}"
    require(len(cells) >= FEWEST, f"{where}: {wrong}; mend it.")
    mend = "fill a skeleton with the corpus's own script"
    there = visible(cells[3]) and cells[3] != "[WORD]"
    require(there, f"{where}: the fourth column holds no word; {mend}.")
    texts = [] if cells[-1] in ("-", "_", "*") else cells[-1].split("|")
    for text in texts:
        mend = "write such as (7, 7) or (7), with | between several"
        require(BRACKET.fullmatch(text), f'{where}: "{text}" is no mention; {mend}.')
    return unescaped(cells[3]), BRACKET.findall("|".join(texts))
