"""`python -m spanbert_tutorial experiment`: runs an experiment of the book, or lists them.
Chapters: those that the experiments name, such as `book/spanbert/pretraining_spanbert`.
"""

import argparse
import sys
from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.lab.table import EXPERIMENTS, row_of


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options; an experiment takes those of the input files that its row names."""
    parser.add_argument("name", nargs="?", help="which one (without: lists all)", metavar="NAME")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="JSON file of the results (default: runs/NAME.json); what a stopped command left "
        "goes on",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="how many seeds (default: as the book)"
    )
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="at most so many in each pre-training run, for a trial",
    )
    for option in every_input():
        users: dict[str, list[str]] = {}
        for name, row in EXPERIMENTS.items():
            if option in row.inputs:
                users.setdefault(row.inputs[option], []).append(name)
        meaning = "; ".join(f"{', '.join(names)}: {what}" for what, names in users.items())
        parser.add_argument(f"--{option}", type=Path, metavar="PATH", help=f"for {meaning}")


def experiment(options: argparse.Namespace) -> None:
    """Runs one experiment, or prints the list."""
    if options.name is None:
        print(listing())
        return
    inputs = inputs_of(options)
    from spanbert_tutorial.lab import grid, table

    output = options.output or Path("runs", f"{options.name}.json")
    try:
        grid.run(table.module_of(options.name), output, options.seeds, options.steps, **inputs)
    except KeyboardInterrupt:  # in the middle of a row, which is then lost
        if output.exists():
            print(f"{output} keeps what was done: the same command goes on.", file=sys.stderr)
        raise KeyboardInterrupt from None
    print(f"The results are in {output}.")


def inputs_of(options: argparse.Namespace) -> dict[str, Path]:
    """The input files of the experiment by option. Raises InputError for missing ones and for
    others."""
    wanted = row_of(options.name).inputs
    given = {
        option: path for option in every_input() if (path := getattr(options, option)) is not None
    }
    for option, what in wanted.items():
        if option not in given:
            raise InputError(f"the experiment {options.name} needs --{option}: give a {what}.")
    for option in given:
        if option not in wanted:
            raise InputError(f"the experiment {options.name} takes no --{option}: leave it out.")
    return given


def every_input() -> list[str]:
    """The options for files of all experiments."""
    return sorted({option for row in EXPERIMENTS.values() for option in row.inputs})


def listing() -> str:
    """All experiments: name, minutes, what each asks, and the input files it needs."""
    lines = ["  minutes  experiment"]
    for name, row in EXPERIMENTS.items():
        needs = (
            f" (needs {', '.join(f'--{option}' for option in row.inputs)})" if row.inputs else ""
        )
        lines.append(f"  {row.minutes:>7,}  {name}: {row.asks}{needs}")
    end = (
        "Minutes of all seeds, on two cores. To run one: experiment NAME [--seeds N] [--output "
        "FILE]"
    )
    return "\n".join([*lines, end])
