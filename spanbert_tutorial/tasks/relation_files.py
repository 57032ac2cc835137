"""Examples of relation extraction and the files that hold them: TACRED's JSON, SemEval-2010 Task
8's text. Chapter: `book/tasks/relation_extraction`.

Sources of the formats: TACRED (Zhang and others, 2017), SemEval-2010 Task 8 (Hendrickx and others,
2010). No torch.
"""

import re
from collections.abc import Iterator
from itertools import accumulate, chain
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
WANTED = "TACRED's JSON (.json) or SemEval's text (.txt), also packed as .xz or .gz"
# perhaps a number and a tab, then a sentence, perhaps in quotes
SENTENCE = re.compile(r'(?:([^ \t"<]+) *\t)?[ \t]*"?([^\t]*)<e1>(.+)</e1>(.*)<e2>(.+)</e2>(.*?)"?')
MARKERS = ("<e1>", "</e1>", "<e2>", "</e2>")
COMMENT = re.compile(r"[ \t]*comments?[ \t]*:", re.IGNORECASE)
DIRECTION = re.compile(r"[ \t]*\([ \t]*(e[12])[ \t]*,[ \t]*(e[12])[ \t]*\)$")


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
    wrong = f"{path} has neither .json nor .txt in its name"
    require(form in (".json", ".txt"), f"{wrong}: give {WANTED}.")
    text = read_text(path, WANTED)
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


LAYOUT = (
    "write a number, a tab and a sentence with <e1>…</e1> before <e2>…</e2>, its relation in the next "
    'line, and "Comment:" before a comment'
)


def semeval_examples(text: str, path: Path, labeled: bool = True) -> Iterator[Example]:
    """The examples of SemEval's text: a line with number, tab and the marked sentence in quotes, and
    a line with its relation. Blank lines and comments count for nothing, and a plain text may go
    without numbers. e1 is the subject and e2 the object; types are not given."""
    # of each example the number of its line, the sentence, its relation
    found: list[tuple[int, str, str]] = []
    for number, line in enumerate(lines_of(text), start=1):
        line = line.strip(SPACE)
        if not visible(line) or COMMENT.match(line):
            continue
        if "\t" in line or any(marker in line for marker in MARKERS):
            found.append((number, line, ""))
        else:
            require(found and not found[-1][2], f"{path}, line {number}: {LAYOUT}.")
            # people put spaces into a direction
            found[-1] = (*found[-1][:2], DIRECTION.sub(r"(\1,\2)", line))
    for number, line, relation in found:
        where = f"{path}, line {number}"
        marked = SENTENCE.fullmatch(line)
        if not marked or any(line.count(marker) != 1 for marker in MARKERS):
            raise InputError(f"{where}: {LAYOUT}.")
        mend = "write it, or use `predict` for a file without"
        require(relation or not labeled, f"{where}: no relation stands in the next line; {mend}.")
        pieces = [split_words(piece) for piece in marked.groups()[1:]]
        words = tuple(chain(*pieces))
        a, b, c, d, _ = accumulate(map(len, pieces))
        names = Argument(a, b - 1), Argument(c, d - 1)
        example = Example(marked[1] or str(number), words, *names, relation if labeled else "")
        check(example, where)
        yield example


def marked_places(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where e1 and e2 of each example of SemEval's text begin and end, in characters."""
    return [
        (found.span(3), found.span(5))
        for line in re.finditer(r"[^\r\n]+", text)
        if not COMMENT.match(line[0]) and (found := SENTENCE.search(text, *line.span()))
    ]
