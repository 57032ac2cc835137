"""Examples of relation extraction and the files that hold them: TACRED's JSON, SemEval-2010 Task
8's text. Chapter: `book/tasks/relation_extraction`.

Sources of the formats: TACRED (Zhang and others, 2017), SemEval-2010 Task 8 (Hendrickx and others,
2010). No torch.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.errors import InputError, reading, require, shown
from spanbert_tutorial.text.lines import (
    SPACE,
    Examples,
    kind_of_file,
    lines_of,
    parse_data,
    read_text,
    unescaped,
    visible,
)

# what TACRED and SemEval call a pair without a relation of the list
NO_RELATION = "no_relation"
OTHER = "Other"
FORMS = "give TACRED's JSON (.json) or SemEval's text (.txt), also packed as .xz or .gz"
MARKED = re.compile(r"(.*)<e1>(.+)</e1>(.*)<e2>(.+)</e2>(.*)")
MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
NUMBERED = re.compile(r'[ \t]*([^ \t"<]+) *\t[ \t]*"?(.*?)"?[ \t]*')  # a number, a tab, a sentence
COMMENT = re.compile(r"comments?[ \t]*:", re.IGNORECASE)
DIRECTION = re.compile(r"(.*?)[ \t]*\([ \t]*(e[12])[ \t]*,[ \t]*(e[12])[ \t]*\)")


class Argument(NamedTuple):
    """A name of an example: first and last word, counted from 0, and type, such as PERSON."""

    first: int
    last: int
    type: str = ""


class Example(NamedTuple):
    """A sentence with two marked names, and the relation of the subject to the object."""

    id: str
    words: tuple[str, ...]
    subject: Argument
    object: Argument
    relation: str


def negative_of(examples: Sequence[Example]) -> str:
    """The name of "none of the relations": SemEval's where it occurs, otherwise TACRED's."""
    return OTHER if any(example.relation == OTHER for example in examples) else NO_RELATION


def read(*paths: str | Path, labeled: bool = True) -> Examples:
    """The examples of files in TACRED's or SemEval's layout, told apart by `.json` and `.txt`. One
    that stands there twice counts once, and the result's `skipped` counts the others. labeled:
    whether relations have to be there; without one it is "".

    Raises InputError naming the file, the example or the line, and the reason.
    """
    read = [(path, example) for path in paths for example in read_one(Path(path), labeled)]
    found: dict[Example, Example] = {}
    for path, example in read:
        before = found.setdefault(example._replace(relation=""), example).relation
        both = f"as {before} and as {example.relation}"
        wrong = f"{path}: the example {example.id} stands there {both}"
        require(before == example.relation, f"{wrong}; leave one out.")
    examples = Examples(found.values())
    examples.skipped = len(read) - len(found)
    return examples


def read_one(path: Path, labeled: bool) -> list[Example]:
    """The examples of one file."""
    form = kind_of_file(path)
    require(form in (".json", ".txt"), f"{path} has neither .json nor .txt in its name: {FORMS}.")
    text = read_text(path, FORMS.removeprefix("give "))
    examples = [*(tacred_examples if form == ".json" else semeval_examples)(text, path, labeled)]
    require(examples, f"{path} holds no example: give a file with at least one.")
    return examples


# --- TACRED -------------------------------------------------------------------------


def tacred_examples(text: str, path: Path, labeled: bool = True) -> Iterator[Example]:
    """The examples of a JSON list. Last words are inclusive."""
    with reading(f"{path} is no JSON in TACRED's layout", "give a list of examples"):
        entries = list(parse_data(text))
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, example {number}"
        with reading(f"{where} is not in TACRED's layout"):
            example = Example(
                entry["id"],
                tuple(unescaped(word) for word in entry["token"]),
                Argument(entry["subj_start"], entry["subj_end"], entry["subj_type"]),
                Argument(entry["obj_start"], entry["obj_end"], entry["obj_type"]),
                entry["relation"] if labeled else "",
            )
            check(example, where)
        yield example


def check(example: Example, where: str) -> None:
    """Raises InputError unless the words are words and both names lie inside of them."""
    optional = (example.subject.type, example.object.type, example.relation)
    for text in (example.id, *example.words, *filter(None, optional)):  # JSON may hold anything
        wrong = f"{where}: {shown(text)} stands for an id, a word, a type or a relation"
        require(isinstance(text, str) and visible(text), f"{wrong}; write text.")
    for name, (first, last, _) in (("subject", example.subject), ("object", example.object)):
        require(
            type(first) is type(last) is int and 0 <= first <= last < len(example.words),
            f"{where}: the {name} has the words {shown(first)} to {shown(last)} of "
            f"{len(example.words)}; count from 0, the last word is inclusive.",
        )


# --- SemEval-2010 Task 8 ------------------------------------------------------------


def semeval_examples(text: str, path: Path, labeled: bool = True) -> Iterator[Example]:
    """The examples of SemEval's text: a line with number, tab and the marked sentence in quotes, a
    line with the relation, and perhaps a comment. A block ends where the next begins; blank lines
    count for nothing. e1 is the subject and e2 the object; types are not given."""
    blocks: list[list[tuple[int, str]]] = []  # of each example its lines, with their numbers
    for number, line in enumerate(lines_of(text), start=1):
        if not visible(line):
            continue
        if begins_example(line):
            blocks.append([])
        require(blocks, f"{path}, line {number}: {SENTENCE}")
        blocks[-1].append((number, line.strip(SPACE)))
    if labeled and blocks:
        wrong = f"{path}, line {blocks[0][0][0]}: no sentence of this file has a relation after it"
        require(any(map(has_relation, blocks)), f"{wrong}: give a labeled file, or use `predict`.")
    for block in blocks:
        yield semeval_example(block, path, labeled)


SENTENCE = "write a number, a tab and a sentence with <e1>…</e1> before <e2>…</e2>."


def begins_example(line: str) -> bool:
    """Whether a line is meant as the first of an example; a comment may quote a marked sentence."""
    if COMMENT.match(line):
        return False
    return any(marker in line for marker in MARKERS) or bool(NUMBERED.fullmatch(line))


def has_relation(block: Sequence[tuple[int, str]]) -> bool:
    """Whether the line after the sentence names a relation."""
    return len(block) > 1 and not COMMENT.match(block[1][1])


def semeval_example(block: Sequence[tuple[int, str]], path: Path, labeled: bool) -> Example:
    """One example from its lines, each with its number: sentence, relation, comment."""
    number, line = block[0]
    where = f"{path}, line {number}"
    if not labeled and "\t" not in line:
        line = f"{number}\t{line}"  # a plain text may go without numbers
    numbered = NUMBERED.fullmatch(line)
    found = numbered and MARKED.fullmatch(numbered[2])
    if not numbered or not found or any(line.count(marker) != 1 for marker in MARKERS):
        raise InputError(f"{where}: {SENTENCE}")
    mend = "the line after the sentence must name its relation"
    require(has_relation(block) or not labeled, f"{where}: {mend}.")
    for number, more in block[2:3]:
        mend = 'write "Comment:" before it, or take it out'
        wrong = f"{shown(more)} is neither a comment nor a new example"
        require(COMMENT.match(more), f"{path}, line {number}: {wrong}; {mend}.")
    before, first, between, second, after = (split_words(part) for part in found.groups())
    start = len(before) + len(first) + len(between)
    relation = block[1][1] if labeled else ""
    if direction := DIRECTION.fullmatch(relation):  # people put spaces into it
        relation = "{}({},{})".format(*direction.groups())
    words = (*before, *first, *between, *second, *after)
    subject = Argument(len(before), len(before) + len(first) - 1)
    thing = Argument(start, start + len(second) - 1)
    example = Example(numbered[1], words, subject, thing, relation)
    check(example, where)
    return example


def marked_places(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where e1 and e2 of each example of SemEval's text begin and end, in characters."""
    places = []
    for line in re.finditer(r"[^\r\n]+", text):
        if visible(line[0]) and begins_example(line[0]) and (found := MARKED.fullmatch(line[0])):
            (a, b), (c, d) = found.span(2), found.span(4)
            at = line.start()
            places.append(((a + at, b + at), (c + at, d + at)))
    return places
