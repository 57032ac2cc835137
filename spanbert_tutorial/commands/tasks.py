"""`finetune TASK` and `evaluate TASK`: what all tasks share on the command line; `TASKS` says which
there are. Chapter: `book/tasks/squad`.
"""

import argparse
import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from spanbert_tutorial.commands.run_state import kept_when_stopped, open_state, remove_state
from spanbert_tutorial.errors import InputError, NoRoom


class Task(NamedTuple):
    """A task that an encoder is fine-tuned for.

    What a task brings is named as MODULE:NAME, inside the package, and imported when it is used.
    read: (path, …) → examples. model: a class with `fine_tune` beside it in its module, and there
    `PRESETS`: settings by name, among them "small" and "spanbert". The class has
    `from_pretrained(source, tokenizer)`, `predict(examples)` and `save(folder, texts)`. score:
    (examples, predictions, …) → figures, ready for JSON. settings: further fields of its
    `FineTuning` that can be given, and what they mean; reading: further options, handed to `read`
    and to `score`. evaluate: in place of what all tasks share. start: source → a model to go on
    with, head and all, or None where the source has no head of this task.
    """

    help: str
    unit: str  # what an example is called
    data: str  # what --data takes
    read: str
    model: str
    score: str = ""
    settings: Mapping[str, str] = {}
    reading: Mapping[str, str] = {}
    evaluate: str = ""
    add_evaluate_options: str = ""
    start: str = ""

    def load(self, name: str) -> Any:
        """What stands under MODULE:NAME."""
        module, _, inside = name.partition(":")
        return getattr(import_module(f"spanbert_tutorial.{module}"), inside)

    def beside_model(self, name: str) -> Any:
        """A name of the module that the model stands in."""
        return self.load(f"{self.model.partition(':')[0]}:{name}")


TASKS = {
    "squad": Task(
        "questions on texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART of the hub (without PART: "
        "train)",
        read="commands.squad:read_training",
        model="tasks.question_answering:QuestionAnswerer",
        settings={
            "doc_stride": "context pieces from one window to the next",
            "answers_only": "leave out windows that miss their question's answer",
        },
        evaluate="commands.squad:evaluate",
        add_evaluate_options="commands.squad:add_evaluate_options",
        start="tasks.question_answering:model_with_head",
    ),
    "coreference": Task(
        "which words mean the same thing",
        "document",
        "files in CoNLL's format (also .xz, .gz), folders and archives of such",
        read="tasks.coreference:read",
        model="tasks.coreference:CoreferenceResolver",
        score="tasks.coreference:score",
    ),
    "relations": Task(
        "relations of two marked names",
        "example",
        "files in TACRED's layout (.json) or SemEval-2010 Task 8's (.txt), also .xz, .gz",
        read="tasks.relation_files:read",
        model="tasks.relation_extraction:RelationExtractor",
        score="tasks.relation_extraction:figures",
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in GLUE's layout (also .xz, .gz) or OWNER/NAME:PART of the hub (without PART: "
        "train)",
        read="tasks.sentence_files:read",
        model="tasks.sentence_tasks:SentencePredictor",
        score="tasks.sentence_tasks:score_of",
        reading={
            "subtask": "whose files these are: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, "
            "wnli, almanac-pairs "
            "or almanac-shared"
        },
    ),
}


# --- options ------------------------------------------------------------------------


def add_finetune_options(parser: argparse.ArgumentParser) -> None:
    """Options of `finetune TASK`; settings that are left out come from one of the task's
    `PRESETS`."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        one = tasks.add_parser(
            name, help=task.help, description=f"Fine-tune a checkpoint: {task.help}."
        )
        one.add_argument("--data", nargs="+", required=True, help=task.data)
        one.add_argument(
            "--init-from", required=True, help="pre-trained checkpoint: a folder or a hub name"
        )
        one.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
        one.add_argument(
            "--untrained",
            action="store_true",
            help="a control: the checkpoint's sizes, new weights",
        )
        one.add_argument("--output", required=True, help="folder of the fine-tuned model")
        one.add_argument(
            "--preset",
            help="small, spanbert or another of the task (default: by the model's width)",
        )
        one.add_argument("--epochs", type=float)
        one.add_argument(
            "--batch-size", type=int, help="full inputs in a batch; shorter ones go together"
        )
        one.add_argument("--learning-rate", type=float, help="peak learning rate")
        one.add_argument("--max-length", type=int, help="positions of an input")
        for field, meaning in task.settings.items():
            switch = (
                {"action": "store_true", "default": None}
                if field == "answers_only"
                else {"type": int}
            )
            one.add_argument(option(field), help=meaning, **switch)
        one.add_argument("--seed", type=int)
        one.add_argument(
            "--resume", action="store_true", help="go on with a stopped run of the same options"
        )
        add_reading_options(one, task)


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Options of `evaluate TASK`."""
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        one = tasks.add_parser(
            name, help=task.help, description=f"Score a fine-tuned model: {task.help}."
        )
        one.add_argument("--model", required=True, help="fine-tuned model: a folder or a hub name")
        one.add_argument("--vocabulary", help="its vocabulary, if it does not lie there")
        if task.add_evaluate_options:
            task.load(task.add_evaluate_options)(one)
        else:
            one.add_argument("--data", nargs="+", required=True, help=task.data)
            one.add_argument(
                "--output", required=True, help="new folder: predictions.json, score.json"
            )
        add_reading_options(one, task)


def add_reading_options(parser: argparse.ArgumentParser, task: Task) -> None:
    """What the task has to be told to read its files."""
    for name, meaning in task.reading.items():
        parser.add_argument(option(name), required=True, help=meaning)


def option(field: str) -> str:
    """The option of a field."""
    return f"--{field.replace('_', '-')}"


# --- fine-tuning --------------------------------------------------------------------


def finetune(options: argparse.Namespace) -> None:
    """Examples → batches → training → a folder that `evaluate` opens."""
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.engine.snapshots import Snapshots
    from spanbert_tutorial.pretraining.checkpoints import read_vocabulary

    task = TASKS[options.task]
    chosen_settings(options, task)  # a wrong option answers at once
    output = Path(options.output)
    first = processes().is_main_process
    state = open_state(options.output, options.resume)
    if state is None:
        return
    with kept_when_stopped(state):
        with (
            processes().main_process_first()
        ):  # what is wrong is said once, and what the hub has comes once
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
            print(
                f"{said(len(examples), task)}.{' The head of the start is kept.' * head}",
                flush=True,
            )
        model, history = task.beside_model("fine_tune")(
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
    """The examples of all files."""
    data = options.data if isinstance(options.data, list) else [options.data]
    return task.load(task.read)(*data, **reading(options, task))


def reading(options: argparse.Namespace, task: Task) -> dict:
    """The values of its further options."""
    return {name: getattr(options, name) for name in task.reading}


def said(number: int, task: Task) -> str:
    """How many examples."""
    return f"{number:,} {task.unit}{'' if number == 1 else 's'}"


def facts(
    options: argparse.Namespace, task: Task, settings, examples: Sequence, wordpiece, start
) -> dict:
    """What must not change when a stopped run goes on."""
    from spanbert_tutorial.engine.processes import precision, processes
    from spanbert_tutorial.engine.snapshots import fingerprint

    def checksum(content: object) -> str:
        return hashlib.sha256(repr(content).encode()).hexdigest()

    given = {
        "data": " ".join(options.data),
        "init_from": options.init_from,
        "untrained": options.untrained,
        "vocabulary": options.vocabulary or "its own",
    } | reading(options, task)
    found = {
        f"{task.unit}s": len(examples),
        "content": checksum(examples),
        "pieces": checksum(wordpiece.vocabulary),
        "start": fingerprint(start),
    }
    return (
        asdict(settings)
        | given
        | found
        | {"arithmetic": precision(), "processes": processes().num_processes}
    )


def chosen_settings(options: argparse.Namespace, task: Task, width: int = 0):
    """The `FineTuning` that the options ask for, for an encoder of this width."""
    presets = task.beside_model("PRESETS")
    preset = options.preset or ("small" if width < 768 else "spanbert")
    if preset not in presets:
        raise InputError(f'the preset "{preset}" is unknown: use one of {", ".join(presets)}.')
    names = {field.name for field in fields(presets[preset])}
    given = {name: value for name, value in vars(options).items() if name in names}
    given["peak_learning_rate"] = options.learning_rate
    return replace(
        presets[preset], **{name: value for name, value in given.items() if value is not None}
    )


def starting_model(options: argparse.Namespace, task: Task):
    """What is trained on, and whether it has a head of this task already: a model of an earlier
    stage, or an encoder, which gets a new head."""
    model = (
        task.load(task.start)(options.init_from) if task.start and not options.untrained else None
    )
    return model or starting_encoder(
        options.init_from, options.untrained, options.seed or 0
    ), model is not None


def starting_encoder(source: str, untrained: bool, seed: int):
    """The encoder of a checkpoint, or a new one of its sizes that starts as the small models of
    this book do."""
    import torch

    from spanbert_tutorial.bert.encoder import BertEncoder
    from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids

    with warnings.catch_warnings(
        action="ignore", category=UserWarning
    ):  # about heads, which are not needed
        encoder = BertEncoder.from_huggingface(source)
    if untrained:
        encoder = BertEncoder(encoder.config, torch.Generator().manual_seed(seed))
        start_positions_from_sinusoids(encoder)
    return encoder


def card(
    options: argparse.Namespace, task: Task, settings, examples: int, metrics: str, head: bool
) -> str:
    """README.md of a fine-tuned model. head: whether it was kept from the start."""
    line = json.loads(metrics.splitlines()[-1])
    start = Path(options.init_from).name
    start = (
        f"new weights of the sizes of {start}"
        if options.untrained
        else f"{start}{', with its head' * head}"
    )
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    files = ", ".join(Path(one).name for one in options.data)
    return (
        f"# Fine-tuned by `python -m spanbert_tutorial finetune {options.task}`\n\n"
        f"For {task.help}. Started from {start}; {said(examples, task)} of {files}; "
        f"{line['step']:,} steps, "
        f"{line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "Licence of the weights: that of the data and texts applies.\n"
    )


# --- scoring ------------------------------------------------------------------------


def evaluate(options: argparse.Namespace) -> None:
    """Predictions and the score, as JSON."""
    from spanbert_tutorial.pretraining.checkpoints import check_output

    task = TASKS[options.task]
    if task.evaluate:
        return task.load(task.evaluate)(options)
    output = check_output(options.output)
    examples = read(options, task)
    predictions = (
        task.load(task.model).from_pretrained(options.model, options.vocabulary).predict(examples)
    )
    result = task.load(task.score)(examples, predictions, **reading(options, task))
    write_results(output, {"predictions": predictions, "score": result})
    print(json.dumps(result, indent=1))


def write_results(output: Path, contents: Mapping[str, object]) -> None:
    """A new folder of JSON files by name, whole or not at all."""
    from spanbert_tutorial.engine.files import whole_folder

    try:
        with whole_folder(output) as made:
            for name, content in contents.items():
                text = json.dumps(content, ensure_ascii=False, indent=1)
                (made / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise NoRoom(
            f"the results cannot be written to {output} ({error}): make room, or give another."
        ) from error
