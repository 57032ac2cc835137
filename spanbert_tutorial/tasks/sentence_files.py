"""The nine tasks of GLUE in one table, and the files that hold their examples. Chapter:
`book/tasks/classification`.

An example is a sentence or a pair with a label, or with a score. Sources: GLUE (Wang and others,
2018); the sizes are those of the hub's set `nyu-mll/glue`. No torch.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanbert_tutorial.errors import reading, require
from spanbert_tutorial.text.corpora import hub_rows, hub_set
from spanbert_tutorial.text.lines import Examples, check_columns, lines_of, read_text, visible

Sentences = tuple[str, str | None]  # a sentence alone, or a pair
Example = tuple[Sentences, str | float]  # a label, or a score


@dataclass(frozen=True)
class Task:
    """What a task asks, and how its files are laid out.

    metrics: what `sentence_tasks.score` gives. labels: in the order of the hub's numbers; none
    where a score is wanted. columns: of GLUE's TSV files: the sentence or both, then the label.
    hub: the same columns of the hub's set. sizes: examples to train on, to develop with and to test
    on. header: of files that have no line of headers. scores: the least and the greatest score.
    """

    name: str
    asks: str
    metrics: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    hub: tuple[str, ...]
    sizes: tuple[int, ...]
    header: tuple[str, ...] = ()
    scores: tuple[float, float] = (0, 5)


ACCURACY = ("accuracy",)
YES_NO = ("0", "1")
ENTAILS = ("entailment", "not_entailment")
F1, MATTHEWS, CORRELATIONS = ("f1", "accuracy"), ("matthews",), ("pearson", "spearman")
SENTENCE = ("sentence", "label")
PAIR = ("sentence1", "sentence2", "label")
# fmt: off
GLUE = {
    "cola": Task(
        "CoLA", "Is this sentence acceptable English?", MATTHEWS, YES_NO,
        SENTENCE, SENTENCE, (8_551, 1_043, 1_063),
        header=("source", "label", "star", "sentence"),
    ),
    "sst2": Task(
        "SST-2", "Is this movie-review phrase positive?", ACCURACY, YES_NO,
        SENTENCE, SENTENCE, (67_349, 872, 1_821),
    ),
    "mrpc": Task(
        "MRPC", "Do these two news sentences mean the same thing?", F1, YES_NO,
        ("#1 String", "#2 String", "Quality"), PAIR, (3_668, 408, 1_725),
    ),
    "stsb": Task(
        "STS-B", "How similar in meaning are the two, from 0 to 5?", CORRELATIONS, (),
        ("sentence1", "sentence2", "score"), PAIR, (5_749, 1_500, 1_379),
    ),
    "qqp": Task(
        "QQP", "Do these two questions ask the same thing?", F1, YES_NO,
        ("question1", "question2", "is_duplicate"), ("question1", "question2", "label"),
        (363_846, 40_430, 390_965),
    ),
    "mnli": Task(
        "MNLI", "Does the second sentence follow from the first, contradict it, or neither?",
        ACCURACY, ("entailment", "neutral", "contradiction"),
        ("sentence1", "sentence2", "gold_label"), ("premise", "hypothesis", "label"),
        (392_702, 9_815 + 9_832, 9_796 + 9_847),
    ),
    "qnli": Task(
        "QNLI", "Does this Wikipedia sentence answer the question?", ACCURACY, ENTAILS,
        ("question", "sentence", "label"), ("question", "sentence", "label"),
        (104_743, 5_463, 5_463),
    ),
    "rte": Task(
        "RTE", "Does the second text follow from the first?", ACCURACY, ENTAILS,
        PAIR, PAIR, (2_490, 277, 3_000),
    ),
    "wnli": Task(
        "WNLI", "Is the sentence with its pronoun replaced by a name entailed?", ACCURACY, YES_NO,
        PAIR, PAIR, (635, 71, 146),
    ),
}
ALMANAC = {
    "almanac-pairs": Task(
        "almanac, pairs",
        "Do both sentences tell the same facts, contradict each other, or neither?",
        ACCURACY, ("contradiction", "neither", "same"), PAIR, PAIR, (1_974, 414, 408),
    ),
    "almanac-shared": Task(
        "almanac, shared facts", "Which share of the facts of both stands in both, from 0 to 1?",
        CORRELATIONS, (), PAIR, PAIR, (1_974, 414, 408), scores=(0, 1),
    ),
}
# fmt: on
TASKS = GLUE | ALMANAC
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)


def task_named(name: str) -> Task:
    """A row of the table. Raises InputError for another name."""
    require(name in TASKS, f'the task "{name}" is unknown: use one of {", ".join(TASKS)}.')
    return TASKS[name]


def read(*sources: str | Path, subtask: str, labeled: bool = True) -> Examples:
    """The examples of TSV files in GLUE's layout (also packed as `.xz` or `.gz`), or of a set on
    the Hugging Face hub that has the configurations of `nyu-mll/glue` (OWNER/NAME:PART, such as
    `nyu-mll/glue:validation`; without PART: train). subtask: a name of the table. labeled: whether
    labels have to be there; without one it is "". The result's `skipped` counts rows of QQP's
    official file that were cut off, and SNLI's on whose label the annotators did not agree.

    Raises InputError naming line and reason.
    """
    task = task_named(subtask)
    found = Examples()
    for source in sources:
        before = len(found)
        if name := hub_set(source, ".tsv", ".txt"):
            found += hub_examples(name[0], subtask, name[1] or "train", labeled)
        else:
            add_file(found, Path(source), task, labeled)
        require(len(found) > before, f"{source} holds no example: give a file with at least one.")
    return found


# --- GLUE's files -------------------------------------------------------------------


WANTED = "a whole TSV file of GLUE (also .xz or .gz), or a set of the hub as OWNER/NAME:PART"


def add_file(found: Examples, path: Path, task: Task, labeled: bool = True) -> None:
    """Adds the examples of a TSV file, each checked. A quotation mark is a letter like any other: many
    stand alone. Lines without anything to see are passed over. Of unlabeled text, a file without the
    columns holds a sentence a line, or two with a tab between."""
    lines = [
        (number, line.split("\t"))
        for number, line in enumerate(lines_of(read_text(path, WANTED)), start=1)
        if visible(line)
    ]
    columns = task.columns[: None if labeled else -1]
    if not labeled and not any(name in cells for _, cells in lines[:1] for name in columns):
        header = list(columns)
    else:
        header = list(task.header) or (lines.pop(0)[1] if lines else [])
    check_columns(header, f"{path}, line 1")
    missing = [f'"{name}"' for name in columns if name not in header]
    require(
        not missing,
        f"{path}, line 1: {task.name} needs a column {' and '.join(missing)}, and this file has "
        f"{', '.join(header)[:80] or 'no line'}; give a training or development file (for a test file "
        "without labels use `predict`).",
    )
    for number, cells in lines:
        where = f"{path}, line {number}"
        if task.name == "QQP" and len(cells) < len(header):  # three of the official rows
            found.skipped += 1
            continue
        wrong = f"{where}: {len(cells)} cells where {task.name} has {len(header)}"
        require(len(cells) == len(header), f"{wrong}; mend that line.")
        row = dict(zip(header, cells, strict=True))
        texts = [row[name] for name in columns]
        label = texts.pop() if labeled else None
        if task.name == "MNLI" and label == "-":
            found.skipped += 1
            continue
        found.append(checked(texts, label, task, where))


def checked(texts: Sequence[str], label: str | None, task: Task, where: str) -> Example:
    """One or two sentences and a label (None: none is wanted). where: for InputError."""
    require(all(map(visible, texts)), f"{where}: a sentence is empty; write it.")
    sentences = texts[0], texts[1] if len(texts) > 1 else None
    if label is None:
        return sentences, ""
    if task.labels:
        mend = f"use {' or '.join(task.labels)}"
        require(label in task.labels, f'{where}: "{label}" is no label of {task.name}; {mend}.')
        return sentences, label
    low, high = task.scores
    fits = NUMBER.fullmatch(label) and low <= float(label) <= high
    wrong = f'{where}: "{label}" is no score of {task.name}'
    require(fits, f"{wrong}; write a number from {low} to {high}.")
    return sentences, float(label)


def hub_examples(name: str, subtask: str, part: str, labeled: bool = True) -> Iterator[Example]:
    """The examples of a set in the columns of `nyu-mll/glue`, where a label is a number."""
    task = TASKS[subtask]
    for number, row in enumerate(hub_rows(name, subtask, split=part), start=1):
        where = f"the set {name}, row {number}"
        with reading(where, "give a set in the layout of nyu-mll/glue"):
            *texts, label = (row[column] for column in task.hub)
        if labeled and task.labels:
            fits = type(label) is int and 0 <= label < len(task.labels)
            mend = "give a part with labels (those of the part test are kept by GLUE)"
            require(fits, f"{where}: the label is {label}; {mend}.")
            label = task.labels[label]
        yield checked([*map(str, texts)], str(label) if labeled else None, task, where)
