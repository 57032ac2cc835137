"""`finetune TASK`, `evaluate TASK` and `predict TASK`: what all tasks share on the command line;
`TASKS` lists the tasks. Chapters: `book/tasks/squad`, `book/workshop/your_own_data`.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.commands import previews, rows, squad
from spanbert_tutorial.commands.options import add, open_model, with_options
from spanbert_tutorial.commands.pretrain import why_unknown
from spanbert_tutorial.commands.previews import plural
from spanbert_tutorial.commands.run_state import run_state, snapshots_of
from spanbert_tutorial.engine.files import whole_folder, write_text, writing
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.checkpoints import check_output, read_vocabulary
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.tasks import classification, coreference, tagging
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import relation_extraction as relations
from spanbert_tutorial.tasks.fine_tuning import FineTuning


class Task(NamedTuple):
    """A task that an encoder is fine-tuned for. The fields from `score` on are not for all tasks."""

    help: str
    unit: str  # what an example is called
    data: str  # what --data takes
    # the task's module: read(path, …, what `reading` names) → examples; fine_tune(encoder, wordpiece,
    # examples, settings, snapshots) → model, history; PRESETS, among them "small" and "spanbert"
    code: Any
    model: Any  # has from_pretrained(source, tokenizer), predict(examples), save(folder, texts)
    # (examples, predictions, what `reading` names) → metrics, ready for JSON
    score: Callable[..., Any] | None = None
    summary: Callable[[Any], str] | None = None  # what examples hold, in words
    preview: Callable[..., tuple[list[str], str]] | None = None  # how the model sees one
    rows: Any = None  # (options, model) → what `predict` writes
    reading: Sequence[str] = ()  # options for `read` and `score`
    options: Mapping[str, Sequence[str]] = {}  # further ones of a command
    training: Mapping[str, str] = {}  # what `read` also takes for the data to train on
    # (options, examples, model) → contents of files, one of them "score", instead of `score`
    results: Callable[..., dict[str, Any]] | None = None
    # source → a model with the head of this task, or None if the source has no such head
    start: Callable[[str], Any] | None = None
    # (examples, wordpiece, settings) → what is trained on, with warnings of what is lost
    inputs: Callable[..., Any] | None = None


TASKS = {
    "squad": Task(
        "questions about texts, with and without an answer",
        "question",
        "SQuAD files or .csv tables (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train to fine-tune, otherwise validation); to predict also a plain .txt with --question",
        qa,
        qa.QuestionAnswerer,
        summary=lambda read: f"{sum(not one.answers for one in read):,} without an answer",
        preview=previews.question_preview,
        rows=rows.answers,
        options={
            "finetune": ("doc-stride", "max-answer-length", "answers-only"),
            "evaluate": ("tune-on", "characters", "max-answer-length"),
            "predict": ("question", "threshold", "n-best", "max-answer-length"),
        },
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
        coreference,
        coreference.CoreferenceResolver,
        coreference.score,
        lambda read: plural(sum(len(one.clusters) for one in read), "cluster"),
        previews.document_preview,
        rows.clusters,
        options={"finetune": ("task-learning-rate",)},
    ),
    "relations": Task(
        "the relation between two marked names",
        "example",
        "files in the format of TACRED (.json) or SemEval-2010 Task 8 (.txt), also .xz, .gz; to "
        "predict also a .txt with a marked sentence a line",
        relations,
        relations.RelationExtractor,
        relations.figures,
        lambda read: plural(len({one.relation for one in read}), "relation"),
        previews.relation_preview,
        rows.relations,
    ),
    "sentences": Task(
        "one or two sentences, a label or a score, as in GLUE",
        "example",
        "TSV files in the format of GLUE (also .xz, .gz) or OWNER/NAME:PART on the hub (without PART: "
        "train); to predict also a .txt with a sentence a line, or two with a tab between",
        classification,
        classification.SentencePredictor,
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
        tagging,
        tagging.Tagger,
        tagging.score,
        previews.tagging_summary,
        previews.tagging_preview,
        rows.entities,
    ),
}


# --- options ------------------------------------------------------------------------

# command → what it does, and what its --output is
COMMANDS = {
    "finetune": ("Fine-tune a checkpoint", "folder of the fine-tuned model"),
    "evaluate": ("Score a fine-tuned model", "new folder for predictions and scores (.json)"),
    "predict": ("Predict (ignoring labels)", "file of one JSON line per example (or .xz, .gz)"),
}


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Adds the tasks below a command, each with its options; the `PRESETS` of a task fill in what
    is not given to `finetune`."""
    does, output = COMMANDS[command]
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")
    for name, task in TASKS.items():
        if command == "predict" and not task.rows:
            continue
        options = tasks.add_parser(name, help=task.help, description=f"{does}: {task.help}.")
        add(options, "data", nargs="+", required=True, help=task.data)
        add(options, *task.reading, required=True)
        add(options, "vocabulary", help="its vocabulary, if it is not in that folder")
        if command == "finetune":
            add(options, "init-from", required=True)
            add(options, "preset", choices=task.code.PRESETS)
            add(options, "epochs", "batch-size", "learning-rate", "max-length", "seed")
            add(options, "untrained", "resume")
        else:
            add(options, "model", required=True)
        add(options, *task.options.get(command, ()))
        add(options, "output", required=True, help=output)


finetune_options = partial(add_options, command="finetune")
evaluate_options = partial(add_options, command="evaluate")
predict_options = partial(add_options, command="predict")


def reading(options: argparse.Namespace, task: Task) -> dict[str, Any]:
    """What the options say of how to read the files, and to score."""
    return {name: getattr(options, name) for name in task.reading}


# --- fine-tuning --------------------------------------------------------------------


def finetune(options: argparse.Namespace) -> None:
    """Examples → batches → training → a folder that `evaluate` opens."""
    task = TASKS[options.task]
    with run_state(options.output, options.resume) as state:
        if state is None:
            return
        # the first process reports errors and downloads from the hub before the others start
        with processes().main_process_first():
            how = reading(options, task)
            examples = task.code.read(*options.data, **how, **task.training)
            wordpiece = read_vocabulary(options.vocabulary or options.init_from)
            start = starting_model(options, task)
            kept = not isinstance(start, BertEncoder)
            width = (start.encoder if kept else start).config.hidden_size
            preset = options.preset or ("small" if width < 768 else "spanbert")
            settings = with_options(task.code.PRESETS[preset], options)
            facts = asdict(settings) | {"untrained": bool(options.untrained)} | how
            facts |= {f"{task.unit}s": len(examples), "content": digest(examples)}
            facts |= {"tokens": digest(wordpiece.vocabulary)}
            snapshots = snapshots_of(state, facts, start)
        first = processes().is_main_process
        if first:
            head = " The head of the checkpoint is kept." if kept else ""
            print(read_in_words(examples, task, wordpiece, settings.max_length) + head, flush=True)
        model, history = task.code.fine_tune(start, wordpiece, examples, settings, snapshots)
        if not first:
            return
        if how:
            model.facts |= how  # `opened` compares them
        metrics = (state / "metrics.jsonl").read_text(encoding="utf-8")
        began = f"{Path(options.init_from).name}{', with its head' if kept else ''}"
        if options.untrained:
            began = f"random weights of the size of {began}"
        began += f"; {plural(len(examples), task.unit)}"
        about = card(options, settings, began, json.loads(metrics.splitlines()[-1]))
        model.save(Path(options.output), {"README.md": about, "metrics.jsonl": metrics})
        print(f"Loss of the last 50 steps: {history.mean('loss', 50):.2f}. Model: {options.output}")


def read_in_words(
    examples: Sequence, task: Task, wordpiece: WordPiece | None = None, max_length: int = 0
) -> str:
    """What files hold, in one line, so that a misread file is noticed at once. With a vocabulary,
    another sentence if much of the first examples is [UNK]."""
    told = [plural(len(examples), task.unit), *([task.summary(examples)] if task.summary else [])]
    line = f"{', '.join(told)}, {getattr(examples, 'skipped', 0):,} skipped."
    if not (task.preview and wordpiece):
        return line
    tokens = [one for e in examples[:20] for one in task.preview(e, wordpiece, max_length)[0]]
    share = tokens.count("[UNK]") / len(tokens)
    return line if share < 0.05 else f"{line} {why_unknown(share, wordpiece)}"


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


def card(options: argparse.Namespace, settings: FineTuning, began: str, line: dict) -> str:
    """README.md of a fine-tuned model. began: with what; line: the last one of its metrics."""
    rows = "\n".join(f"| {name} | {value} |" for name, value in asdict(settings).items())
    files = ", ".join(Path(path).name for path in options.data)
    return (
        f"# Fine-tuned by `python -m spanbert_tutorial finetune {options.task}`\n\n"
        f"For {TASKS[options.task].help}. Started from {began} of {files}; "
        f"{line['step']:,} steps, {line['tokens']:,} tokens, {line['seconds'] / 60:.0f} minutes.\n\n"
        f"| setting | value |\n|---|---|\n{rows}\n\n"
        "License of the weights: the license of the data and texts applies.\n"
    )


# --- scoring and predicting ---------------------------------------------------------


def opened(options: argparse.Namespace, task: Task) -> Any:
    """The fine-tuned model. Raises InputError for one whose examples were read in another way."""
    model = open_model(task.model, options)
    for name, value in reading(options, task).items():
        own = model.facts.get(name, value)  # earlier models do not tell
        told = f"{options.model} was fine-tuned with --{name} {own}, not {value}"
        require(own == value, f"{told}: give that, or another model.")
    return model


def evaluate(options: argparse.Namespace) -> None:
    """Writes predictions and scores as JSON, and prints the scores."""
    task = TASKS[options.task]
    output = check_output(options.output)
    how = reading(options, task)
    examples = task.code.read(*options.data, **how)
    model = opened(options, task)
    print(read_in_words(examples, task), file=sys.stderr)  # stdout is for the scores
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
    found = list(task.rows(options, opened(options, task)))
    with writing(output):
        write_text(output, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found))
    print(f"{plural(len(found), task.unit)}: {output}")
