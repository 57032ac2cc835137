"""Questions on texts, and the files that hold them: SQuAD 1.1 and 2.0 (Rajpurkar and others, 2016 and
2018), tables, or sets of the hub. Chapter: `book/tasks/squad`. No torch.
"""

import csv
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path

from spanbert_tutorial.engine.files import whole_file, writing
from spanbert_tutorial.errors import InputError, check_text, reading, require, shown
from spanbert_tutorial.text.corpora import hub_rows, hub_set
from spanbert_tutorial.text.lines import (
    OPENERS,
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
csv.field_size_limit(sys.maxsize)  # a context may be a whole document


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


def read(*sources: str | Path, part: str = "validation", labeled: bool = True) -> Examples:
    """The questions of SQuAD files (`.json`) and tables (`.csv`, see `csv_questions`), either also
    packed as `.xz` or `.gz`, and of sets on the hub (OWNER/NAME:PART, or OWNER/NAME for its `part`).
    One of several sources, as in SQuAD 1.1 and 2.0, counts once, with the answers of the first; the
    result's `skipped` counts the others. labeled: whether answers have to be there.

    Raises InputError naming article, question and reason, also when two different questions share
    an id, or one has an answer in one source only.
    """
    found: dict[str, Question] = {}
    skipped = 0
    for source in sources:
        for question in read_one(source, part, labeled):
            before = found.setdefault(question.id, question)
            skipped += before is not question
            where = f'{source}: article "{question.title}", question {question.id} has'
            same = (asked(before), before.context) == (asked(question), question.context)
            require(same, f"{where} the id of another one in a file before; give each its own.")
            same = bool(before.answers) == bool(question.answers)
            mend = "leave one out"
            require(same, f"{where} answers here or in a file before, but not in both; {mend}.")
    questions = Examples(found.values())
    questions.skipped = skipped
    return questions


def read_one(source: str | Path, part: str, labeled: bool) -> list[Question]:
    """The questions of one file or set."""
    if name := hub_set(source, ".json", ".csv"):
        questions = list(hub_questions(name[0], name[1] or part))
    else:
        read_file = csv_questions if kind_of_file(source) == ".csv" else squad_questions
        questions = list(read_file(source, labeled))
    require(questions, f"{source} holds articles but no question: give a file with at least one.")
    check_ids(questions, f"{source}: ")
    return questions


def asked(question: Question) -> str:
    """The words of a question, without the spaces around them that some files have."""
    return question.question.strip(" \t\r\n")


COLUMNS = ("question", "context", "answer")  # that a table needs


def csv_questions(path: str | Path, labeled: bool = True) -> Iterator[Question]:
    """The rows of a table with the columns `question`, `context` and `answer` (empty: no answer),
    between commas, semicolons or tabs; with `title`, `id` (else file and line) and `answer_start`
    if these are there. Without it the first place of the answer in its context counts, and a
    warning says where there are more. Raises InputError naming the line, counted as an editor does.
    """
    rows = csv_rows(path)
    line, header = next(rows, (1, []))
    names = [name.strip(SPACE) for name in header]
    check_columns(names, f"{path}, line {line}")
    missing = [name for name in COLUMNS[: None if labeled else 2] if name not in names]
    mend = f"name the columns {', '.join(COLUMNS)} in its first row"
    require(not missing, f"{path} has no column {' and '.join(missing)}: {mend}.")
    unclear = []
    for line, cells in rows:
        where = f"{path}, line {line}"
        wrong = f"{where}: it has {len(cells)} cells instead of {len(names)}"
        mend = "put quotes around a cell that holds a separator or a line end"
        require(len(cells) == len(names), f"{wrong}; {mend}.")
        row = dict(zip(names, cells, strict=True))
        text, context = row.get("answer", ""), row["context"]
        place = row.get("answer_start", "").strip(SPACE).removesuffix(".0")  # of spreadsheets
        if text and not place:
            mend = "does not occur in its context; write it as there"
            require(text in context, f"{where}: the answer {shown(text)} {mend}.")
            unclear += [line] * (context.count(text) > 1)
            place = str(context.index(text))
        with reading(f"{where}, answer_start", "write a whole number, counted from 0"):
            answers = (GoldAnswer(text, int(place)),) if text else ()
        texts = row.get("id") or where, row["question"], context, row.get("title", "")
        yield checked(Question(*texts, answers))
    if unclear:
        warnings.warn(
            f"{path}: in {len(unclear):,} rows, such as that of line {unclear[0]}, the answer occurs "
            "in its context more than once, and the first place is taken; a column answer_start "
            "can say which.",
            stacklevel=2,
        )


def csv_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The line where each row begins, and its cells, without empty rows; the header first."""
    text = read_text(path, WANTED, translate=False)
    first = next(filter(visible, lines_of(text)), "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    begins = 1
    try:
        for cells in reader:
            if any(map(visible, cells)):
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        mend = "close its quotes, or give a whole .csv file"
        raise InputError(
            f"{path}, line {begins}, is no row of a table ({error}): {mend}."
        ) from None


def squad_questions(path: str | Path, labeled: bool = True) -> Iterator[Question]:
    """The questions of a file. Raises InputError naming article, question and reason."""
    text = read_text(path, WANTED)
    with reading(f'{path} is no SQuAD file, with a list of articles under "data"', "give one"):
        articles = list(parse_data(text)["data"])
    for number, article in enumerate(articles, start=1):
        with reading(f"{path}: article {number} is not in SQuAD format"):
            title = article.get("title", "")
            pairs = [
                (one["context"], entry) for one in article["paragraphs"] for entry in one["qas"]
            ]
        for context, entry in pairs:
            where = f'{path}: article "{title}", question {shown(entry)}, is not in SQuAD format'
            with reading(where, "mend it; without answers use `predict`"):
                question = Question(
                    entry["id"],
                    entry["question"],
                    context,
                    title,
                    gold_answers(entry["answers"] if labeled else entry.get("answers", [])),
                    gold_answers(entry.get("plausible_answers", [])),
                    entry.get("category"),
                )
                impossible = entry.get("is_impossible") if labeled else None
            yield checked(question, impossible, f"{path}: ")


def gold_answers(answers: Iterable[Mapping]) -> tuple[GoldAnswer, ...]:
    """The answers of a list in SQuAD format."""
    return tuple(GoldAnswer(answer["text"], answer["answer_start"]) for answer in answers)


def checked(question: Question, impossible: bool | None = None, where: str = "") -> Question:
    """The question. Raises InputError for what is no text, or empty, or half a character, for
    answers that are not where they say, and for a label that contradicts them."""
    where = f'{where}article "{question.title}", question {question.id}'
    needed = {"id": question.id, "question": question.question, "context": question.context}
    check_text(f"{where}: a text", *needed.values(), question.title, question.category or "")
    for name, text in needed.items():
        require(visible(text), f"{where}: the {name} is empty; mend it.")
    for answer in (*question.answers, *question.plausible):
        start, text = answer.start, answer.text
        check_text(f"{where}: an answer", text)
        whole = type(start) is int and start >= 0
        require(whole, f"{where}: answer_start is no whole number; mend it.")
        found = question.context[start : start + len(text)]
        wrong = f'at {start} the context has "{found}", the answer is "{text}"'
        require(found == text, f"{where}: {wrong}; mend answer_start or text.")
        require(visible(text), f"{where}: the answer {shown(text)} holds no sign that can be seen.")
    wrong = f"is_impossible is {shown(impossible)}, but it has {len(question.answers)} answers"
    fits = impossible is None or impossible is not bool(question.answers)
    require(fits, f"{where}: {wrong}; mend one of them.")
    return question


def check_ids(questions: Sequence[Question], where: str = "") -> None:
    """Raises InputError when two questions share an id."""
    for number, often in Counter(question.id for question in questions).items():
        require(often == 1, f"{where}question {number}: the id occurs {often} times; change it.")


def hub_questions(name: str, part: str) -> Iterator[Question]:
    """The rows of a set in the hub's SQuAD format."""
    for row in hub_rows(name, split=part):
        with reading(f"the set {name} is not in SQuAD format", "give one with answers"):
            texts = row["id"], row["question"], row["context"], row.get("title", "")
            answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
            yield checked(Question(*texts, tuple(GoldAnswer(*answer) for answer in answers)))


# --- writing ------------------------------------------------------------------------


def write(path: str | Path, questions: Iterable[Question], version: str) -> None:
    """Writes a SQuAD 2.0 file (`.json`, also packed as `.xz` or `.gz`), whole or not at all;
    questions in a row on one context share an article. Raises InputError for half a character in a
    text, NoRoom when it cannot be written there."""

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
    check_text("the title, the category or another text of a question", content)
    opener = OPENERS.get(Path(path).suffix, open)
    with (
        writing(f"the file of questions {path}"),
        whole_file(path) as part,
        opener(part, "wt", encoding="utf-8") as file,
    ):
        file.write(content)
