"""Examples of relation extraction and the files that hold them: TACRED's JSON, SemEval-2010 Task
8's text. Chapter: `book/tasks/relation_extraction`.

Sources of the formats: TACRED (Zhang and others, 2017), SemEval-2010 Task 8 (Hendrickx and others,
2010). No torch.
"""

import json
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.corpora import OPENERS

# what TACRED and SemEval call a pair without a relation of the list
NO_RELATION = "no_relation"
OTHER = "Other"
FORMS = "give TACRED's JSON (.json) or SemEval's text (.txt), also packed as .xz or .gz"
MARKED = re.compile(r"(.*)<e1>(.+)</e1>(.*)<e2>(.+)</e2>(.*)")


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
    try:
        with OPENERS[packing](path, "rt", encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: {FORMS}.") from None
    except (OSError, UnicodeDecodeError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}): {FORMS}.") from None
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
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): give a whole file.") from None
    if not isinstance(entries, list):
        raise InputError(f"{path} is not in TACRED's layout: it needs a list of examples.")
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, example {number}"
        try:
            example = Example(
                str(entry.get("id", number)),
                tuple(entry["token"]),
                Argument(entry["subj_start"], entry["subj_end"], entry["subj_type"]),
                Argument(entry["obj_start"], entry["obj_end"], entry["obj_type"]),
                entry["relation"],
            )
        except KeyError as error:
            raise InputError(f"{where} has no {error}: add it.") from None
        except (TypeError, AttributeError):
            raise InputError(f"{where} is not an object as in TACRED: mend it.") from None
        check(example, where)
        yield example


def check(example: Example, where: str) -> None:
    """Raises InputError unless words, places, types and relation are what they have to be."""
    if not all(isinstance(word, str) and word for word in example.words):
        raise InputError(f'{where}: "token" needs a list of words.')
    if not all(
        isinstance(text, str)
        for text in (example.relation, example.subject.type, example.object.type)
    ):
        raise InputError(f"{where}: the relation and the two types must be strings.")
    for name, (first, last, _) in (("subject", example.subject), ("object", example.object)):
        if (
            type(first) is not int
            or type(last) is not int
            or not 0 <= first <= last < len(example.words)
        ):
            wrong = f"the {name} has the words {first} to {last} of {len(example.words)}"
            raise InputError(f"{where}: {wrong}; count from 0, the last word is inclusive.")


# --- SemEval-2010 Task 8 ------------------------------------------------------------


def semeval_examples(text: str, path: Path) -> Iterator[Example]:
    """The examples of SemEval's text: a line with number, tab and the marked sentence in quotes, a
    line with the relation, perhaps a comment, and a blank line. e1 is the subject and e2 the
    object; types are not told."""
    rows: list[tuple[int, str]] = []  # of one example
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        if line.strip():
            rows.append((number, line.strip()))
        elif rows:
            yield semeval_example(rows, path)
            rows = []


def semeval_example(rows: list[tuple[int, str]], path: Path) -> Example:
    """One example from its lines, each with its number."""
    number, line = rows[0]
    key, tab, quoted = line.partition("\t")
    found = MARKED.fullmatch(quoted.removeprefix('"').removesuffix('"'))
    if not tab or not found:
        raise InputError(
            f"{path}, line {number}: write a number, a tab and a sentence with <e1>…</e1> before "
            "<e2>…</e2>."
        )
    if len(rows) < 2:
        raise InputError(
            f"{path}, line {number}: the line after the sentence must name its relation."
        )
    before, first, between, second, after = (split_words(part) for part in found.groups())
    start = len(before) + len(first) + len(between)
    arguments = (
        Argument(len(before), len(before) + len(first) - 1),
        Argument(start, start + len(second) - 1),
    )
    example = Example(key, (*before, *first, *between, *second, *after), *arguments, rows[1][1])
    check(example, f"{path}, line {number}")
    return example
