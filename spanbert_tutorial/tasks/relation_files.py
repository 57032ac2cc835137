"""Examples of relation extraction and the files that hold them: TACRED's JSON, SemEval-2010 Task
8's text. Chapter: `book/tasks/relation_extraction`.

Sources of the formats: TACRED (Zhang and others, 2017), SemEval-2010 Task 8 (Hendrickx and others,
2010). No torch.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError, shown
from spanbert_tutorial.text.lines import OPENERS, SPACE, lines_of, parse_data, read_text, visible

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
    """One of the two names of an example: its first and last word, counted from 0, and its type,
    such as PERSON."""

    first: int
    last: int
    type: str = ""


class Example(NamedTuple):
    """A sentence with two marked names; does it tell a relation of the subject to the object, and
    which?"""

    id: str
    words: tuple[str, ...]
    subject: Argument
    object: Argument
    relation: str


@cache
def tacred_relations() -> dict[str, dict[str, list[str]]]:
    """The 41 relations of TACRED in groups: kind of subject → topic → names. `no_relation` is the
    42nd label."""
    return json.loads(data_path("tacred_relations.json").read_text(encoding="utf-8"))


def negative_of(examples: Sequence[Example]) -> str:
    """The name of "none of the relations": SemEval's where it occurs, otherwise TACRED's."""
    return OTHER if any(example.relation == OTHER for example in examples) else NO_RELATION


def read(*paths: str | Path) -> list[Example]:
    """The examples of files in TACRED's or SemEval's layout, told apart by `.json` and `.txt`.

    Raises InputError naming the file, the example or the line, and the reason.
    """
    return [example for path in paths for example in read_one(Path(path))]


def read_one(path: Path) -> list[Example]:
    """The examples of one file."""
    packing = path.suffix if path.suffix in OPENERS else ""
    form = Path(path.stem).suffix if packing else path.suffix
    if form not in (".json", ".txt"):
        raise InputError(f"{path} has neither .json nor .txt in its name: {FORMS}.")
    text = read_text(path, FORMS.removeprefix("give "))
    examples = list(
        tacred_examples(text, path) if form == ".json" else semeval_examples(text, path)
    )
    if not examples:
        raise InputError(f"{path} holds no example: give a file with at least one.")
    return examples


# --- TACRED -------------------------------------------------------------------------


def tacred_examples(text: str, path: Path) -> Iterator[Example]:
    """The examples of a JSON list; of their many keys the eight that a model needs. Last words are
    inclusive."""
    try:
        entries = parse_data(text)
    except ValueError as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): give a whole file.") from None
    if not isinstance(entries, list):
        raise InputError(f"{path} is not in TACRED's layout: it needs a list of examples.")
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, example {number}"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is not an object as in TACRED: mend it.")
        for field, kind in FIELDS.items():
            check_field(entry, field, kind, where)
        example = Example(
            entry["id"],
            tuple(entry["token"]),
            Argument(entry["subj_start"], entry["subj_end"], entry["subj_type"]),
            Argument(entry["obj_start"], entry["obj_end"], entry["obj_type"]),
            entry["relation"],
        )
        check(example, where)
        yield example


# what the eight keys have to hold
FIELDS = {
    "id": str,
    "token": list,
    "relation": str,
    "subj_start": int,
    "subj_end": int,
    "subj_type": str,
    "obj_start": int,
    "obj_end": int,
    "obj_type": str,
}
KINDS = {str: "text", list: "a list of words", int: "a whole number"}


def check_field(entry: dict, field: str, kind: type, where: str) -> None:
    """Raises InputError when a field is missing or holds something of another kind."""
    if field not in entry:
        raise InputError(f'{where} has no "{field}": add it.')
    value = entry[field]
    if type(value) is not kind or (isinstance(value, str) and not visible(value)):
        raise InputError(f'{where}: "{field}" is {shown(value)}; write {KINDS[kind]}.')


def check(example: Example, where: str) -> None:
    """Raises InputError unless the words are words and both names lie inside of them."""
    words: tuple[object, ...] = example.words  # JSON may hold anything
    for number, word in enumerate(words):
        if not isinstance(word, str) or not visible(word):
            raise InputError(
                f"{where}: word {number} of the sentence is {shown(word)}; write a word."
            )
    for name, (first, last, _) in (("subject", example.subject), ("object", example.object)):
        if not 0 <= first <= last < len(example.words):
            wrong = f"the {name} has the words {first} to {last} of {len(example.words)}"
            raise InputError(f"{where}: {wrong}; count from 0, the last word is inclusive.")


# --- SemEval-2010 Task 8 ------------------------------------------------------------


def semeval_examples(text: str, path: Path) -> Iterator[Example]:
    """The examples of SemEval's text: a line with number, tab and the marked sentence in quotes, a
    line with the relation, and perhaps a comment. A block ends where the next begins; blank lines
    count for nothing. e1 is the subject and e2 the object; types are not given."""
    blocks: list[list[tuple[int, str]]] = []  # of each example its lines, with their numbers
    for number, line in enumerate(lines_of(text), start=1):
        if not visible(line):
            continue
        if begins_example(line):
            blocks.append([])
        if not blocks:
            raise InputError(f"{path}, line {number}: {SENTENCE}")
        blocks[-1].append((number, line.strip(SPACE)))
    if blocks and not any(has_relation(block) for block in blocks):
        raise InputError(
            f"{path}, line {blocks[0][0][0]}: no sentence of this file has a relation in the line "
            "after it (a test file without labels?); give a labeled file."
        )
    for block in blocks:
        yield semeval_example(block, path)


SENTENCE = "write a number, a tab and a sentence with <e1>…</e1> before <e2>…</e2>."


def begins_example(line: str) -> bool:
    """Whether a line is meant as the first of an example; a comment may quote a marked sentence."""
    if COMMENT.match(line):
        return False
    return any(marker in line for marker in MARKERS) or bool(NUMBERED.fullmatch(line))


def has_relation(block: Sequence[tuple[int, str]]) -> bool:
    """Whether the line after the sentence names a relation."""
    return len(block) > 1 and not COMMENT.match(block[1][1])


def semeval_example(block: Sequence[tuple[int, str]], path: Path) -> Example:
    """One example from its lines, each with its number: sentence, relation, comment."""
    number, line = block[0]
    where = f"{path}, line {number}"
    numbered = NUMBERED.fullmatch(line)
    found = numbered and MARKED.fullmatch(numbered[2])
    if not numbered or not found or any(line.count(marker) != 1 for marker in MARKERS):
        raise InputError(f"{where}: {SENTENCE}")
    if not has_relation(block):
        raise InputError(f"{where}: the line after the sentence must name its relation.")
    if len(block) > 2 and not COMMENT.match(block[2][1]):
        raise InputError(
            f"{path}, line {block[2][0]}: {shown(block[2][1])} is neither a comment nor a new "
            'example; write "Comment:" before it, or take it out.'
        )
    before, first, between, second, after = (split_words(part) for part in found.groups())
    start = len(before) + len(first) + len(between)
    example = Example(
        numbered[1],
        (*before, *first, *between, *second, *after),
        Argument(len(before), len(before) + len(first) - 1),
        Argument(start, start + len(second) - 1),
        relation_of(block[1][1]),
    )
    check(example, where)
    return example


def relation_of(line: str) -> str:
    """A relation without the spaces that people put into its direction, as in `( e1 , e2 )`."""
    found = DIRECTION.fullmatch(line)
    return f"{found[1]}({found[2]},{found[3]})" if found else line
