"""`finetune TASK` and `evaluate TASK`: what all tasks share on the command line; `TASKS` lists the
tasks. Chapter: `book/tasks/squad`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spanbert_tutorial.commands import previews, squad
from spanbert_tutorial.commands.run_state import (
    kept_when_stopped,
    open_state,
    remove_state,
    write_results,
)
from spanbert_tutorial.errors import require

if TYPE_CHECKING:  # slow imports: a wrong option has to be refused at once
    from torch import nn

    from spanbert_tutorial.bert.wordpiece import WordPiece
    from spanbert_tutorial.tasks.fine_tuning import FineTuning


class Parts(NamedTuple):
    """The functions of a task.

    read: (path, …) → examples. model: a class with `from_pretrained(source, tokenizer)`,
    `predict(examples)` and `save(folder, texts)`. fine_tune: (encoder, wordpiece, examples,
    settings, snapshots) → model and history. presets: settings by name, among them "small" and
    "spanbert". score: (examples, predictions, …) → metrics, ready for JSON; or evaluate: options →
    None, which replaces the evaluation that all tasks share. summary, preview: what the examples
    hold and how the model sees one, in words (`commands/previews.py`). start: source → a model with
    the head of this task, or None if the source has no such head. inputs: (examples, wordpiece,
    settings) → what `fine_tune` also takes for the examples, with `lost` and `lost_answers()`.
    """

    read: Callable[..., list]
    model: Any
    fine_tune: Callable[..., tuple]
    presets: Mapping[str, "FineTuning"]
    score: Callable[..., Any] | None = None
    summary: Callable[[Any], str] | None = None
    preview: Callable[..., tuple[list[str], str]] | None = None
    evaluate: Callable[[argparse.Namespace], None] | None = None
    start: Callable[[str], Any] | None = None
    inputs: Callable[..., Any] | None = None


class Task(NamedTuple):
    """A task that an encoder is fine-tuned for.

    parts: gives its functions; it imports them, which takes seconds. settings: further fields of its
    `FineTuning` that are options, with their help texts; reading: further options, passed to `read`
    and `score`. add_evaluate_options: replaces the options of `evaluate`.
    """

    help: str
    unit: str  # what an example is called
    data: str  # what --data takes
    parts: Callable[[], Parts]
    settings: Mapping[str, str] = {}
    reading: Mapping[str, str] = {}
    add_evaluate_options: Callable[[argparse.ArgumentParser], None] | None = None


def questions() -> Parts:
    from spanbert_tutorial.tasks import question_answering as qa
    from spanbert_tutorial.tasks.squad import read_several

    return Parts(
        lambda *sources: read_several(sources, part="train"),
        qa.QuestionAnswerer,
        qa.fine_tune,
        qa.PRESETS,
        summary=previews.questions_summary,
        preview=previews.question_preview,
        evaluate=squad.evaluate,
        start=qa.model_with_head,
        inputs=qa.QuestionAnsweringData,
    )


def coreference() -> Parts:
    from spanbert_tutorial.tasks import coreference as task

    summary, preview = previews.documents_summary, previews.document_preview
    trained = task.CoreferenceResolver, task.fine_tune, task.PRESETS
    return Parts(task.read, *trained, task.score, summary, preview)


def relations() -> Parts:
    from spanbert_tutorial.tasks import relation_extraction as task
    from spanbert_tutorial.tasks.relation_files import read

    summary, preview = previews.relations_summary, previews.relation_preview
    trained = task.RelationExtractor, task.fine_tune, task.PRESETS
    return Parts(read, *trained, task.figures, summary, preview)


def sentences() -> Parts:
    from spanbert_tutorial.tasks import sentence_tasks as task

    summary, preview = previews.sentences_summary, previews.sentence_preview
    trained = task.SentencePredictor, task.fine_tune, task.PRESETS
    return Parts(task.read, *trained, task.score_of, summary, preview)


def tagging() -> Parts:
    from spanbert_tutorial.tasks import tagging as task

    summary, preview = previews.tagging_summary, previews.tagging_preview
    return Parts(task.read, task.Tagger, task.fine_tune, task.PRESETS, task.score, summary, preview)


TASKS = {
    "squad": Task(
        "questions about texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        questions,
        settings={
            "doc_stride": "context tokens from the start of one window to the next",
            "max_answer_length": "tokens of the longest answer that the model will give",
            "answers_only": "skip windows that do not contain the answer of their question",
        },
        add_evaluate_options=squad.add_evaluate_options,
    ),
    "coreference": Task(
        "mentions of the same thing in a document",
        "document",
        "files in the CoNLL format (also .xz, .gz), folders and archives of such files",
        coreference,
        settings={
            "task_learning_rate": "peak learning rate of the layers after the encoder (default: of "
            "the preset spanbert 1e-4, otherwise the same)"
        },
    ),
    "relations": Task(
        "the relation between two marked names",
        "example",
        "files in the format of TACRED (.json) or SemEval-2010 Task 8 (.txt), also .xz, .gz",
        relations,
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in the format of GLUE (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        sentences,
        reading={
            "subtask": "the data set: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, "
            "almanac-pairs or almanac-shared"
        },
    ),
    "tagging": Task(
        "named things in a text",
        "text",
        "files in the columns of CoNLL-2003, or .jsonl with text and entities (also .xz, .gz)",
        tagging,
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


def add_finetune_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `finetune TASK`; the `PRESETS` of the task fill in what is not given."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        description = f"Fine-tune a checkpoint: {task.help}."
        options = tasks.add_parser(name, help=task.help, description=description)
        add = options.add_argument
        add("--data", nargs="+", required=True, help=task.data)
        add("--init-from", required=True, help="pre-trained checkpoint: a folder or a hub name")
        add("--vocabulary", help="its vocabulary, if it is not in that folder")
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
        add_reading_options(options, task)


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        description = f"Score a fine-tuned model: {task.help}."
        options = tasks.add_parser(name, help=task.help, description=description)
        add = options.add_argument
        add("--model", required=True, help="fine-tuned model: a folder or a hub name")
        add("--vocabulary", help="its vocabulary, if it is not in that folder")
        if task.add_evaluate_options:
            task.add_evaluate_options(options)
        else:
            add("--data", nargs="+", required=True, help=task.data)
            add("--output", required=True, help="new folder: predictions.json, score.json")
        add_reading_options(options, task)


def add_reading_options(parser: argparse.ArgumentParser, task: Task) -> None:
    """Adds the options that the task needs to read its files."""
    for name, meaning in task.reading.items():
        parser.add_argument(option(name), required=True, help=meaning)


def option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


# --- fine-tuning --------------------------------------------------------------------


def finetune(options: argparse.Namespace) -> None:
    """Examples → batches → training → a folder that `evaluate` opens."""
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.engine.snapshots import Snapshots
    from spanbert_tutorial.pretraining.checkpoints import read_vocabulary

    task = TASKS[options.task]
    chosen_settings(options, task)  # a wrong option is refused at once
    output = Path(options.output)
    first = processes().is_main_process
    state = open_state(options.output, options.resume)
    if state is None:
        return
    with kept_when_stopped(state):
        # the first process reports errors and downloads from the hub before the others start
        with processes().main_process_first():
            examples = read(options, task)
            wordpiece = read_vocabulary(options.vocabulary or options.init_from)
            start, head = starting_model(options, task)
            width = (start.encoder if head else start).config.hidden_size
            settings = chosen_settings(options, task, width)
            snapshots = Snapshots(
                state / "snapshots", facts(options, task, settings, examples, wordpiece, start)
            )
            snapshots.check()
        inputs, told = examples_in_words(examples, task, wordpiece, settings)
        if first:
            kept = " The head of the checkpoint is kept." if head else ""
            print(f"{told}{kept}", flush=True)
        fine_tune = task.parts().fine_tune
        model, history = fine_tune(start, wordpiece, inputs, settings, snapshots)
        if not first:
            return
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        about = card(options, task, settings, len(examples), metrics, head)
        texts = {"README.md": about, "metrics.jsonl": metrics}
        model.save(output, texts)
    remove_state(state)
    print(f"Loss of the last 50 steps: {history.mean('loss', 50):.2f}. Model: {output}")


def read(options: argparse.Namespace, task: Task) -> list:
    return task.parts().read(*options.data, **reading(options, task))


def reading(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    return {name: getattr(options, name) for name in task.reading}


def examples_in_words(
    examples: Sequence, task: Task, wordpiece: "WordPiece", settings: "FineTuning"
) -> tuple[Any, str]:
    """What to train on, and what it holds, in one line; another one if much of it is [UNK]."""
    from spanbert_tutorial.engine.hooks import with_bar

    parts = task.parts()
    inputs: Any = examples
    lost = []
    if parts.inputs:
        inputs = parts.inputs(with_bar(examples, task.unit), wordpiece, settings)
        lost = [inputs.lost_answers()] if inputs.lost else []
    told = previews.what_was_read(examples, task.unit, parts.summary, *lost)
    if parts.preview:
        told += previews.unknown(examples, parts.preview, wordpiece, settings.max_length)
    return inputs, told


def facts(
    options: argparse.Namespace,
    task: Task,
    settings: "FineTuning",
    examples: Sequence,
    wordpiece: "WordPiece",
    start: "nn.Module",
) -> dict[str, Any]:
    """What must not change when a stopped run is resumed."""
    from spanbert_tutorial.engine.processes import precision, processes
    from spanbert_tutorial.engine.snapshots import fingerprint

    def checksum(content: object) -> str:
        return hashlib.sha256(repr(content).encode()).hexdigest()

    return {
        **asdict(settings),
        "untrained": options.untrained,
        **reading(options, task),
        f"{task.unit}s": len(examples),
        "content": checksum(examples),
        "tokens": checksum(wordpiece.vocabulary),
        "start": fingerprint(start),
        "arithmetic": precision(),
        "processes": processes().num_processes,
    }


def chosen_settings(options: argparse.Namespace, task: Task, width: int = 0) -> "FineTuning":
    """The settings that the options describe, for an encoder of this width."""
    presets = task.parts().presets
    preset = options.preset or ("small" if width < 768 else "spanbert")
    known = ", ".join(presets)
    require(preset in presets, f'the preset "{preset}" is unknown: use one of {known}.')
    names = {field.name for field in fields(presets[preset])}
    given = vars(options) | {"peak_learning_rate": options.learning_rate}
    chosen = {name: v for name, v in given.items() if name in names and v is not None}
    return replace(presets[preset], **chosen)


def starting_model(options: argparse.Namespace, task: Task) -> tuple[Any, bool]:
    """The model to start from, and whether it already has a head of this task: a fine-tuned model,
    or an encoder, which gets a new head; untrained: one of that size with new weights, initialized
    like the small models of this book."""
    import torch

    from spanbert_tutorial.bert.encoder import BertEncoder
    from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids

    with_head = task.parts().start
    if with_head and not options.untrained and (model := with_head(options.init_from)):
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
    settings: "FineTuning",
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
    from spanbert_tutorial.pretraining.checkpoints import check_output

    task = TASKS[options.task]
    parts = task.parts()
    if parts.evaluate:
        return parts.evaluate(options)
    output = check_output(options.output)
    examples = read(options, task)
    model = parts.model.from_pretrained(options.model, options.vocabulary)
    told = previews.what_was_read(examples, task.unit, parts.summary)
    print(told, file=sys.stderr)  # stdout is for the scores
    predictions = model.predict(examples)
    result = parts.score and parts.score(examples, predictions, **reading(options, task))
    write_results(output, {"predictions": predictions, "score": result})
    print(json.dumps(result, indent=1))
