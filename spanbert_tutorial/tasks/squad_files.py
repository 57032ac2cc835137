"""Questions on texts, and the files that hold them: SQuAD 1.1 and 2.0 (Rajpurkar and others, 2016 and
2018), tables, or sets of the hub. Chapter: `book/tasks/squad`. No torch.
"""

import csv
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path

from spanbert_tutorial.engine.files import write_text, writing
from spanbert_tutorial.errors import InputError, check_text, reading, require, shown
from spanbert_tutorial.text.corpora import hub_rows, hub_set
from spanbert_tutorial.text.lines import (
    SPACE,
    Examples,
    check_columns,
    kind_of_file,
    lines_of,
    parse_data,
    read_text,
    visible,
)

WANTED = "a SQuAD file (.json), a table (.csv), either also packed (.xz, .gz), or a set of the hub as OWNER/NAME"
csv.field_size_limit(2**31 - 1)  # a whole document; Windows' C long has 32 bits


@dataclass(frozen=True)
class GoldAnswer:
    """A stretch of the context: its text and the offset of its first character."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a context. Without answers it has none there (SQuAD 2.0); `plausible` may then
    mislead. category: why there is no answer, where the file says it."""

    id: str
    question: str
    context: str
    title: str = ""
    answers: tuple[GoldAnswer, ...] = ()
    plausible: tuple[GoldAnswer, ...] = ()
    category: str | None = None


def asked(question: Question) -> str:
    """The words of a question, without the spaces around them that some files have."""
    return question.question.strip(" \t\r\n")


def read(*sources: str | Path, part: str = "validation", labeled: bool = True) -> Examples:
    """The questions of SQuAD files (`.json`) and tables (`.csv`, see `csv_questions`), either also
    packed as `.xz` or `.gz`, and of sets on the hub (OWNER/NAME:PART, or OWNER/NAME for its `part`).
    One of several sources, as in SQuAD 1.1 and 2.0, counts once, with the answers of the first; the
    result's `skipped` counts the others. labeled: whether answers have to be there; otherwise none
    is read.

    Raises InputError naming article, question and reason, also when two different questions share
    an id, or one has an answer in one source only.
    """
    found: dict[str, Question] = {}
    count = 0
    for source in sources:
        if kind_of_file(source) == ".csv":
            questions = [*csv_questions(source, labeled)]
        else:
            questions = [*squad_questions(source, part, labeled)]
        require(questions, f"{source} holds no question: give a file with at least one.")
        check_ids(questions, f"{source}: ")
        count += len(questions)
        for new in questions:
            old = found.setdefault(new.id, new)
            same = [(asked(one), one.context, bool(one.answers)) for one in (old, new)]
            where = f'{source}: article "{new.title}", question {new.id}'
            told = "a file before has another text, or answers in one of both only, under this id"
            require(same[0] == same[1], f"{where}: {told}; change the id, or leave one file out.")
    return Examples(found.values(), count - len(found))


def squad_questions(source: str | Path, part: str, labeled: bool) -> Iterator[Question]:
    """The questions of a file, or of a part of a set."""
    with reading(f"{source} is not in SQuAD format", "give a file or set that is"):
        if name := hub_set(source, ".json"):
            rows = hub_rows(name[0], split=name[1] or part)
            entries = [(row.get("title", ""), row["context"], row) for row in rows]
        else:
            entries = [
                (article.get("title", ""), paragraph["context"], entry)
                for article in parse_data(read_text(source, WANTED))["data"]
                for paragraph in article["paragraphs"]
                for entry in paragraph["qas"]
            ]
    for title, context, entry in entries:
        where = f'{source}: article "{title}", question {shown(entry)}, is not in SQuAD format'
        with reading(where, "mend it; without answers use `predict`"):
            question = Question(
                entry["id"],
                entry["question"],
                context,
                title,
                gold_answers(entry["answers"] if labeled else ()),
                gold_answers(entry.get("plausible_answers", ()) if labeled else ()),
                entry.get("category"),
            )
            impossible = entry.get("is_impossible") if labeled else None
        yield checked(question, impossible, f"{source}: ")


def gold_answers(answers: Iterable) -> tuple[GoldAnswer, ...]:
    """The answers of a list of objects, as in SQuAD's files, or of an object of lists, as on the
    hub."""
    if isinstance(answers, Mapping):
        pairs = zip(answers["text"], answers["answer_start"], strict=True)
        return tuple(GoldAnswer(*pair) for pair in pairs)
    return tuple(GoldAnswer(answer["text"], answer["answer_start"]) for answer in answers)


def csv_questions(path: str | Path, labeled: bool = True) -> Iterator[Question]:
    """The rows of a table with the columns `question`, `context` and `answer` (empty: no answer),
    between commas, semicolons or tabs; with `title`, `id` (else file and line) and `answer_start`
    if these are there. Without it the first place of the answer in its context counts, and a
    warning says where there are more. Raises InputError naming the line, counted as an editor does.
    """
    text = read_text(path, WANTED, translate=False)
    first = next(filter(visible, lines_of(text)), "")
    separator = max(",;\t", key=first.count)
    table = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = []
    line = 1  # where a row begins
    try:
        for cells in table:
            rows.append((line, cells))
            line = table.line_num + 1
    except csv.Error as error:
        mend = "close its quotes, or give a whole .csv file"
        raise InputError(f"{path}, line {line}, is no row of a table ({error}): {mend}.") from None
    (line, header), *rows = [row for row in rows if any(map(visible, row[1]))] or [(1, [])]
    names = [name.strip(SPACE) for name in header]
    check_columns(names, f"{path}, line {line}")
    needed = ("question", "context", "answer")[: None if labeled else 2]
    mend = f"name {', '.join(needed)} in its first row"
    require({*needed} <= {*names}, f"{path} has the columns {shown(names)}: {mend}.")
    unclear = []
    for line, cells in rows:
        where = f"{path}, line {line}"
        wrong = f"{where}: it has {len(cells)} cells instead of {len(names)}"
        mend = "put quotes around a cell that holds a separator or a line end"
        require(len(cells) == len(names), f"{wrong}; {mend}.")
        row = dict(zip(names, cells, strict=True))
        answer, context = row.get("answer", ""), row["context"]
        place = row.get("answer_start", "").strip(SPACE).removesuffix(".0")  # of spreadsheets
        answers = []
        if answer and labeled:
            mend = "write it as in its context, and answer_start as a whole number, counted from 0"
            with reading(f"{where}: the answer {shown(answer)}", mend):
                answers.append(GoldAnswer(answer, int(place) if place else context.index(answer)))
            unclear += [line] * (not place and context.count(answer) > 1)
        texts = row.get("id") or where, row["question"], context, row.get("title", "")
        yield checked(Question(*texts, (*answers,)))
    if unclear:
        warnings.warn(
            f"{path}: in {len(unclear):,} rows, such as that of line {unclear[0]}, the answer occurs "
            "in its context more than once: its first place counts, or what answer_start says.",
            stacklevel=2,
        )


def checked(question: Question, impossible: bool | None = None, where: str = "") -> Question:
    """The question. Raises InputError for what is no text, or empty, or half a character, for
    answers that are not where they say, and for a label that contradicts them."""
    where = f'{where}article "{question.title}", question {question.id}'
    check_text(f"{where}: the title or category", question.title, question.category or "")
    answers = (*question.answers, *question.plausible)
    texts = [(name, getattr(question, name)) for name in ("id", "question", "context")]
    for name, text in [*texts, *(("answer", answer.text) for answer in answers)]:
        check_text(f"{where}: the {name}", text)
        require(visible(text), f"{where}: the {name} is empty; mend it.")
    for answer in answers:
        whole = type(answer.start) is int and answer.start >= 0
        found = question.context[answer.start :][: len(answer.text)] if whole else ""
        wrong = f"at {shown(answer.start)} the context has {shown(found)}, not {shown(answer.text)}"
        require(found == answer.text, f"{where}: {wrong}; mend answer_start or text.")
    told = f"is_impossible is {shown(impossible)}, but it has {len(question.answers)} answers"
    fits = impossible is None or impossible is not bool(question.answers)
    require(fits, f"{where}: {told}; mend one of them.")
    return question


def check_ids(questions: Sequence[Question], where: str = "") -> None:
    """Raises InputError when two questions share an id."""
    for number, often in Counter(question.id for question in questions).items():
        require(often == 1, f"{where}question {number}: the id occurs {often} times; change it.")


# --- writing ------------------------------------------------------------------------


def write(path: str | Path, questions: Iterable[Question], version: str) -> None:
    """Writes a SQuAD 2.0 file (`.json`, also packed as `.xz` or `.gz`), whole or not at all;
    questions in a row on one context share an article. Raises NoRoom when it cannot be written."""

    def listed(answers: tuple[GoldAnswer, ...]) -> list[dict]:
        return [{"text": answer.text, "answer_start": answer.start} for answer in answers]

    articles = []
    for (title, context), group in groupby(questions, lambda q: (q.title, q.context)):
        entries = []
        for q in group:
            entry: dict[str, object] = {"id": q.id, "question": q.question}
            entry |= {"answers": listed(q.answers), "is_impossible": not q.answers}
            if not q.answers:
                entry |= {"plausible_answers": listed(q.plausible), "category": q.category}
            entries.append(entry)
        articles.append({"title": title, "paragraphs": [{"context": context, "qas": entries}]})
    content = json.dumps({"version": version, "data": articles}, ensure_ascii=False)
    with writing(f"the file of questions {path}"):
        write_text(path, content)
