"""Texts with named stretches, and the files that hold them: CoNLL-2003's columns, JSON lines, plain
text. Chapter: `book/tasks/classification`.

Source of the format: CoNLL-2003 (Tjong Kim Sang and De Meulder, 2003): a word a row, the word first
and its tag last, a blank line between sentences. No torch.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spanbert_tutorial.errors import check_text, reading, require, shown
from spanbert_tutorial.text.lines import (
    SPACE,
    Examples,
    columns_of,
    kind_of_file,
    lines_of,
    parse_data,
    read_text,
    unescaped,
    visible,
)
from spanbert_tutorial.text.sentences import split_sentences

# (start, end, label): the characters start to end of a text name something of this label
Entity = tuple[int, int, str]
LabeledText = tuple[str, list[Entity]]
WANTED = (
    "CoNLL-2003's columns (.txt, .conll, .bio) or JSON lines (.jsonl), also packed as .xz or .gz"
)
TAG = re.compile(r"O|[BI]-(.+)")


def read(*paths: str | Path, labeled: bool = True) -> Examples:
    """The texts of files, each a sentence or a line, with their entities. labeled: whether tags have
    to be there; a `.txt` is then text, and its texts are its sentences.

    Raises InputError naming file, line and reason.
    """
    texts = Examples()
    for path in map(Path, paths):
        form = kind_of_file(path)
        before = len(texts)
        content = read_text(path, WANTED, translate=form != ".txt")
        if form == ".jsonl":
            texts += json_texts(content, path, labeled)
        elif form == ".txt" and not labeled:
            texts += ((sentence, []) for _, sentence in placed_sentences(content))
        else:
            texts += column_texts(content, path, labeled)
        require(len(texts) > before, f"{path} holds no text: give a file with at least one.")
    named = any(entities for _, entities in texts)
    told = f"no text of {', '.join(map(str, paths))} names anything"
    require(named or not labeled, f"{told}: give a file with tags, or use `predict`.")
    return texts


def placed_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text that hold something to see, and where each begins in it."""
    at = 0
    for sentence in filter(visible, split_sentences(text)):
        at = text.index(sentence, at)
        yield at, sentence
        at += len(sentence)


def json_texts(content: str, path: Path, labeled: bool) -> Iterator[LabeledText]:
    """The texts of JSON lines: `text`, and `entities` as lists [start, end, label] or as objects
    with these keys, in characters."""
    for number, line in enumerate(lines_of(content), start=1):
        if not visible(line):
            continue
        where = f"{path}, line {number}"
        with reading(where, 'write {"text": …, "entities": [[start, end, label], …]}'):
            row = parse_data(line)
            text = row["text"]
            given = row["entities"] if labeled else []
            keys = ("start", "end", "label")
            entities = sorted(
                tuple(map(one.get, keys) if isinstance(one, dict) else one) for one in given
            )
            check_text(f"{where}: the text", text)
            require(visible(text), f"{where}: the text is empty; write it.")
            end = 0
            for start, stop, label in entities:
                check_text(f"{where}: a label", label)
                fits = type(start) is type(stop) is int and end <= start < stop <= len(text)
                wrong = f"{where}: the {label} from {shown(start)} to {shown(stop)} is outside of the text"
                fits = fits and visible(text[start:stop])
                require(fits, f"{wrong}, empty, or overlaps another; mend it.")
                end = stop
        yield text, entities


def column_texts(content: str, path: Path, labeled: bool) -> Iterator[LabeledText]:
    """The sentences of columns, their words with spaces between. BIO: an I-label that follows no
    word of its label begins an entity, as in CoNLL's scorer and in its older files."""
    words: list[str] = []
    entities: list[Entity] = []
    before = "O"
    for number, line in enumerate([*lines_of(content), ""], start=1):
        if not visible(line) or line.startswith("-DOCSTART-"):
            if words:
                yield " ".join(words), entities
            words, entities, before = [], [], "O"
            continue
        where = f"{path}, line {number}"
        cells = columns_of(line.strip(SPACE))
        mend = "write a word and its tag, with a space or a tab between"
        require(len(cells) > 1 or not labeled, f"{where}: one column; {mend}.")
        tag = cells[-1] if labeled else "O"
        require(TAG.fullmatch(tag), f'{where}: "{tag}" is no tag: use O, B-label or I-label.')
        start = sum(map(len, words)) + len(words)
        words.append(unescaped(cells[0]))
        end = start + len(words[-1])
        if tag[0] == "I" and before[2:] == tag[2:]:
            entities[-1] = (entities[-1][0], end, tag[2:])
        elif tag != "O":
            entities.append((start, end, tag[2:]))
        before = tag
