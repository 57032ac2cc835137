"""Texts with named stretches, and the files that hold them: CoNLL-2003's columns, JSON lines, plain
text. Chapter: `book/tasks/classification`.

Source of the format: CoNLL-2003 (Tjong Kim Sang and De Meulder, 2003): a word a row, the word first
and its tag last, a blank line between sentences. No torch.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
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
from spanbert_tutorial.text.sentences import placed_sentences

# (start, end, label): the characters start to end of a text name something of this label
Entity = tuple[int, int, str]
LabeledText = tuple[str, list[Entity]]
WANTED = (
    "CoNLL-2003's columns (.txt, .conll, .bio) or JSON lines (.jsonl), also packed as .xz or .gz"
)
TAG = re.compile(r"O|[BI]-.+")


def read(*paths: str | Path, labeled: bool = True) -> Examples:
    """The texts of files, each a sentence or a line, with their entities. labeled: whether tags have
    to be there; a `.txt` without a tag in each line is then text, and its texts are its sentences.

    Raises InputError naming file, line and reason.
    """
    texts = Examples()
    for path in map(Path, paths):
        form = kind_of_file(path)
        before = len(texts)
        content = read_text(path, WANTED, translate=form != ".txt")
        if form == ".txt" and not labeled and not tagged(content):
            texts += ((sentence, []) for _, sentence in placed_sentences(content))
        else:
            lines = [(f"{path}, line {n}", line) for n, line in enumerate(lines_of(content), 1)]
            texts += (json_texts if form == ".jsonl" else column_texts)(lines, labeled)
        require(len(texts) > before, f"{path} holds no text: give a file with at least one.")
    named = any(entities for _, entities in texts)
    told = f"no text of {', '.join(map(str, paths))} names anything"
    require(named or not labeled, f"{told}: give a file with tags, or use `predict`.")
    return texts


def json_texts(lines: Iterable[tuple[str, str]], labeled: bool) -> Iterator[LabeledText]:
    """The texts of JSON lines (place, line): `text`, and `entities` as lists [start, end, label] or
    as objects with these keys, in characters."""
    keys = ("start", "end", "label")
    for where, line in lines:
        if not visible(line):
            continue
        with reading(where, 'write {"text": …, "entities": [[start, end, label], …]}'):
            row = parse_data(line)
            text, given = row["text"], row["entities"] if labeled else []
            entities = sorted(
                tuple(map(one.get, keys) if isinstance(one, dict) else one) for one in given
            )
            check_text(f"{where}: the text or a label", text, *(label for *_, label in entities))
            require(visible(text), f"{where}: the text is empty; write it.")
            at = 0
            for start, end, label in entities:
                fits = type(start) is type(end) is int and at <= start < end <= len(text)
                wrong = f"the {label} from {shown(start)} to {shown(end)} names nothing"
                named = fits and visible(text[start:end])
                require(named, f"{where}: {wrong}, or overlaps another; mend it.")
                at = end
        yield text, entities


def column_texts(lines: Iterable[tuple[str, str]], labeled: bool) -> Iterator[LabeledText]:
    """The sentences of columns (place, line), their words with spaces between."""
    mend = "write a word and its tag: O, B-label or I-label, with a space or a tab between"
    empty = groupby(lines, lambda one: not visible(one[1]) or one[1].startswith("-DOCSTART-"))
    for rows in (rows for between, rows in empty if not between):
        words: list[str] = []
        tags: list[str] = []
        for where, line in rows:
            word, *others = columns_of(line)
            words.append(unescaped(word))
            tags.append("".join(others[-1:]) if labeled else "O")
            require(TAG.fullmatch(tags[-1]), f'{where}: "{tags[-1]}" is no tag; {mend}.')
        begins = [*accumulate((len(word) + 1 for word in words), initial=0)]
        named = sorted(spans(tags))
        entities = [(begins[first], begins[last + 1] - 1, label) for first, last, label in named]
        yield " ".join(words), entities


def tagged(text: str) -> bool:
    """Whether each line of a text ends with a tag, so that a `.txt` holds columns."""
    ends = [columns_of(line)[1:][-1:] for line in lines_of(text) if visible(line)]
    return ["O"] in ends and all(end and TAG.fullmatch(end[0]) for end in ends)


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
