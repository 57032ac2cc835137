"""The options of all commands: one means the same, and takes the same numbers, wherever it stands.
Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

Settings = TypeVar("Settings", bound=Any)

HELP = {
    # text
    "corpus": "text to read: almanac (default), a .txt or .jsonl file (also .xz, .gz), a folder of "
    "such files, or OWNER/NAME on the Hugging Face hub",
    "vocabulary": "a vocab.txt, tokenizer.json or checkpoint (default: that of the model to start "
    "from, else the almanac's own, else learned from the text)",
    "vocab-size": "number of tokens in a learned vocabulary (default: 8000)",
    "leave-out": "text file of titles, one per line: documents of a .jsonl with these are skipped",
    "held-out-every": "hold out one document in so many for evaluation (default: 50; the almanac "
    "has its own)",
    "words": "words or names to cut into tokens",
    "easy": "keep nearly all words of the sentence in its question",
    # training
    "init-from": "checkpoint to start from, a folder or a hub name; pretrain starts from random "
    "weights otherwise",
    "config": "size of the model: tiny, mini, small, base or large (default: that of --init-from, "
    "else tiny)",
    "objective": "training objective: mlm, mlm+nsp, mlm-wholeword, span, span+sbo (default), mix "
    "(mlm and span+sbo in turn) or another row of the tables in objectives.py",
    "preset": "settings of the training (default: small or spanbert, by model size)",
    "steps": "number of optimizer steps",
    "epochs": "passes over the data",
    "batch-size": "full-length inputs per batch; a batch of shorter ones may hold more",
    "accumulate": "batches per step, for steps that do not fit into memory",
    "max-length": "maximum input length in tokens, with [CLS] and [SEP]",
    "learning-rate": "peak learning rate",
    "task-learning-rate": "peak learning rate of the layers after the encoder (default: of the "
    "preset spanbert 1e-4, otherwise the same)",
    "seed": "random seed (default: 0)",
    "half": "store the checkpoint in half precision, at half the size",
    "no-compile": "do not compile the training step, as is done on a graphics card from mini up: "
    "saves a minute at the start, and batches blocks of similar length",
    "untrained": "random weights of the checkpoint's size, as a baseline",
    "dry-run": "try some steps, print the memory and hours that the run would take, and stop",
    "resume": "continue a stopped run, given the same options",
    # tasks
    "model": "fine-tuned model: a folder or a hub name",
    "subtask": "the data set of sentences: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, "
    "almanac-pairs or almanac-shared",
    "doc-stride": "context tokens from the start of one window to the next",
    "max-answer-length": "tokens of the longest answer that the model gives (default: 30; of a "
    "fine-tuned model, as in training)",
    "answers-only": "skip windows that do not contain the answer of their question",
    "tune-on": "other questions, to choose the null-score threshold on (the one with the best F1)",
    "characters": "also F1 over characters, for languages that put no spaces between words",
    "question": "to ask of plain text; may be repeated",
    "threshold": "give no answer if null score − score is above this (default: 0; a negative "
    "number with an exponent needs the equals sign, as in --threshold=-1e-5)",
    "n-best": "how many answers to give (default: 1)",
    "float": "32-bit weights, the same numbers as in PyTorch, in a file four times as large",
}
DEFAULTS = {"corpus": "almanac", "vocab-size": 8_000, "held-out-every": 50, "n-best": 1}
DEFAULTS |= {"objective": "span+sbo", "threshold": 0.0}
SWITCHES = "half no-compile dry-run resume untrained answers-only characters easy float".split()
ACTIONS = dict.fromkeys(SWITCHES, "store_true") | {"question": "append"}
# kind, least and greatest number
RANGES: dict[str, tuple[type, float, float]] = {
    "seed": (int, 0, 2**63 - 1),  # what torch and NumPy both take
    "steps": (int, 1, 999_999_999),  # the names of snapshots have nine digits
    "max-length": (int, 4, 1_000_000),  # at least [CLS], two tokens and [SEP]
    "vocab-size": (int, 1, 1_000_000),  # the tokenizers library allocates all of them at once
    "n-best": (int, 1, 1_000),
    "held-out-every": (int, 2, 1_000_000),
    "epochs": (float, 1e-6, 10_000),
    "threshold": (float, -math.inf, math.inf),  # a number
}
RANGES |= dict.fromkeys(("batch-size", "accumulate"), (int, 1, 100_000))
RANGES |= dict.fromkeys(("max-answer-length", "doc-stride"), (int, 1, 1_000_000))
# the maximum of float32 is 3.4e38
RANGES |= dict.fromkeys(("learning-rate", "task-learning-rate"), (float, 1e-30, 1e38))


def add(parser: argparse.ArgumentParser, *names: str, **how: Any) -> None:
    """Adds options by name. how: what argparse should know of them here."""
    for name in names:
        known: dict[str, Any] = {"help": HELP.get(name), "default": DEFAULTS.get(name)}
        if name in RANGES:
            known["type"] = number(*RANGES[name])
        if name in ACTIONS:
            known["action"] = ACTIONS[name]
        parser.add_argument(f"--{name}", **known | how)


def changed(options: argparse.Namespace, *names: str) -> list[str]:
    """Those of the options that have another value than they have by default."""
    return [n for n in names if getattr(options, n.replace("-", "_")) != DEFAULTS.get(n)]


def number(kind: type, least: float, most: float) -> Callable[[str], float]:
    """What argparse makes of the text of a number, within its range."""

    def read(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least:,} and {most:,}")
        return value

    read.__name__ = kind.__name__  # of which argparse speaks where the text is none
    return read


def with_options(settings: Settings, options: argparse.Namespace) -> Settings:
    """Settings, a data class, with those that the options give; --learning-rate is the peak."""
    given = vars(options) | {"peak_learning_rate": getattr(options, "learning_rate", None)}
    names = {field.name for field in fields(settings)}
    chosen = {name: v for name, v in given.items() if name in names and v is not None}
    return replace(settings, **chosen)


def open_model(kind: Any, options: argparse.Namespace) -> Any:
    """A fine-tuned model of a kind."""
    model = kind.from_pretrained(options.model, options.vocabulary)
    if getattr(options, "max_answer_length", None):
        model.max_answer_length = options.max_answer_length
    return model
