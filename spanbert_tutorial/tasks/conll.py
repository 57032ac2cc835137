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
from collections.abc import Iterator
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
WANTED = "a file in CoNLL's format (also .xz, .gz), a folder or an archive of such files"
OUTSIDE = (
    "a row outside of a document, #begin and #end (`predict coreference` takes plain text as .txt)"
)


@dataclass(frozen=True)
class Document:
    """Sentences of words, and clusters of mentions, in the order of their first words. offsets: start
    and end of each word in a plain text, in characters."""

    name: str
    sentences: list[list[str]]
    clusters: list[list[Span]] = field(default_factory=list)
    part: str = "0"
    offsets: list[tuple[int, int]] = field(default_factory=list, compare=False, repr=False)

    @property
    def words(self) -> list[str]:
        return [word for sentence in self.sentences for word in sentence]

    def text(self, mention: Span) -> str:
        """The words of a mention, with spaces between."""
        return " ".join(self.words[mention[0] : mention[1] + 1])


def read(*paths: str | Path) -> Examples:
    """The documents of `.conll` files (also `.xz` or `.gz`), of folders of such files, or of archives
    (`.tar`, `.tar.xz`, `.tar.gz`, `.tgz`), in the order of their names. One that occurs twice counts
    once, and the result's `skipped` counts the others. Raises InputError naming file, line and
    reason, and where the clusters of one document differ."""
    found: dict[tuple, tuple[Document, str]] = {}
    count = 0
    for path in paths:
        before = count
        for name, text in files(Path(path)):
            for document in parse(text, name):
                count += 1
                key = document.name, document.part, tuple(document.words)
                first, file = found.setdefault(key, (document, name))
                wrong = f"the document {document.name} is in {file} and in {name}"
                same = first.clusters == document.clusters
                require(same, f"{wrong} with other clusters: leave one out.")
        mend = "give a file with at least one `#begin document` line"
        require(count > before, f"{path} holds no document: {mend}.")
    return Examples((document for document, _ in found.values()), count - len(found))


def files(path: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each file at a path, also inside an archive."""
    if not {".tar", ".tgz"} & {ending.lower() for ending in path.suffixes}:
        found = [one for one in files_in(path) if "conll" in one.name] if path.is_dir() else [path]
        require(found, f"{path} holds no file with conll in its name: give {WANTED}.")
        for file in found:
            yield str(file), read_text(file, WANTED)
        return
    try:
        with tarfile.open(path) as archive:
            for member in sorted(archive.getmembers(), key=lambda one: one.name):
                content = archive.extractfile(member)  # None for a folder
                inside = Path(member.name)
                if content is not None and "conll" in inside.name and not hidden(inside):
                    yield f"{path}, {inside.name}", content.read().decode("utf-8-sig")
    except (OSError, tarfile.TarError, UnicodeDecodeError, *BROKEN_PACKING) as error:
        raise InputError(f"{path} cannot be read ({error}): give {WANTED}.") from None


def parse(text: str, file: str) -> Iterator[Document]:
    """The documents of a file's text. file: its name, for messages."""
    document: Document | None = None  # that has begun
    count = 0  # of its words
    clusters: dict[str, list[Span]] = defaultdict(list)
    begun: dict[str, list[int]] = defaultdict(list)  # first words of mentions that have not ended
    for number, line in enumerate(lines_of(text), start=1):
        where = f"{file}, line {number}"
        if edge := EDGE.fullmatch(line):
            wrong = "#begin document and #end document do not take turns"
            require((edge[1] == "end") == bool(document), f"{where}: {wrong}; mend it.")
            if document:
                open_ = ", ".join(cluster for cluster, firsts in begun.items() if firsts)
                require(not open_, f"{where}: a mention of cluster {open_} never ends; mend it.")
                require(count, f"{where}: the document {document.name} holds no words; mend it.")
                document.sentences[:] = filter(None, document.sentences)
                document.clusters[:] = sorted(map(sorted, clusters.values()))
                yield document
                clusters.clear()
                count = 0
            document = None if document else Document(edge[2], [[]], part=edge[3] or "0")
        elif document and not visible(line):
            document.sentences.append([])
        elif visible(line) and not line.lstrip(SPACE).startswith("#"):  # no comment
            if not document:
                raise InputError(f"{where}: {OUTSIDE}.")
            word, mentions = word_and_mentions(line, where)
            document.sentences[-1].append(word)
            ended: set[Span] = set()  # at this word
            for begins, cluster, ends in mentions:
                if begins:
                    begun[cluster].append(count)
                if ends:
                    wrong = f"a mention of cluster {cluster} ends that has not begun"
                    require(begun[cluster], f"{where}: {wrong}; mend it.")
                    span = begun[cluster].pop(), count
                    told = f"{where}: two mentions have the same words; leave one out."
                    require(span not in ended, told)
                    ended.add(span)
                    clusters[cluster].append(span)
            count += 1
    require(not document, f"{file} ends inside a document; write #end document.")


def word_and_mentions(line: str, where: str) -> tuple[str, list[tuple[str, str, str]]]:
    """What a row says: its word, and ("(" or "", cluster, ")" or "") of each mention."""
    cells = [cell.strip(SPACE) for cell in line.rstrip(SPACE).split("\t")]
    if len(cells) < FEWEST:  # parted by spaces; only between tabs may one be empty
        cells = columns_of(line)
    there = len(cells) >= FEWEST and visible(cells[3]) and cells[3] != "[WORD]"
    wrong = f"a row has at least {FEWEST} columns, and a word in the fourth"
    require(there, f"{where}: {wrong}; mend it, or fill the corpus's skeleton by its own script.")
    texts = [] if cells[-1] in ("-", "_", "*") else cells[-1].split("|")
    for text in texts:
        mend = "write such as (7, 7) or (7), with | between several"
        require(BRACKET.fullmatch(text), f'{where}: "{text}" is no mention; {mend}.')
    return unescaped(cells[3]), BRACKET.findall("|".join(texts))
