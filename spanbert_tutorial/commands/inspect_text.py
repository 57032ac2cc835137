"""`python -m spanbert_tutorial inspect`: data before any training. Of a text: how words are cut, how
much is unknown, and the losses that are reached without context. Of the files of a task: what they
hold, and the first examples as the model sees them. Chapters: `book/spanbert/pretraining_spanbert`,
`book/workshop/your_own_data`.
"""

import argparse
import tempfile
from pathlib import Path

from spanbert_tutorial.commands.options import HELP, add, changed, with_options
from spanbert_tutorial.commands.pretrain import HELD_OUT_BATCHES, TEXT, describe
from spanbert_tutorial.commands.run_state import encoded_text
from spanbert_tutorial.commands.tasks import TASKS, read_in_words, reading
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.pretraining.evaluation import baseline_losses
from spanbert_tutorial.pretraining.presets import Run

PREVIEWS = 2  # examples to look at


def inspect_options(parser: argparse.ArgumentParser) -> None:
    """Options of `inspect`: those of `pretrain` that concern the text, words to cut, and those of
    `finetune` that concern the data."""
    add(parser, *TEXT, "vocabulary", "max-length", "subtask")
    add(parser, "words", nargs="+")
    task = "look at the files of a task instead of a text; needs --data"
    add(parser, "task", choices=TASKS, help=task)
    add(parser, "data", nargs="+", help="files of the task, as for finetune TASK")


def inspect(options: argparse.Namespace) -> None:
    """Encodes a text for a moment, keeps nothing; with --task, see there."""
    if options.task:
        return inspect_task(options)
    require(not (options.data or options.subtask), "--data and --subtask need --task: give it.")
    options.init_from = None  # the vocabulary of a checkpoint is given by --vocabulary
    run = with_options(Run(objective="span"), options)
    with tempfile.TemporaryDirectory() as scratch:
        text = encoded_text(options, Path(scratch, "text"))
        describe(options.corpus, text, run.max_length)
        for way, reached in baseline_losses(run, text, HELD_OUT_BATCHES).items():
            if not reached["tokens"]:
                print(f"{way.capitalize()} masking: every word is longer than the masking budget.")
                continue
            print(
                f"Without context, {way} masking, in nats: frequency {reached['frequency']:.2f} "
                f"per masked token, frequency by position {reached['by_position']:.2f} "
                f"({reached['tokens']:,} held-out tokens)."
            )
        for word in options.words or ():
            print(f"{word}: {' '.join(text.wordpiece.tokens(text.wordpiece.encode(word)))}")
        del text  # closes its files, or Windows could not remove them


def inspect_task(options: argparse.Namespace) -> None:
    """Reads the files as `finetune` does, and prints their counts and the first examples."""
    task = TASKS[options.task]
    require(options.data, "--task needs --data: give the files of the task.")
    for name in changed(options, *TEXT, "words"):
        raise InputError(f"--{name} is of a text, not of a task: leave out --{name} or --task.")
    for name, value in (how := reading(options, task)).items():
        require(value, f"--task {options.task} needs --{name}: give {HELP[name]}.")
    examples = task.code.read(*options.data, **how, **task.training)
    wordpiece = read_vocabulary(options.vocabulary or data_path("checkpoints", "bert-mini"))
    settings = with_options(task.code.PRESETS["small"], options)
    if task.inputs:
        task.inputs(with_bar(examples, task.unit), wordpiece, settings)  # warns of what is lost
    print(read_in_words(examples, task, wordpiece, settings.max_length))
    for number, example in enumerate(examples[:PREVIEWS], start=1):
        said = str(example)
        if task.preview:
            tokens, label = task.preview(example, wordpiece, settings.max_length)
            said = f"{' '.join(tokens)}\n  label: {label}"
        print(f"{task.unit.capitalize()} {number}: {said}")
    print(
        f"Inputs of at most {settings.max_length} tokens; vocabulary: "
        f"{options.vocabulary or 'that of bert-mini (give your own with --vocabulary)'}."
    )
