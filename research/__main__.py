"""`python -m research NAME` reruns an experiment of the book, from a clone; without a name it lists
all of them. `comparisons` works out `data/results/comparisons.csv` again, `almanac --output FOLDER`
writes the almanac again."""

import argparse
import sys
from pathlib import Path

from research import comparisons, grid, table
from research.almanac import files
from spanbert_tutorial.engine.files import whole_folder
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.pretraining.checkpoints import check_output


def parser() -> argparse.ArgumentParser:
    """The options; an experiment accepts those of the input files that its row names."""
    made = argparse.ArgumentParser(prog="python -m research", description=__doc__)
    name, output = "the experiment, comparisons, or almanac", "file for the results (default: "
    output += "runs/NAME.csv); a stopped command continues it"
    made.add_argument("name", nargs="?", metavar="NAME", help=name)
    made.add_argument("--output", type=Path, metavar="FILE", help=output)
    made.add_argument("--seeds", type=int, metavar="N", help="number of seeds")
    made.add_argument("--steps", type=int, metavar="N", help="at most so many steps, for a trial")
    for option in every_input():
        users = [name for name, row in table.EXPERIMENTS.items() if option in row.inputs]
        made.add_argument(f"--{option}", type=Path, metavar="PATH", help=f"for {', '.join(users)}")
    return made


def every_input() -> list[str]:
    """The options for input files of all experiments."""
    return sorted({option for row in table.EXPERIMENTS.values() for option in row.inputs})


def experiment(name: str, options: argparse.Namespace) -> None:
    """Runs one experiment. Raises InputError if an input file is missing or is not needed."""
    needed = table.row_of(name).inputs
    inputs = {option: path for option in every_input() if (path := getattr(options, option))}
    for option, what in needed.items():
        require(option in inputs, f"the experiment {name} needs --{option}: give a {what}.")
    for option in inputs:
        require(option in needed, f"the experiment {name} does not use --{option}: leave it out.")
    output = options.output or Path("runs", f"{name}.csv")
    grid.run(table.module_of(name), output, options.seeds, options.steps, None, **inputs)
    print(f"The results are in {output}.")


def listing() -> str:
    """The table of experiments: minutes, name, question, and the input files that each needs."""
    lines = ["  minutes  experiment"]
    for name, row in table.EXPERIMENTS.items():
        needs = ", ".join(f"--{option}" for option in row.inputs)
        lines.append(f"  {row.minutes:>7,}  {name}: {row.asks}{needs and f' (needs {needs})'}")
    return "\n".join([*lines, "Minutes for all seeds, on two cores."])


def almanac(folder: Path | None) -> None:
    """Writes all files of the almanac, or none."""
    require(folder, "almanac needs --output: give a new folder.")
    with whole_folder(check_output(folder)) as made:
        files.write(made)
    print(f"The almanac is in {folder}.")


def main(arguments: list[str] | None = None) -> int:
    """Runs an experiment and returns the exit code: 0, 2 for bad input, 130 when stopped."""
    options = parser().parse_args(arguments)
    try:
        if options.name is None:
            print(listing())
        elif options.name == "almanac":
            almanac(options.output)
        elif options.name == "comparisons":
            comparisons.write()
        else:
            experiment(options.name, options)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped: the same command continues.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
