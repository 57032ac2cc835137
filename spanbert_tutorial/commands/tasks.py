"""`finetune TASK` and `evaluate TASK`: what all tasks share on the command line; `TASKS` lists the
tasks. Chapter: `book/tasks/squad`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands import previews, squad
from spanbert_tutorial.commands.run_state import (
    kept_when_stopped,
    open_state,
    remove_state,
    snapshots_of,
    with_options,
    write_results,
)
from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.errors import require
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
    "spanbert". score: (examples, predictions, …) → metrics, ready for JSON; or evaluate: options →
    None, which replaces the evaluation that all tasks share, with its options. summary, preview:
    what the examples hold and how the model sees one, in words (`commands/previews.py`). start:
    source → a model with the head of this task, or None if the source has no such head. inputs:
    (examples, wordpiece, settings) → what `fine_tune` also takes for the examples; its `lost` says
    what is missing there. settings: further fields of its `FineTuning` that are options, with their
    help texts; reading: further options, passed to `read` and `score`.
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
    settings: Mapping[str, str] = {}
    reading: Mapping[str, str] = {}
    evaluate: Callable[[argparse.Namespace], None] | None = None
    add_evaluate_options: Callable[[argparse.ArgumentParser], None] | None = None
    start: Callable[[str], Any] | None = None
    inputs: Callable[..., Any] | None = None


TASKS = {
    "squad": Task(
        "questions about texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        partial(squad_files.read, part="train"),
        qa.QuestionAnswerer,
        qa.fine_tune,
        qa.PRESETS,
        summary=previews.questions_summary,
        preview=previews.question_preview,
        settings={
            "doc_stride": "context tokens from the start of one window to the next",
            "max_answer_length": "tokens of the longest answer that the model will give",
            "answers_only": "skip windows that do not contain the answer of their question",
        },
        evaluate=squad.evaluate,
        add_evaluate_options=squad.add_evaluate_options,
        start=qa.model_with_head,
        inputs=qa.QuestionAnsweringData,
    ),
    "coreference": Task(
        "mentions of the same thing in a document",
        "document",
        "files in the CoNLL format (also .xz, .gz), folders and archives of such files",
        coreference.read,
        coreference.CoreferenceResolver,
        coreference.fine_tune,
        coreference.PRESETS,
        coreference.score,
        previews.documents_summary,
        previews.document_preview,
        settings={
            "task_learning_rate": "peak learning rate of the layers after the encoder (default: of "
            "the preset spanbert 1e-4, otherwise the same)"
        },
    ),
    "relations": Task(
        "the relation between two marked names",
        "example",
        "files in the format of TACRED (.json) or SemEval-2010 Task 8 (.txt), also .xz, .gz",
        relation_files.read,
        relations.RelationExtractor,
        relations.fine_tune,
        relations.PRESETS,
        relations.figures,
        previews.relations_summary,
        previews.relation_preview,
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in the format of GLUE (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        sentence_files.read,
        classification.SentencePredictor,
        classification.fine_tune,
        classification.PRESETS,
        lambda examples, said, subtask: classification.score(
            subtask, [label for _, label in examples], said
        ),
        previews.sentences_summary,
        previews.sentence_preview,
        reading={
            "subtask": "the data set: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, "
            "almanac-pairs or almanac-shared"
        },
    ),
    "tagging": Task(
        "named things in a text",
        "text",
        "files in the columns of CoNLL-2003, or .jsonl with text and entities (also .xz, .gz)",
        tagging.read,
        tagging.Tagger,
        tagging.fine_tune,
        tagging.PRESETS,
        tagging.score,
        previews.tagging_summary,
        previews.tagging_preview,
    ),
}


# --- options ------------------------------------------------------------------------

# of the training of every task
SETTINGS = {
    "epochs": "passes over the data",
    "batch_size": "full-length inputs per batch; a batch of shorter ones holds more",
    "learning_rate": "peak learning rate",
    "max_length": "maximum input length in tokens",
    "seed": "random seed",
}


def add_tasks(
    parser: argparse.ArgumentParser, does: str, names: Iterable[str]
) -> Iterator[tuple[str, Task, argparse.ArgumentParser]]:
    """The tasks as commands below a command, which `does` something, for the help: name, task and
    parser of each, which has the options for its vocabulary and for reading its files."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name in names:
        task = TASKS[name]
        options = tasks.add_parser(name, help=task.help, description=f"{does}: {task.help}.")
        for field, meaning in task.reading.items():
            options.add_argument(option(field), required=True, help=meaning)
        options.add_argument("--vocabulary", help="its vocabulary, if it is not in that folder")
        yield name, task, options


def add_finetune_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `finetune TASK`; the `PRESETS` of the task fill in what is not given."""
    for _, task, options in add_tasks(parser, "Fine-tune a checkpoint", TASKS):
        add = options.add_argument
        add("--data", nargs="+", required=True, help=task.data)
        add("--init-from", required=True, help="pre-trained checkpoint: a folder or a hub name")
        random = "random weights of the checkpoint's size, as a baseline"
        add("--untrained", action="store_true", help=random)
        add("--output", required=True, help="folder of the fine-tuned model")
        preset = "small, spanbert or another preset of the task (default: by model size)"
        add("--preset", help=f"settings: {preset}")
        for field, meaning in {**SETTINGS, **task.settings}.items():
            if field == "answers_only":
                add(option(field), help=meaning, action="store_true", default=None)
            else:
                kind = float if field == "epochs" or field.endswith("learning_rate") else int
                add(option(field), help=meaning, type=kind)
        resume = "continue a stopped run, given the same options"
        add("--resume", action="store_true", help=resume)


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    for _, task, options in add_tasks(parser, "Score a fine-tuned model", TASKS):
        add = options.add_argument
        add("--model", required=True, help="fine-tuned model: a folder or a hub name")
        if task.add_evaluate_options:
            task.add_evaluate_options(options)
        else:
            add("--data", nargs="+", required=True, help=task.data)
            add("--output", required=True, help="new folder: predictions.json, score.json")


def option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


# --- fine-tuning --------------------------------------------------------------------


def finetune(options: argparse.Namespace) -> None:
    """Examples → batches → training → a folder that `evaluate` opens."""
    task = TASKS[options.task]
    chosen_settings(options, task)  # a wrong one is refused before anything is read
    output = Path(options.output)
    first = processes().is_main_process
    state = open_state(options.output, options.resume)
    if state is None:
        return
    with kept_when_stopped(state):
        # the first process reports errors and downloads from the hub before the others start
        with processes().main_process_first():
            examples = task.read(*options.data, **reading(options, task))
            wordpiece = read_vocabulary(options.vocabulary or options.init_from)
            start, head = starting_model(options, task)
            width = (start.encoder if head else start).config.hidden_size
            settings = chosen_settings(options, task, width)
            facts = {**asdict(settings), "untrained": options.untrained, **reading(options, task)}
            facts |= {f"{task.unit}s": len(examples), "content": digest(examples)}
            facts |= {"tokens": digest(wordpiece.vocabulary)}
            snapshots = snapshots_of(state, facts, start)
            snapshots.check()
        inputs, words = examples_in_words(examples, task, wordpiece, settings)
        if first:
            print(f"{words}{' The head of the checkpoint is kept.' if head else ''}", flush=True)
        model, history = task.fine_tune(start, wordpiece, inputs, settings, snapshots)
        if not first:
            return
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        about = card(options, task, settings, len(examples), metrics, head)
        model.save(output, {"README.md": about, "metrics.jsonl": metrics})
    remove_state(state)
    print(f"Loss of the last 50 steps: {history.mean('loss', 50):.2f}. Model: {output}")


def reading(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    return {name: getattr(options, name) for name in task.reading}


def examples_in_words(
    examples: Sequence, task: Task, wordpiece: WordPiece, settings: FineTuning
) -> tuple[Any, str]:
    """What to train on, and what it holds, in one line; another one if much of it is [UNK]."""
    inputs: Any = examples
    lost = []
    if task.inputs:
        inputs = task.inputs(with_bar(examples, task.unit), wordpiece, settings)
        lost = [inputs.lost] if inputs.lost else []
    told = previews.what_was_read(examples, task.unit, task.summary, *lost)
    if task.preview:
        told += previews.unknown(examples, task.preview, wordpiece, settings.max_length)
    return inputs, told


def digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()


def chosen_settings(options: argparse.Namespace, task: Task, width: int = 0) -> FineTuning:
    """The settings that the options describe, for an encoder of this width."""
    preset = options.preset or ("small" if width < 768 else "spanbert")
    known = ", ".join(task.presets)
    require(preset in task.presets, f'the preset "{preset}" is unknown: use one of {known}.')
    return with_options(task.presets[preset], options)


def starting_model(options: argparse.Namespace, task: Task) -> tuple[Any, bool]:
    """The model to start from, and whether it already has a head of this task: a fine-tuned model,
    or an encoder, which gets a new head; untrained: one of that size with new weights, initialized
    like the small models of this book."""
    if task.start and not options.untrained and (model := task.start(options.init_from)):
        return model, True
    # the warnings are about heads, which are not needed
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        encoder = BertEncoder.from_huggingface(options.init_from)
    if options.untrained:
        generator = torch.Generator().manual_seed(options.seed or 0)
        encoder = BertEncoder(encoder.config, generator)
        start_positions_from_sinusoids(encoder)
    return encoder, False


def card(
    options: argparse.Namespace,
    task: Task,
    settings: FineTuning,
    examples: int,
    metrics: str,
    head: bool,
) -> str:
    """README.md of a fine-tuned model. head: whether the head of the checkpoint was kept."""
    line = json.loads(metrics.splitlines()[-1])
    name = Path(options.init_from).name
    start = f"{name}, with its head" if head else name
    start = f"random weights of the size of {name}" if options.untrained else start
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    files = ", ".join(Path(path).name for path in options.data)
    return (
        f"# Fine-tuned by `python -m spanbert_tutorial finetune {options.task}`\n\n"
        f"For {task.help}. Started from {start}; {previews.plural(examples, task.unit)} of {files}; "
        f"{line['step']:,} steps, {line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "License of the weights: the license of the data and texts applies.\n"
    )


# --- scoring ------------------------------------------------------------------------


def evaluate(options: argparse.Namespace) -> None:
    """Writes predictions and scores as JSON, and prints the scores."""
    task = TASKS[options.task]
    if task.evaluate:
        return task.evaluate(options)
    output = check_output(options.output)
    examples = task.read(*options.data, **reading(options, task))
    model = task.model.from_pretrained(options.model, options.vocabulary)
    told = previews.what_was_read(examples, task.unit, task.summary)
    print(told, file=sys.stderr)  # stdout is for the scores
    predictions = model.predict(examples)
    result = task.score and task.score(examples, predictions, **reading(options, task))
    write_results(output, {"predictions": predictions, "score": result})
    print(json.dumps(result, indent=1))
