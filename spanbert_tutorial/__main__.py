"""The command line: `python -m spanbert_tutorial COMMAND`; `COMMANDS` says which there are.

Bad input gives one sentence and exit code 2. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from spanbert_tutorial.commands import (
    almanac,
    experiment,
    export,
    inspect_text,
    limits,
    pretrain,
    squad,
    tasks,
)
from spanbert_tutorial.errors import InputError, one_line


class Command(NamedTuple):
    """A verb of the command line."""

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


COMMANDS = {
    "inspect": Command(
        "look at a text before any training: its pieces, what is unknown, the loss without context",
        inspect_text.add_options,
        inspect_text.inspect_text,
    ),
    "pretrain": Command(
        "pre-train a model; without options a tiny SpanBERT on the almanac",
        pretrain.add_options,
        pretrain.pretrain,
    ),
    "finetune": Command(
        "fine-tune a checkpoint on a task; finetune --help lists the tasks",
        tasks.add_finetune_options,
        tasks.finetune,
    ),
    "evaluate": Command(
        "score a fine-tuned model on a task", tasks.add_evaluate_options, tasks.evaluate
    ),
    "answer": Command("answer a question on a text file", squad.add_answer_options, squad.answer),
    "make-questions": Command(
        "make questions from text by rule, to fine-tune on first",
        squad.add_make_options,
        squad.make_questions,
    ),
    "experiment": Command(
        "run an experiment of the book again; without a name, list them all",
        experiment.add_options,
        experiment.experiment,
    ),
    "export": Command(
        "write a model for a web page or for ONNX; export KIND --help lists the options",
        export.add_options,
        export.export,
    ),
    "almanac": Command(
        "write the almanac again from its seed", almanac.add_options, almanac.almanac
    ),
}


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the options as everything here does, in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}: see {self.prog.removeprefix('python -m ')} --help.")

    def parse_args(self, *given) -> argparse.Namespace:
        options = super().parse_args(*given)
        if empty := [
            name for name, value in vars(options).items() if value == []
        ]:  # what argparse makes of `--x=--`
            self.error(f"argument --{empty[0].replace('_', '-')}: expected one argument")
        return options


def parser() -> argparse.ArgumentParser:
    """Options of all commands."""
    purpose = (
        "Pre-train BERT and SpanBERT, fine-tune them, answer questions; make the data and "
        "results of the book."
    )
    top = Parser(
        prog="python -m spanbert_tutorial",
        description=purpose,
        epilog="COMMAND --help lists the options of a command.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        command.add_options(commands.add_parser(name, help=command.help, description=description))
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # an answer may hold letters that an old terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        options = parser().parse_args(arguments)
        limits.check(vars(options))
        COMMANDS[options.command].run(options)
        # here, where it can still be said that nobody reads it, or that there is no room
        sys.stdout.flush()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # of a place that nothing above thought of
        place = (
            f" at {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        )
        told = f"{error.strerror or error}{place}: see to that file or folder, or give another."
        print(f"error: {one_line(told)}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:  # torch tells it by its own kinds of the second
        if "memory" not in f"{type(error).__name__} {error}".lower():
            raise
        print(
            "error: the memory does not suffice: give a smaller --batch-size or --max-length, or a "
            "smaller model.",
            file=sys.stderr,
        )
        return 2
    except FloatingPointError as error:
        print(f"error: {error} Start anew, with another --output.", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        kept = f"{stop}: go on with the same command and --resume." if str(stop) else "Stopped."
        print(kept, file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
