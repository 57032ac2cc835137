"""Questions on texts, and the files that hold them: SQuAD 1.1 and 2.0, or sets of the hub. Chapter:
`book/tasks/squad`.

Source of the format: SQuAD (Rajpurkar and others, 2016) and SQuAD 2.0 (Rajpurkar and others, 2018).
No torch.
"""

import csv
import json
import re
import sys
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path

from spanbert_tutorial.engine.files import whole_file
from spanbert_tutorial.errors import InputError, NoRoom, check_text, shown
from spanbert_tutorial.text.corpora import HUB_SET, hub_rows
from spanbert_tutorial.text.lines import (
    OPENERS,
    SPACE,
    Examples,
    check_columns,
    lines_of,
    parse_data,
    read_text,
    visible,
)

WANTED = "a SQuAD file (.json), a table (.csv), either also packed (.xz, .gz), or a set of the hub as OWNER/NAME"
WHOLE = re.compile(r"(\d{1,18})(?:\.0+)?", re.ASCII)  # spreadsheets write 46 as 46.0
csv.field_size_limit(sys.maxsize)  # a context may be a whole document


@dataclass(frozen=True)
class GoldAnswer:
    """A stretch of the context: its text and the offset of its first character."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a context. Without answers it has none there (SQuAD 2.0); `plausible` may then
    mislead.

    category: why there is no answer, where the file says it.
    """

    id: str
    question: str
    context: str
    title: str = ""
    answers: tuple[GoldAnswer, ...] = ()
    plausible: tuple[GoldAnswer, ...] = ()
    category: str | None = None


def read(source: str | Path, part: str = "validation") -> list[Question]:
    """The questions of a SQuAD file (`.json`) or a table (`.csv`, see `csv_questions`), either also
    packed as `.xz` or `.gz`, or of a set on the Hugging Face hub (OWNER/NAME:PART, or OWNER/NAME
    for its `part`).

    Raises InputError naming article, question and reason.
    """
    name = HUB_SET.fullmatch(str(source))
    if (
        name
        and not Path(source).exists()
        and Path(source).suffix not in (".json", ".csv", *filter(None, OPENERS))
    ):
        questions = list(hub_questions(*name.groups(default=part)))
    elif ".csv" in Path(source).suffixes[-2:]:
        questions = list(csv_questions(source))
    else:
        questions = list(squad_questions(source))
    if not questions:
        raise InputError(f"{source} holds articles but no question: give a file with at least one.")
    try:
        check_ids(questions)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return questions


def read_several(sources: Iterable[str | Path], part: str = "validation") -> Examples:
    """The questions of several files or sets; one that stands in two of them, as in SQuAD 1.1 and
    2.0, counts once, with the answers of the first; the result's `skipped` counts the others.

    Raises InputError when two different questions share an id, or one has an answer in one file
    only.
    """
    found: dict[str, Question] = {}
    skipped = 0
    for source in sources:
        for question in read(source, part):
            before = found.setdefault(question.id, question)
            skipped += before is not question
            if (asked(before), before.context) != (asked(question), question.context):
                raise InputError(
                    f'{source}: article "{question.title}", question {question.id} has the id of '
                    "another one in a file before; give each its own."
                )
            if bool(before.answers) != bool(question.answers):
                raise InputError(
                    f'{source}: article "{question.title}", question {question.id} has answers '
                    "here or in a file before, but not in both; leave one out."
                )
    questions = Examples(found.values())
    questions.skipped = skipped
    return questions


def asked(question: Question) -> str:
    """The words of a question, without the spaces around them that some files have."""
    return question.question.strip(" \t\r\n")


COLUMNS = ("question", "context", "answer")  # that a table needs


def csv_questions(path: str | Path) -> Iterator[Question]:
    """The rows of a table with the columns `question`, `context` and `answer` (empty: no answer),
    between commas, semicolons or tabs; with `title`, `id` and `answer_start` if these are there.

    A row without an id gets one of file and line. Without `answer_start` the first place of the
    answer in its context counts, and a warning says where there are more. Raises InputError naming
    the line, counted as an editor does.
    """
    (first, header), *rows = csv_rows(Path(path))
    names = [name.strip(SPACE) for name in header]
    check_columns(names, f"{path}, line {first}")
    if missing := [name for name in COLUMNS if name not in names]:
        raise InputError(
            f"{path} has no column {' and no column '.join(missing)}: name the columns "
            f"{', '.join(COLUMNS)} in its first row."
        )
    unclear = []
    for line, cells in rows:
        where = f"{path}, line {line}"
        if len(cells) != len(names):
            raise InputError(
                f"{where}: it has {len(cells)} cells instead of {len(names)}; put quotes around a "
                "cell that holds a separator or a line end."
            )
        row = dict(zip(names, cells, strict=True))
        answers, several = csv_answer(row, where)
        unclear += [line] if several else []
        question = Question(
            row.get("id") or where,
            row["question"],
            row["context"],
            row.get("title", ""),
            answers,
        )
        check(question, None)
        yield question
    if unclear:
        warnings.warn(
            f"{path}: in {len(unclear):,} rows, such as that of line {unclear[0]}, the answer occurs "
            "in its context more than once, and the first place is taken; a column answer_start "
            "can say which.",
            stacklevel=2,
        )


def csv_answer(row: Mapping[str, str], where: str) -> tuple[tuple[GoldAnswer, ...], bool]:
    """The answer of a row, if it has one, and whether it occurs in several places. Raises
    InputError when it does not occur in its context, when nothing of it can be seen, and when its
    offset is no number."""
    text = row["answer"]
    context = row["context"]
    place = row.get("answer_start", "").strip(SPACE)
    if not text:
        return (), False
    if not visible(text):
        raise InputError(
            f"{where}: the answer is {shown(text)}, in which nothing can be seen; write it, or leave "
            "the cell empty where there is none."
        )
    if place:
        whole = WHOLE.fullmatch(place)
        if not whole:
            raise InputError(
                f"{where}: answer_start is {shown(place)}; write a whole number, counted from 0."
            )
        return (GoldAnswer(text, int(whole[1])),), False
    if text not in context:
        raise InputError(
            f"{where}: the answer {shown(text)} does not occur in its context; write it as there."
        )
    return (GoldAnswer(text, context.index(text)),), context.count(text) > 1


def csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """The line where each row begins, and its cells; the header first, rows without content left out.
    Raises InputError for what is no table."""
    text = read_text(path, WANTED, translate=False)
    first = next(filter(visible, lines_of(text)), "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    rows = []
    begins = 1
    try:
        for cells in reader:
            if any(visible(cell) for cell in cells):
                rows.append((begins, cells))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}, line {begins}, cannot be read as a row of a table ({error}): close its quotes, "
            "or give a whole .csv file."
        ) from None
    if not rows:
        raise InputError(f"{path} is empty: give a table with the columns {', '.join(COLUMNS)}.")
    return rows


def articles(path: str | Path) -> list[dict]:
    """The list under `data`. Raises InputError for what is not a SQuAD file."""
    text = read_text(path, WANTED)
    try:
        content = parse_data(text)
    except ValueError as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}): give a whole SQuAD file."
        ) from None
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("data"), list)
        or not content["data"]
    ):
        raise InputError(f'{path} is not a SQuAD file: it needs a list of articles under "data".')
    return content["data"]


def squad_questions(path: str | Path) -> Iterator[Question]:
    """The questions of all articles of a file. Raises InputError naming the file."""
    for article in articles(path):
        try:
            yield from article_questions(article)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def article_questions(article: dict) -> Iterator[Question]:
    """The questions of one article, each checked."""
    title = article.get("title", "") if isinstance(article, dict) else ""
    where = f'article "{named(title)}"'
    try:
        for paragraph in a_list(article["paragraphs"]):
            for entry in a_list(paragraph["qas"]):
                where = f'article "{named(title)}", question {named(entry.get("id", "without id"))}'
                question = Question(
                    entry["id"],
                    entry["question"],
                    paragraph["context"],
                    title,
                    listed(entry["answers"]),
                    listed(entry.get("plausible_answers", [])),
                    entry.get("category"),
                )
                check(question, entry.get("is_impossible"))
                yield question
    except (KeyError, TypeError, AttributeError) as error:
        missing = f"no {error}" if isinstance(error, KeyError) else "a value of the wrong kind"
        raise InputError(f"{where}: not in SQuAD format ({missing}); mend it.") from None


def listed(answers: Iterable[Mapping]) -> tuple[GoldAnswer, ...]:
    """The answers of a list in SQuAD format."""
    return tuple(GoldAnswer(answer["text"], answer["answer_start"]) for answer in a_list(answers))


def a_list(value: object) -> list:
    """The list itself. Raises TypeError for anything else, also for what Python would go through as
    if it were one."""
    if not isinstance(value, list):
        raise TypeError
    return value


def named(value: object) -> str:
    """A title or an id in a message."""
    return value if isinstance(value, str) else shown(value)


def check(question: Question, impossible: bool | None) -> None:
    """Raises InputError for answers that are not where they say, for a label that contradicts them,
    and for half a character; TypeError for an id, question, context, title, category or answer that
    is no text, a label that is not true or false, and an offset that is no whole number."""
    if not all(
        isinstance(text, str) for text in (question.id, question.question, question.context)
    ):
        raise TypeError
    if not (
        isinstance(impossible, bool | None)
        and isinstance(question.title, str)
        and isinstance(question.category, str | None)
    ):
        raise TypeError
    answers = *question.answers, *question.plausible
    if not all(type(answer.start) is int and isinstance(answer.text, str) for answer in answers):
        raise TypeError
    where = f'article "{question.title}", question {question.id}'
    check_text(
        f"{ascii(where)[1:-1]}: its title or category", question.title, question.category or ""
    )
    for name, text in (
        ("id", question.id),
        ("question", question.question),
        ("context", question.context),
    ):
        halves = any(unicodedata.category(letter) == "Cs" for letter in set(text))
        if halves or not visible(text):
            raise InputError(
                f"{ascii(where)[1:-1]}: its {name} is empty or holds half a character; mend it."
            )
    for answer in answers:
        found = (
            question.context[answer.start : answer.start + len(answer.text)]
            if answer.start >= 0
            else ""
        )
        if not visible(answer.text):
            raise InputError(
                f'{where}: the answer is "{answer.text}", in which nothing can be seen; write it, or '
                "leave it out where there is none."
            )
        if found != answer.text:
            raise InputError(
                f'{where}: at {answer.start} the context has "{found}", the answer is '
                f'"{answer.text}"; '
                "mend answer_start or text."
            )
    if impossible is not None and impossible == bool(question.answers):
        raise InputError(
            f"{where}: is_impossible is {impossible}, but it has {len(question.answers)} answers; "
            "mend one of them."
        )


def check_ids(questions: Sequence[Question]) -> None:
    """Raises InputError when two questions share an id."""
    number, often = (
        Counter(question.id for question in questions).most_common(1)[0] if questions else ("", 0)
    )
    if often > 1:
        titles = [question.title for question in questions if question.id == number]
        raise InputError(
            f'article "{titles[-1]}", question {number}: the id occurs {often} times; give each '
            f"its own."
        )


def hub_questions(name: str, part: str) -> Iterator[Question]:
    """The rows of a set in the hub's SQuAD format."""
    for row in hub_rows(name, split=part):
        try:
            answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
            question = Question(
                row["id"],
                row["question"],
                row["context"],
                row.get("title", ""),
                tuple(GoldAnswer(text, start) for text, start in answers),
            )
            check(question, None)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"the set {name} is not in SQuAD format: give one with id, question, context and "
                "answers."
            ) from None
        yield question


def squad_format(questions: Iterable[Question], version: str) -> dict:
    """The content of a SQuAD 2.0 file; questions in a row with one title and context share a
    paragraph, an article."""

    def listed(answers: tuple[GoldAnswer, ...]) -> list[dict]:
        return [{"text": answer.text, "answer_start": answer.start} for answer in answers]

    def entry(q: Question) -> dict:
        given = {
            "id": q.id,
            "question": q.question,
            "answers": listed(q.answers),
            "is_impossible": not q.answers,
        }
        return given | (
            {} if q.answers else {"plausible_answers": listed(q.plausible), "category": q.category}
        )

    groups = groupby(questions, lambda q: (q.title, q.context))
    return {
        "version": version,
        "data": [
            {"title": title, "paragraphs": [{"context": context, "qas": [entry(q) for q in group]}]}
            for (title, context), group in groups
        ],
    }


def write(path: str | Path, questions: Iterable[Question], version: str) -> None:
    """Writes a SQuAD 2.0 file (`.json`, also packed as `.xz` or `.gz`), whole or not at all.

    Raises InputError for half a character in a text, NoRoom when it cannot be written there.
    """
    opener = OPENERS.get(Path(path).suffix, open)
    content = json.dumps(squad_format(questions, version), ensure_ascii=False)
    check_text("the title, the category or another text of a question", content)
    try:
        with whole_file(path) as part, opener(part, "wt", encoding="utf-8") as file:
            file.write(content)
    except OSError as error:
        raise NoRoom(
            f"the questions cannot be written to {path} ({error}): make room, or give another."
        ) from error
