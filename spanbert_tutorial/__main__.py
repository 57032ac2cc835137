"""The command line: `python -m spanbert_tutorial COMMAND`; `COMMANDS` says which there are.

Bad input gives one sentence and exit code 2. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import io
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

from spanbert_tutorial.commands import almanac, experiment, pretrain, squad, tasks
from spanbert_tutorial.errors import InputError


class Command(NamedTuple):
    """A verb of the command line."""

    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


COMMANDS = {
    "pretrain": Command("pre-train a model; without options a tiny SpanBERT on the almanac",
                        pretrain.add_options, pretrain.pretrain),
    "finetune": Command("fine-tune a checkpoint on a task; finetune --help lists the tasks",
                        tasks.add_finetune_options, tasks.finetune),
    "evaluate": Command("score a fine-tuned model on a task", tasks.add_evaluate_options, tasks.evaluate),
    "answer": Command("answer a question on a text file", squad.add_answer_options, squad.answer),
    "make-questions": Command("make questions from text by rule, to fine-tune on first", squad.add_make_options,
                              squad.make_questions),
    "experiment": Command("run an experiment of the book again; without a name, list them all",
                          experiment.add_options, experiment.experiment),
    "almanac": Command("write the almanac again from its seed", almanac.add_options, almanac.almanac),
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """Options of all commands."""
    purpose = "Pre-train BERT and SpanBERT, fine-tune them, answer questions; make the data and results of the book."
    top = argparse.ArgumentParser(prog="python -m spanbert_tutorial", description=purpose,
                                  epilog="COMMAND --help lists the options of a command.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        command.add_options(commands.add_parser(name, help=command.help, description=description))
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # an answer may hold letters that an old terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    options = parser().parse_args(arguments)
    try:
        COMMANDS[options.command].run(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
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
