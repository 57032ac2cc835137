"""The nine tasks of GLUE (Wang and others, 2018) in one table, and the files that hold their
examples. Chapter: `book/tasks/classification`. The sizes are those of the hub's set `nyu-mll/glue`.
No torch.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spanbert_tutorial.errors import reading, require
from spanbert_tutorial.text.corpora import hub_rows, hub_set
from spanbert_tutorial.text.lines import Examples, check_columns, lines_of, read_text, visible

Sentences = tuple[str, str | None]  # a sentence alone, or a pair
Example = tuple[Sentences, str | float]  # a label, or a score
WANTED = "a whole TSV file of GLUE (also .xz or .gz), or a set of the hub as OWNER/NAME:PART"
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)

ONE = ("sentence", "label")
PAIR = ("sentence1", "sentence2", "label")
YES_NO = ("0", "1")
ENTAILS = ("entailment", "not_entailment")
CORRELATIONS = ("pearson", "spearman")


@dataclass(frozen=True)
class Task:
    """What a task asks, and how its files are laid out.

    columns: of GLUE's TSV files: the sentence or both, then the label; `hub`: those of the hub's
    set, if they differ. labels: in the order of the hub's numbers; none where a score is wanted,
    from the least to the greatest of `scores`. metrics: what `classification.score` gives. header:
    of files without one.
    """

    name: str
    asks: str
    examples: int  # to train on
    columns: tuple[str, ...] = PAIR
    labels: tuple[str, ...] = YES_NO
    metrics: tuple[str, ...] = ("accuracy",)
    hub: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    scores: tuple[float, float] = (0, 5)


# fmt: off
GLUE = {
    "cola": Task(
        "CoLA", "Is this sentence acceptable English?", 8_551, ONE, metrics=("matthews",),
        header=("source", "label", "star", "sentence"),
    ),
    "sst2": Task("SST-2", "Is this movie-review phrase positive?", 67_349, ONE),
    "mrpc": Task(
        "MRPC", "Do these two news sentences mean the same thing?", 3_668,
        ("#1 String", "#2 String", "Quality"), metrics=("f1", "accuracy"), hub=PAIR,
    ),
    "stsb": Task(
        "STS-B", "How similar in meaning are the two, from 0 to 5?", 5_749,
        ("sentence1", "sentence2", "score"), (), CORRELATIONS, hub=PAIR,
    ),
    "qqp": Task(
        "QQP", "Do these two questions ask the same thing?", 363_846,
        ("question1", "question2", "is_duplicate"), metrics=("f1", "accuracy"),
        hub=("question1", "question2", "label"),
    ),
    "mnli": Task(
        "MNLI", "Does the second sentence follow from the first, contradict it, or neither?",
        392_702, ("sentence1", "sentence2", "gold_label"),
        ("entailment", "neutral", "contradiction"), hub=("premise", "hypothesis", "label"),
    ),
    "qnli": Task(
        "QNLI", "Does this Wikipedia sentence answer the question?", 104_743,
        ("question", "sentence", "label"), ENTAILS,
    ),
    "rte": Task("RTE", "Does the second text follow from the first?", 2_490, labels=ENTAILS),
    "wnli": Task("WNLI", "Is the sentence with its pronoun replaced by a name entailed?", 635),
}
TASKS = GLUE | {
    "almanac-pairs": Task(
        "almanac, pairs",
        "Do both sentences tell the same facts, contradict each other, or neither?", 1_974,
        labels=("contradiction", "neither", "same"),
    ),
    "almanac-shared": Task(
        "almanac, shared facts", "Which share of the facts of both stands in both, from 0 to 1?",
        1_974, PAIR, (), CORRELATIONS, scores=(0, 1),
    ),
}
# fmt: on
COLUMNS = {name for task in TASKS.values() for name in (*task.columns, *task.hub)}


def task_named(name: str) -> Task:
    """A row of the table. Raises InputError for another name."""
    require(name in TASKS, f'the task "{name}" is unknown: use one of {", ".join(TASKS)}.')
    return TASKS[name]


def read(*sources: str | Path, subtask: str, labeled: bool = True) -> Examples:
    """The examples of TSV files in GLUE's layout (also packed as `.xz` or `.gz`), or of a set on
    the Hugging Face hub that has the configurations of `nyu-mll/glue` (OWNER/NAME:PART; without
    PART: train). subtask: a name of the table. labeled: whether labels have to be there; without
    one it is "". The result's `skipped` counts rows of QQP's official file that were cut off, and
    SNLI's on whose label the annotators did not agree. Raises InputError naming line and reason.
    """
    task = task_named(subtask)
    found = Examples()
    for source in sources:
        before = len(found)
        if name := hub_set(source, ".tsv", ".txt"):
            rows = hub_cells(name[0], subtask, name[1] or "train", labeled)
        else:
            rows = file_cells(Path(source), task, labeled)
        for where, cells in rows:
            if not cells:
                found.skipped += 1
                continue
            *texts, label = cells if labeled else [*cells, ""]
            require(all(map(visible, texts)), f"{where}: a sentence is empty; write it.")
            first, second, *_ = *texts, None
            found.append(((first, second), label_of(label, task, where) if labeled else ""))
        require(len(found) > before, f"{source} holds no example: give a file with at least one.")
    return found


def label_of(text: str, task: Task, where: str) -> str | float:
    """A label or a score of a task. where: for InputError."""
    if task.labels:
        mend = f"use {' or '.join(task.labels)}, not a part whose labels GLUE keeps"
        require(text in task.labels, f'{where}: "{text}" is no label of {task.name}; {mend}.')
        return text
    low, high = task.scores
    fits = NUMBER.fullmatch(text) and low <= float(text) <= high
    wrong = f'{where}: "{text}" is no score of {task.name}'
    require(fits, f"{wrong}; write a number from {low} to {high}.")
    return float(text)


def file_cells(path: Path, task: Task, labeled: bool) -> Iterator[tuple[str, list[str]]]:
    """The place of each row of a TSV file, and its sentences and label, or [] for a row to skip. A
    quotation mark is a letter like any other: many stand alone. Of unlabeled text, a file without
    the columns holds a sentence a line, or two with a tab between."""
    lines = [
        (f"{path}, line {number}", line.split("\t"))
        for number, line in enumerate(lines_of(read_text(path, WANTED)), start=1)
        if visible(line)
    ]
    columns = task.columns[: None if labeled else -1]
    first = lines[0][1] if lines else []
    bare = labeled or first and len(first) == len(task.header)  # laid out as without a header
    header = list(task.header if bare else columns)
    names = COLUMNS if len(first) > 1 else {*columns}  # one word may be a sentence
    if first and (not header or names.intersection(first)):
        header = lines.pop(0)[1]
    check_columns(header, f"{path}, line 1")
    missing = " and ".join(f'"{name}"' for name in columns if name not in header)
    wrong = f"{path}, line 1: {task.name} needs a column {missing}"
    mend = "give a training or development file, or use `predict` for a test file without labels"
    mend = mend if labeled else "give a file of this task, or one without a line of names"
    require(not missing, f"{wrong}, not only {', '.join(header)[:80] or 'an empty line'}; {mend}.")
    for where, cells in lines:
        row = dict(zip(header, cells, strict=False))
        cut_off = task.name == "QQP" and len(cells) < len(header)  # three of the official rows
        if cut_off or task.name == "MNLI" and labeled and row.get("gold_label") == "-":
            yield where, []
            continue
        wrong = f"{where}: {len(cells)} cells where {task.name} has {len(header)}"
        require(len(cells) == len(header), f"{wrong}; mend that line.")
        yield where, [row[name] for name in columns]


def hub_cells(name: str, subtask: str, part: str, labeled: bool) -> Iterator[tuple[str, list[str]]]:
    """The same of a set in the columns of `nyu-mll/glue`, where a label is a number."""
    task = TASKS[subtask]
    for number, row in enumerate(hub_rows(name, subtask, split=part), start=1):
        where = f"the set {name}, row {number}"
        with reading(where, "give a set in the layout of nyu-mll/glue"):
            *texts, label = (row[column] for column in task.hub or task.columns)
        if type(label) is int and 0 <= label < len(task.labels):
            label = task.labels[label]
        yield where, [*map(str, texts), str(label)] if labeled else [*map(str, texts)]
