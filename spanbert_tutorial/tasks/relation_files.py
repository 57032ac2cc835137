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
from spanbert_tutorial.errors import check_text, reading, require, shown
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
# perhaps a number and a tab, then a sentence, perhaps in quotes
SENTENCE = re.compile(r'(?:([^ \t"<]+) *\t)?[ \t]*"?([^\t]*)<e1>(.+)</e1>(.*)<e2>(.+)</e2>(.*?)"?')
MARKER = re.compile(r"</?e[12]>")
COMMENT = re.compile(r"[ \t]*comments?[ \t]*:", re.IGNORECASE)
DIRECTION = re.compile(r"[ \t]*\([ \t]*(e[12])[ \t]*,[ \t]*(e[12])[ \t]*\)$")
LAYOUT = (
    "write a number, a tab and a sentence with <e1>…</e1> before <e2>…</e2>, its relation in the next "
    'line, and "Comment:" before a comment'
)


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
    that occurs twice counts once, and the result's `skipped` counts the others. labeled:
    whether relations have to be there; without one it is "".

    Raises InputError naming the file, the example or the line, and the reason.
    """
    read = [(path, example) for path in paths for example in read_one(Path(path), labeled)]
    found: dict[Example, Example] = {}
    for path, example in read:
        before = found.setdefault(example._replace(relation=""), example).relation
        wrong = f"the example {example.id} occurs as {before} and as {example.relation}"
        require(before == example.relation, f"{path}: {wrong}; leave one out.")
    return Examples(found.values(), len(read) - len(found))


def read_one(path: Path, labeled: bool) -> list[Example]:
    """The examples of one file."""
    layouts = {".json": tacred_examples, ".txt": semeval_examples}
    wanted = "TACRED's JSON (.json) or SemEval's text (.txt), also packed as .xz or .gz"
    wrong = f"{path} has neither .json nor .txt in its name"
    require(kind_of_file(path) in layouts, f"{wrong}: give {wanted}.")
    examples = []
    for where, example in layouts[kind_of_file(path)](read_text(path, wanted), path):
        if not labeled:
            example = example._replace(relation="")
        id_, words, subject, object_, relation = example
        texts = id_, *words, subject.type, object_.type, relation
        check_text(f"{where}: an id, a word, a type or a relation", *texts)
        require(all(map(visible, (id_, *words))), f"{where}: the id or a word is empty; write it.")
        for name, (first, last, _) in (("subject", subject), ("object", object_)):
            fits = type(first) is type(last) is int and 0 <= first <= last < len(words)
            wrong = f"the {name} has the words {shown(first)} to {shown(last)} of {len(words)}"
            require(fits, f"{where}: {wrong}; count from 0, the last word is inclusive.")
        mend = "write it, or use `predict` for a file without"
        require(visible(relation) or not labeled, f"{where}: the relation is missing; {mend}.")
        examples.append(example)
    require(examples, f"{path} holds no example: give a file with at least one.")
    return examples


def tacred_examples(text: str, path: Path) -> Iterator[tuple[str, Example]]:
    """The examples of TACRED's JSON list, each with its place. Last words are inclusive."""
    with reading(f"{path} is no JSON in TACRED's layout", "give a list of examples"):
        entries = list(parse_data(text))
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, example {number}"
        with reading(f"{where} is not in TACRED's layout"):
            words = tuple(map(unescaped, entry["token"]))
            subject, object_ = (
                Argument(entry[f"{role}_start"], entry[f"{role}_end"], entry[f"{role}_type"] or "")
                for role in ("subj", "obj")
            )
            example = Example(entry["id"], words, subject, object_, entry.get("relation", ""))
        yield where, example


def semeval_examples(text: str, path: Path) -> Iterator[tuple[str, Example]]:
    """The examples of SemEval's text, each with its place: a line with number, tab and the marked
    sentence in quotes, and a line with its relation. Blank lines and comments count for nothing, and
    a plain text may go without numbers. e1 is the subject and e2 the object; types are not given."""
    found: list[tuple[str, Example]] = []
    for number, line in enumerate(lines_of(text), start=1):
        line, where = line.strip(SPACE), f"{path}, line {number}"
        if not visible(line) or COMMENT.match(line):
            continue
        if (marked := SENTENCE.fullmatch(line)) and len(MARKER.findall(line)) == 4:
            pieces = [split_words(piece) for piece in marked.groups()[1:]]
            a, b, c, d, _ = accumulate(map(len, pieces))
            names = Argument(a, b - 1), Argument(c, d - 1)
            words = tuple(chain(*pieces))
            found.append((where, Example(marked[1] or str(number), words, *names, "")))
        else:  # a relation; people put spaces into its direction
            fits = found and not found[-1][1].relation and not re.search(r"\t|</?e[12]>", line)
            require(fits, f"{where}: {LAYOUT}.")
            place, example = found[-1]
            found[-1] = place, example._replace(relation=DIRECTION.sub(r"(\1,\2)", line))
    yield from found


def marked_places(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where e1 and e2 of each example of SemEval's text begin and end, in characters."""
    return [
        (found.span(3), found.span(5))
        for line in re.finditer(r"[^\r\n]+", text)
        if not COMMENT.match(line[0]) and (found := SENTENCE.search(text, *line.span()))
    ]
