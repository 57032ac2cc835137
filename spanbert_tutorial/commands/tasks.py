"""`finetune TASK` and `evaluate TASK`: what all tasks share on the command line; `TASKS` lists the
tasks. Chapter: `book/tasks/squad`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spanbert_tutorial.commands.previews import plural
from spanbert_tutorial.commands.run_state import kept_when_stopped, open_state, remove_state
from spanbert_tutorial.errors import InputError, NoRoom

if TYPE_CHECKING:  # slow imports: a wrong option has to be refused at once
    from torch import nn

    from spanbert_tutorial.bert.encoder import BertEncoder
    from spanbert_tutorial.bert.wordpiece import WordPiece
    from spanbert_tutorial.tasks.fine_tuning import FineTuning


class Task(NamedTuple):
    """A task that an encoder is fine-tuned for.

    Its functions are given as MODULE:NAME inside the package and imported when they are used.
    read: (path, …) → examples. model: a class with `from_pretrained(source, tokenizer)`,
    `predict(examples)` and `save(folder, texts)`; its module also has `fine_tune` and `PRESETS`,
    settings by name, among them "small" and "spanbert". score: (examples, predictions, …) →
    metrics, ready for JSON. settings: further fields of its `FineTuning` that are options, with
    their help texts; reading: further options, passed to `read` and `score`. summary, preview: what
    the examples hold and how the model sees one, in words (`commands/previews.py`). evaluate,
    add_evaluate_options: replace the evaluation that all tasks share, and its options. start:
    source → a model with the head of this task, or None if the source has no such head.
    """

    help: str
    unit: str  # what an example is called
    data: str  # what --data takes
    read: str
    model: str
    score: str = ""
    summary: str = ""
    preview: str = ""
    settings: Mapping[str, str] = {}
    reading: Mapping[str, str] = {}
    evaluate: str = ""
    add_evaluate_options: str = ""
    start: str = ""

    def load(self, name: str) -> Any:
        """The object that MODULE:NAME names."""
        module, _, inside = name.partition(":")
        return getattr(import_module(f"spanbert_tutorial.{module}"), inside)

    def from_model_module(self, name: str) -> Any:
        """An object of the module that defines the model."""
        return self.load(f"{self.model.partition(':')[0]}:{name}")


TASKS = {
    "squad": Task(
        "questions about texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        read="commands.squad:read_training",
        model="tasks.question_answering:QuestionAnswerer",
        summary="commands.previews:questions_summary",
        preview="commands.previews:question_preview",
        settings={
            "doc_stride": "context tokens from the start of one window to the next",
            "answers_only": "skip windows that do not contain the answer of their question",
        },
        evaluate="commands.squad:evaluate",
        add_evaluate_options="commands.squad:add_evaluate_options",
        start="tasks.question_answering:model_with_head",
    ),
    "coreference": Task(
        "mentions of the same thing in a document",
        "document",
        "files in the CoNLL format (also .xz, .gz), folders and archives of such files",
        read="tasks.coreference:read",
        model="tasks.coreference:CoreferenceResolver",
        summary="commands.previews:documents_summary",
        preview="commands.previews:document_preview",
        score="tasks.coreference:score",
    ),
    "relations": Task(
        "the relation between two marked names",
        "example",
        "files in the format of TACRED (.json) or SemEval-2010 Task 8 (.txt), also .xz, .gz",
        read="tasks.relation_files:read",
        model="tasks.relation_extraction:RelationExtractor",
        summary="commands.previews:relations_summary",
        preview="commands.previews:relation_preview",
        score="tasks.relation_extraction:figures",
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in the format of GLUE (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train)",
        read="tasks.sentence_files:read",
        model="tasks.sentence_tasks:SentencePredictor",
        summary="commands.previews:sentences_summary",
        preview="commands.previews:sentence_preview",
        score="tasks.sentence_tasks:score_of",
        reading={
            "subtask": "the data set: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, "
            "almanac-pairs or almanac-shared"
        },
    ),
}


# --- options ------------------------------------------------------------------------


def add_finetune_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `finetune TASK`; the `PRESETS` of the task fill in what is not given."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        description = f"Fine-tune a checkpoint: {task.help}."
        options = tasks.add_parser(name, help=task.help, description=description)
        options.add_argument("--data", nargs="+", required=True, help=task.data)
        options.add_argument(
            "--init-from", required=True, help="pre-trained checkpoint: a folder or a hub name"
        )
        options.add_argument("--vocabulary", help="its vocabulary, if it is not in that folder")
        options.add_argument(
            "--untrained",
            action="store_true",
            help="random weights of the checkpoint's size, as a baseline",
        )
        options.add_argument("--output", required=True, help="folder of the fine-tuned model")
        options.add_argument(
            "--preset",
            help="settings: small, spanbert or another preset of the task (default: by model size)",
        )
        options.add_argument("--epochs", type=float, help="passes over the data")
        options.add_argument(
            "--batch-size",
            type=int,
            help="full-length inputs per batch; a batch of shorter ones holds more",
        )
        options.add_argument("--learning-rate", type=float, help="peak learning rate")
        options.add_argument("--max-length", type=int, help="maximum input length in tokens")
        for field, meaning in task.settings.items():
            if field == "answers_only":
                options.add_argument(option(field), help=meaning, action="store_true", default=None)
            else:
                options.add_argument(option(field), help=meaning, type=int)
        options.add_argument("--seed", type=int, help="random seed")
        options.add_argument(
            "--resume", action="store_true", help="continue a stopped run, given the same options"
        )
        add_reading_options(options, task)


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `evaluate TASK`."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        description = f"Score a fine-tuned model: {task.help}."
        options = tasks.add_parser(name, help=task.help, description=description)
        options.add_argument(
            "--model", required=True, help="fine-tuned model: a folder or a hub name"
        )
        options.add_argument("--vocabulary", help="its vocabulary, if it is not in that folder")
        if task.add_evaluate_options:
            task.load(task.add_evaluate_options)(options)
        else:
            options.add_argument("--data", nargs="+", required=True, help=task.data)
            options.add_argument(
                "--output", required=True, help="new folder: predictions.json, score.json"
            )
        add_reading_options(options, task)


def add_reading_options(parser: argparse.ArgumentParser, task: Task) -> None:
    """Adds the options that the task needs to read its files."""
    for name, meaning in task.reading.items():
        parser.add_argument(option(name), required=True, help=meaning)


def option(field: str) -> str:
    """The option that sets a field."""
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
        if first:
            kept = " The head of the checkpoint is kept." if head else ""
            print(f"{what_was_read(examples, task)}{kept}", flush=True)
        model, history = task.from_model_module("fine_tune")(
            start, wordpiece, examples, settings, snapshots
        )
        if not first:
            return
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        about = card(options, task, settings, len(examples), metrics, head)
        texts = {"README.md": about, "metrics.jsonl": metrics}
        model.save(output, texts)
    remove_state(state)
    print(f"Loss of the last 50 steps: {history.mean('loss', 50):.2f}. Model: {output}")


def read(options: argparse.Namespace, task: Task) -> list:
    """The examples in all files."""
    data = options.data if isinstance(options.data, list) else [options.data]
    return task.load(task.read)(*data, **reading(options, task))


def reading(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    """The values of the options that the task needs to read its files."""
    return {name: getattr(options, name) for name in task.reading}


def counted(number: int, task: Task) -> str:
    """A number of examples, in words."""
    return plural(number, task.unit)


def what_was_read(examples: Sequence, task: Task) -> str:
    """What files hold, in one line, so that a misread file is noticed at once."""
    summary = [task.load(task.summary)(examples)] if task.summary else []
    skipped = f"{getattr(examples, 'skipped', 0):,} skipped"
    return f"{', '.join([counted(len(examples), task), *summary, skipped])}."


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
        "data": " ".join(options.data),
        "init_from": options.init_from,
        "untrained": options.untrained,
        "vocabulary": options.vocabulary or "its own",
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
    presets = task.from_model_module("PRESETS")
    preset = options.preset or ("small" if width < 768 else "spanbert")
    if preset not in presets:
        raise InputError(f'the preset "{preset}" is unknown: use one of {", ".join(presets)}.')
    names = {field.name for field in fields(presets[preset])}
    given = {name: value for name, value in vars(options).items() if name in names}
    given["peak_learning_rate"] = options.learning_rate
    return replace(
        presets[preset], **{name: value for name, value in given.items() if value is not None}
    )


def starting_model(options: argparse.Namespace, task: Task) -> tuple[Any, bool]:
    """The model to start from, and whether it already has a head of this task: a fine-tuned model,
    or an encoder, which gets a new head."""
    if task.start and not options.untrained:
        model = task.load(task.start)(options.init_from)
        if model is not None:
            return model, True
    return starting_encoder(options.init_from, options.untrained, options.seed or 0), False


def starting_encoder(source: str, untrained: bool, seed: int) -> "BertEncoder":
    """The encoder of a checkpoint, or one of its size with new weights, initialized like the small
    models of this book."""
    import torch

    from spanbert_tutorial.bert.encoder import BertEncoder
    from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids

    # the warnings are about heads, which are not needed
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        encoder = BertEncoder.from_huggingface(source)
    if untrained:
        encoder = BertEncoder(encoder.config, torch.Generator().manual_seed(seed))
        start_positions_from_sinusoids(encoder)
    return encoder


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
    start = Path(options.init_from).name
    if options.untrained:
        start = f"random weights of the size of {start}"
    elif head:
        start = f"{start}, with its head"
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    files = ", ".join(Path(path).name for path in options.data)
    return (
        f"# Fine-tuned by `python -m spanbert_tutorial finetune {options.task}`\n\n"
        f"For {task.help}. Started from {start}; {counted(examples, task)} of {files}; "
        f"{line['step']:,} steps, {line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "License of the weights: the license of the data and texts applies.\n"
    )


# --- scoring ------------------------------------------------------------------------


def evaluate(options: argparse.Namespace) -> None:
    """Writes predictions and scores as JSON, and prints the scores."""
    from spanbert_tutorial.pretraining.checkpoints import check_output

    task = TASKS[options.task]
    if task.evaluate:
        return task.load(task.evaluate)(options)
    output = check_output(options.output)
    examples = read(options, task)
    model = task.load(task.model).from_pretrained(options.model, options.vocabulary)
    print(what_was_read(examples, task), file=sys.stderr)  # stdout is for the scores
    predictions = model.predict(examples)
    result = task.load(task.score)(examples, predictions, **reading(options, task))
    write_results(output, {"predictions": predictions, "score": result})
    print(json.dumps(result, indent=1))


def write_results(output: Path, contents: Mapping[str, object]) -> None:
    """Writes a new folder of JSON files by name, completely or not at all."""
    from spanbert_tutorial.engine.files import whole_folder

    try:
        with whole_folder(output) as folder:
            for name, content in contents.items():
                text = json.dumps(content, ensure_ascii=False, indent=1)
                (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise NoRoom(
            f"the results cannot be written to {output} ({error}): make room, or give another --output."
        ) from error
