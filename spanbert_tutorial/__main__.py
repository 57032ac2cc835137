"""The command line, as `python -m spanbert_tutorial COMMAND` or `spanbert-tutorial COMMAND`;
`COMMANDS` lists the commands. Bad input gives one sentence and exit code 2.

Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import io
import os
import re
import sys
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from spanbert_tutorial.errors import InputError, one_line

TRACEBACK = "--traceback"  # accepted anywhere

# command → its module in `commands/`, which takes seconds to import, and its help. The module has a
# function of the command's name that runs it; NAME_options, or else add_options, adds its options.
COMMANDS = {
    "inspect": (
        "inspect_text",
        "look at data before training: at a text (tokens, how many are unknown, the loss of "
        "baselines without context) or at the files of a task",
    ),
    "pretrain": ("pretrain", "pre-train a model; without options, a tiny SpanBERT on the almanac"),
    "finetune": ("tasks", "fine-tune a checkpoint on a task; finetune --help lists the tasks"),
    "evaluate": ("tasks", "score a fine-tuned model on a task"),
    "predict": ("tasks", "predict for labeled, unlabeled or plain text; --help lists the tasks"),
    "answer": ("squad", "answer a question about a text file"),
    "make-questions": ("squad", "make questions from text by rules, to fine-tune on first"),
    "export": ("exports", "write a model for a web page or for ONNX; --help lists the kinds"),
}


class Parser(argparse.ArgumentParser):
    """Reports wrong options like all bad input: in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}: see {self.prog} --help.")


def program() -> str:
    """How this program was called, for its help."""
    script = "spanbert-tutorial"  # the entry point in pyproject.toml
    called = Path(sys.argv[0]).name if sys.argv else ""
    return script if called.startswith(script) else "python -m spanbert_tutorial"


def parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The options of all commands, or of the chosen one alone, without the imports of the
    others."""
    top = Parser(
        prog=program(),
        description="Pre-train BERT and SpanBERT, fine-tune them and answer questions.",
        epilog="COMMAND --help lists the options of a command. With --traceback, an error comes "
        "with the trace of where in the code it arose.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module_name, does) in COMMANDS.items():
        options = commands.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
        if chosen in (None, name):
            module = import_module(f"spanbert_tutorial.commands.{module_name}")
            function = name.replace("-", "_")
            own = getattr(module, f"{function}_options", None) or module.add_options
            own(options)
            options.set_defaults(run=getattr(module, function))
    return top


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0, 1 for a training that diverged or a fault of
    ours, 2 for bad input, 130 when stopped, 141 when nobody reads on. Every other failure is one
    sentence, which of the processes on one machine only the first says if all meet it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # an answer may contain letters that an old terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = [word for word in given if word != TRACEBACK]
    try:
        options = parser(words[0] if words else "").parse_args(words)
        options.run(options)
        sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
    except KeyboardInterrupt as stop:
        said = ": ".join([str(stop) or "Stopped", *getattr(stop, "__notes__", ())])
        print(f"{said}.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as of `| head`, which other tools end by quietly, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
        return 141
    except Exception as error:
        if TRACEBACK in given:
            traceback.print_exc()
        sentence, code = described(error)
        # bad input meets all processes, and one that ends breaks the connections of the others
        shared = isinstance(error, InputError) or "by peer" in str(error)
        if not shared or os.environ.get("LOCAL_RANK", "0") == "0":
            print(f"error: {one_line(sentence)}", file=sys.stderr)
        return code
    return 0


def described(error: Exception) -> tuple[str, int]:
    """What went wrong and how to mend it, in one sentence, and the exit code."""
    if isinstance(error, InputError | FloatingPointError):  # the latter of a training that diverged
        notes = "".join(f" Then {note}." for note in getattr(error, "__notes__", ()))
        return f"{error}{notes}", 2 if isinstance(error, InputError) else 1
    if isinstance(error, OSError):
        name = error.filename
        where = f" at {os.fsdecode(name)}" if isinstance(name, str | bytes) else ""
        return f"{error.strerror or error}{where}: check that file or folder, or give another.", 2
    kind = type(error).__name__
    # torch raises several kinds of RuntimeError where memory ran out
    out = re.search("(out ?of|allocate|enough) ?memory", f"{kind} {error}", re.IGNORECASE)
    if isinstance(error, MemoryError) or isinstance(error, RuntimeError) and out:
        mend = "give a smaller model or, where it is an option, --batch-size or --max-length"
        return f"out of memory: {mend}.", 2
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"{kind} in {where}: {error}; run it again with {TRACEBACK} to see more.", 1


if __name__ == "__main__":
    sys.exit(main())
