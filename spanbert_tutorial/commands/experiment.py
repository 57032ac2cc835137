"""`experiment`: reruns an experiment of the book, or lists them all. Chapters: those that the
experiments name, such as `book/spanbert/pretraining_spanbert`.
"""

import argparse
import sys
from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.lab.table import EXPERIMENTS, row_of


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options; an experiment accepts those of the input files that its row names."""
    parser.add_argument(
        "name", nargs="?", help="the experiment (default: list them all)", metavar="NAME"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="JSON file for the results (default: runs/NAME.json); a stopped command continues "
        "the file it left",
    )
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="number of seeds (default: as in the book)"
    )
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="maximum number of steps in each pre-training run, for a trial",
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
        grid.run(
            table.module_of(options.name), output, options.seeds, options.steps, None, **inputs
        )
    except KeyboardInterrupt:  # in the middle of a run, which is then lost
        if output.exists():
            print(
                f"The finished runs are in {output}: the same command continues.", file=sys.stderr
            )
        raise KeyboardInterrupt from None
    print(f"The results are in {output}.")


def inputs_of(options: argparse.Namespace) -> dict[str, Path]:
    """The input files of the experiment, by option. Raises InputError if one is missing or is not
    needed."""
    needed = row_of(options.name).inputs
    paths = {option: getattr(options, option) for option in every_input()}
    given = {option: path for option, path in paths.items() if path is not None}
    for option, what in needed.items():
        if option not in given:
            raise InputError(f"the experiment {options.name} needs --{option}: give a {what}.")
    for option in given:
        if option not in needed:
            raise InputError(
                f"the experiment {options.name} does not use --{option}: leave it out."
            )
    return given


def every_input() -> list[str]:
    """The options for input files of all experiments."""
    return sorted({option for row in EXPERIMENTS.values() for option in row.inputs})


def listing() -> str:
    """The table of experiments: minutes, name, question, and the input files that each needs."""
    lines = ["  minutes  experiment"]
    for name, row in EXPERIMENTS.items():
        needs = (
            f" (needs {', '.join(f'--{option}' for option in row.inputs)})" if row.inputs else ""
        )
        lines.append(f"  {row.minutes:>7,}  {name}: {row.asks}{needs}")
    lines.append(
        "Minutes for all seeds, on two cores. To run one: experiment NAME [--seeds N] [--output FILE]"
    )
    return "\n".join(lines)
