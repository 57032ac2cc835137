"""`finetune TASK`, `evaluate TASK` and `predict TASK`: what all tasks share on the command line;
`TASKS` lists the tasks. Chapters: `book/tasks/squad`, `book/workshop/your_own_data`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands import previews, rows, squad
from spanbert_tutorial.commands.options import add, open_model, with_options
from spanbert_tutorial.commands.previews import plural
from spanbert_tutorial.commands.run_state import (
    kept_when_stopped,
    open_state,
    remove_state,
    snapshots_of,
)
from spanbert_tutorial.engine.files import whole_folder, write_text, writing
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.pretraining.checkpoints import check_output, read_vocabulary
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.tasks import (
    classification,
    coreference,
    relation_files,
    sentence_files,
    squad_files,
    tagging,
)
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import relation_extraction as relations
from spanbert_tutorial.tasks.fine_tuning import FineTuning


class Task(NamedTuple):
    """A task that an encoder is fine-tuned for.

    read: (path, …) → examples. model: a class with `from_pretrained(source, tokenizer)`,
    `predict(examples)` and `save(folder, texts)`. fine_tune: (encoder, wordpiece, examples,
    settings, snapshots) → model and history. presets: settings by name, among them "small" and
    "spanbert". score: (examples, predictions, …) → metrics, ready for JSON. summary, preview: what
    the examples hold and how the model sees one, in words (`commands/previews.py`). rows: (options,
    model) → what `predict` writes (`commands/rows.py`).

    What few tasks need: settings, scoring, predicting, reading: names of further options, of fields
    of `FineTuning`, of `evaluate`, of `predict`, and of what `read` and `score` also take. training:
    what `read` also takes for the data to train on. results: (options, examples, model) → contents
    of files, one of them "score", instead of `score`. start: source → a model with the head of this
    task, or None if the source has no such head. inputs: (examples, wordpiece, settings) → what is
    trained on, with warnings of what is lost.
    """

    help: str
    unit: str  # what an example is called
    data: str  # what --data takes
    read: Callable[..., list]
    model: Any
    fine_tune: Callable[..., tuple]
    presets: Mapping[str, FineTuning]
    score: Callable[..., Any] | None = None
    summary: Callable[[Any], str] | None = None
    preview: Callable[..., tuple[list[str], str]] | None = None
    rows: Any = None
    settings: Sequence[str] = ()
    scoring: Sequence[str] = ()
    predicting: Sequence[str] = ()
    reading: Sequence[str] = ()
    training: Mapping[str, str] = {}
    results: Callable[..., dict[str, Any]] | None = None
    start: Callable[[str], Any] | None = None
    inputs: Callable[..., Any] | None = None


TASKS = {
    "squad": Task(
        "questions about texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train to fine-tune, otherwise validation); to predict also a plain .txt with --question",
        squad_files.read,
        qa.QuestionAnswerer,
        qa.fine_tune,
        qa.PRESETS,
        summary=previews.questions_summary,
        preview=previews.question_preview,
        rows=rows.answers,
        settings=("doc-stride", "max-answer-length", "answers-only"),
        scoring=("tune-on", "characters", "max-answer-length"),
        predicting=("question", "threshold", "n-best", "max-answer-length"),
        training={"part": "train"},
        results=squad.results,
        start=qa.model_with_head,
        inputs=qa.QuestionAnsweringData,
    ),
    "coreference": Task(
        "mentions of the same thing in a document",
        "document",
        "files in the CoNLL format (also .xz, .gz), folders and archives of such files; to predict "
        "also a plain .txt",
        coreference.read,
        coreference.CoreferenceResolver,
        coreference.fine_tune,
        coreference.PRESETS,
        coreference.score,
        previews.documents_summary,
        previews.document_preview,
        rows.clusters,
        settings=("task-learning-rate",),
    ),
    "relations": Task(
        "the relation between two marked names",
        "example",
        "files in the format of TACRED (.json) or SemEval-2010 Task 8 (.txt), also .xz, .gz; to "
        "predict also a .txt with a marked sentence a line",
        relation_files.read,
        relations.RelationExtractor,
        relations.fine_tune,
        relations.PRESETS,
        relations.figures,
        previews.relations_summary,
        previews.relation_preview,
        rows.relations,
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in the format of GLUE (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train); to predict also a .txt with a sentence a line, or two with a tab between",
        sentence_files.read,
        classification.SentencePredictor,
        classification.fine_tune,
        classification.PRESETS,
        lambda examples, said, subtask: classification.score(
            subtask, [label for _, label in examples], said
        ),
        previews.sentences_summary,
        previews.sentence_preview,
        rows.sentences,
        reading=("subtask",),
    ),
    "tagging": Task(
        "named things in a text",
        "text",
        "files in the columns of CoNLL-2003, or .jsonl with text and entities (also .xz, .gz); to "
        "predict also a plain .txt",
        tagging.read,
        tagging.Tagger,
        tagging.fine_tune,
        tagging.PRESETS,
        tagging.score,
        previews.tagging_summary,
        previews.tagging_preview,
        rows.entities,
    ),
}


# --- options ------------------------------------------------------------------------


def add_tasks(
    parser: argparse.ArgumentParser, does: str, names: Iterable[str]
) -> Iterator[tuple[Task, argparse.ArgumentParser]]:
    """The tasks as commands below a command, which `does` something, for the help: each task and
    its parser, which has the options for its files and its vocabulary."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name in names:
        task = TASKS[name]
        options = tasks.add_parser(name, help=task.help, description=f"{does}: {task.help}.")
        add(options, "data", nargs="+", required=True, help=task.data)
        add(options, *task.reading, required=True)
        add(options, "vocabulary", help="its vocabulary, if it is not in that folder")
        yield task, options


def finetune_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `finetune TASK`; the `PRESETS` of the task fill in what is not given."""
    for task, options in add_tasks(parser, "Fine-tune a checkpoint", TASKS):
        add(options, "init-from", required=True)
        add(options, "output", required=True, help="folder of the fine-tuned model")
        add(options, "preset", choices=task.presets)
        add(options, "epochs", "batch-size", "learning-rate", "max-length", "seed")
        add(options, *task.settings, "untrained", "resume")


def evaluate_options(parser: argparse.ArgumentParser) -> None:
    for task, options in add_tasks(parser, "Score a fine-tuned model", TASKS):
        add(options, "model", required=True)
        add(options, *task.scoring)
        add(options, "output", required=True, help="new folder for predictions and scores (.json)")


def predict_options(parser: argparse.ArgumentParser) -> None:
    does = "Predict, also where labels are missing; those there are not looked at"
    names = [name for name, task in TASKS.items() if task.rows]
    for task, options in add_tasks(parser, does, names):
        add(options, "model", required=True)
        add(options, *task.predicting)
        add(options, "output", required=True, help="file, a line of JSON for each example")


def reading(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    """What the options say of how to read the files, and to score."""
    return {name: getattr(options, name) for name in task.reading}


# --- fine-tuning --------------------------------------------------------------------


def finetune(options: argparse.Namespace) -> None:
    """Examples → batches → training → a folder that `evaluate` opens."""
    task = TASKS[options.task]
    first = processes().is_main_process
    state = open_state(options.output, options.resume)
    if state is None:
        return
    with kept_when_stopped(state):
        # the first process reports errors and downloads from the hub before the others start
        with processes().main_process_first():
            examples = task.read(*options.data, **reading(options, task), **task.training)
            wordpiece = read_vocabulary(options.vocabulary or options.init_from)
            start = starting_model(options, task)
            kept = not isinstance(start, BertEncoder)
            width = (start.encoder if kept else start).config.hidden_size
            preset = options.preset or ("small" if width < 768 else "spanbert")
            settings = with_options(task.presets[preset], options)
            facts = {
                **asdict(settings),
                "untrained": bool(options.untrained),
                **reading(options, task),
            }
            facts |= {f"{task.unit}s": len(examples), "content": digest(examples)}
            facts |= {"tokens": digest(wordpiece.vocabulary)}
            snapshots = snapshots_of(state, facts, start)
            snapshots.check()
        if first:
            head = " The head of the checkpoint is kept." if kept else ""
            print(previewed(examples, task, wordpiece, settings.max_length) + head, flush=True)
        model, history = task.fine_tune(start, wordpiece, examples, settings, snapshots)
        if not first:
            return
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        about = card(options, task, settings, len(examples), metrics, kept)
        model.save(Path(options.output), {"README.md": about, "metrics.jsonl": metrics})
    remove_state(state)
    print(f"Loss of the last 50 steps: {history.mean('loss', 50):.2f}. Model: {options.output}")


def what_was_read(examples: Sequence, task: Task) -> str:
    """What files hold, in one line, so that a misread file is noticed at once."""
    told = [plural(len(examples), task.unit), *([task.summary(examples)] if task.summary else [])]
    return f"{', '.join(told)}, {getattr(examples, 'skipped', 0):,} skipped."


def previewed(examples: Sequence, task: Task, wordpiece: WordPiece, max_length: int) -> str:
    """What files hold, and another sentence if much of the first examples is [UNK]."""
    told = what_was_read(examples, task)
    if not task.preview:
        return told
    tokens = [one for e in examples[:20] for one in task.preview(e, wordpiece, max_length)[0]]
    share = tokens.count("[UNK]") / len(tokens)
    return told if share < 0.05 else f"{told} {previews.why_unknown(share, wordpiece)}"


def digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def starting_model(options: argparse.Namespace, task: Task) -> Any:
    """What to start from: a fine-tuned model, if it has a head of this task, or an encoder, which
    gets a new head; untrained: an encoder of that size with new weights, initialized like the small
    models of this book."""
    if task.start and not options.untrained and (model := task.start(options.init_from)):
        return model
    # the warnings are about heads, which are not needed
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        encoder = BertEncoder.from_huggingface(options.init_from)
    if options.untrained:
        generator = torch.Generator().manual_seed(options.seed or 0)
        encoder = BertEncoder(encoder.config, generator)
        start_positions_from_sinusoids(encoder)
    return encoder


def card(
    options: argparse.Namespace,
    task: Task,
    settings: FineTuning,
    examples: int,
    metrics: str,
    kept: bool,
) -> str:
    """README.md of a fine-tuned model. kept: whether the checkpoint had the head already."""
    line = json.loads(metrics.splitlines()[-1])
    start = f"{Path(options.init_from).name}{', with its head' if kept else ''}"
    if options.untrained:
        start = f"random weights of the size of {start}"
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    files = ", ".join(Path(path).name for path in options.data)
    return (
        f"# Fine-tuned by `python -m spanbert_tutorial finetune {options.task}`\n\n"
        f"For {task.help}. Started from {start}; {plural(examples, task.unit)} of {files}; "
        f"{line['step']:,} steps, {line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "License of the weights: the license of the data and texts applies.\n"
    )


# --- scoring and predicting ---------------------------------------------------------


def evaluate(options: argparse.Namespace) -> None:
    """Writes predictions and scores as JSON, and prints the scores."""
    task = TASKS[options.task]
    output = check_output(options.output)
    how = reading(options, task)
    examples = task.read(*options.data, **how)
    model = open_model(task.model, options)
    print(what_was_read(examples, task), file=sys.stderr)  # stdout is for the scores
    if task.results:
        contents = task.results(options, examples, model)
    else:
        contents = {"predictions": (found := model.predict(examples))}
        contents["score"] = task.score and task.score(examples, found, **how)
    with writing(f"the results {output}"), whole_folder(output) as folder:
        for name, content in contents.items():
            text = json.dumps(content, ensure_ascii=False, indent=1)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    print(json.dumps(contents["score"], indent=1))


def predict(options: argparse.Namespace) -> None:
    """Reads the data, writes a line for each example, and says how many."""
    task = TASKS[options.task]
    output = check_output(options.output)
    found = list(task.rows(options, open_model(task.model, options)))
    with writing(output):
        write_text(output, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found))
    print(f"{plural(len(found), task.unit)}: {output}")
