"""Texts with named stretches, and the files that hold them: CoNLL-2003's columns, JSON lines, plain
text. Chapter: `book/tasks/classification`.

Source of the format: CoNLL-2003 (Tjong Kim Sang and De Meulder, 2003): a word a row, the word first
and its tag last, a blank line between sentences. No torch.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from spanbert_tutorial.errors import check_text, reading, require, shown
from spanbert_tutorial.text.lines import (
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
TAG = re.compile(r"O|[BI]-.+")


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
    keys = ("start", "end", "label")
    for number, line in enumerate(lines_of(content), start=1):
        if not visible(line):
            continue
        where = f"{path}, line {number}"
        with reading(where, 'write {"text": …, "entities": [[start, end, label], …]}'):
            row = parse_data(line)
            text = row["text"]
            given = row["entities"] if labeled else []
            entities = sorted(
                tuple(map(one.get, keys) if isinstance(one, dict) else one) for one in given
            )
            check_text(f"{where}: the text or a label", text, *(label for *_, label in entities))
            require(visible(text), f"{where}: the text is empty; write it.")
            at = 0
            for start, end, label in entities:
                fits = type(start) is type(end) is int and at <= start < end <= len(text)
                wrong = f"{where}: the {label} from {shown(start)} to {shown(end)} names nothing"
                require(
                    fits and visible(text[start:end]), f"{wrong}, or overlaps another; mend it."
                )
                at = end
        yield text, entities


def column_texts(content: str, path: Path, labeled: bool) -> Iterator[LabeledText]:
    """The sentences of columns, their words with spaces between."""
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*lines_of(content), ""], start=1):
        if visible(line) and not line.startswith("-DOCSTART-"):
            word, *others = columns_of(line)
            words.append(unescaped(word))
            tags.append("".join(others[-1:]) if labeled else "O")
            wrong = f'{path}, line {number}: "{tags[-1]}" is no tag'
            mend = "write a word and its tag: O, B-label or I-label, with a space or a tab between"
            require(TAG.fullmatch(tags[-1]), f"{wrong}; {mend}.")
        elif words:
            ends = [*accumulate(words, lambda end, word: end + 1 + len(word), initial=-1)][1:]
            entities = [
                (ends[first] - len(words[first]), ends[last], label)
                for first, last, label in sorted(spans(tags))
            ]
            yield " ".join(words), entities
            words, tags = [], []


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Entities (first word, last word, label) of a row of tags: O, B-label or I-label.

    As CoNLL's scorer reads it: an I-label without an entity of that label right before it begins
    one, as in its older files.
    """
    entities: list[tuple[int, int, str]] = []
    for word, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix == "I" and entities and entities[-1][1:] == (word - 1, label):
            entities[-1] = (entities[-1][0], word, label)
        elif prefix != "O":
            entities.append((word, word, label))
    return set(entities)
