"""Training runs of the experiments: other shares than 80/10/10, and going on from a trained start. Chapters:
`book/bert/masking`, `book/spanbert/boundary`.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.batches import PretrainingData
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.engine.loop import History, train
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.masking import SHARES
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.pretraining import PretrainingModel

START = runs.Run(objective="mlm", steps=1_000)
GO_ON = replace(START, steps=500, peak_learning_rate=2e-3)


def with_shares(run: runs.Run, text: runs.Text, shares: tuple[float, float]) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with other shares: a model trained from its first weights."""
    model = runs.new_model(run, text)
    return model, _train(model, run, text, shares, run.seed)


def go_on(start: PretrainingModel, run: runs.Run, text: runs.Text) -> tuple[PretrainingModel, History]:
    """A copy of `start`, trained further as `run` says. A boundary head, where the objective has one, begins untrained.

    Runs of one seed see the same blocks with the same masks, whether they have that head or not.
    """
    model = runs.new_model(run, text)
    model.encoder.load_state_dict(start.encoder.state_dict())
    model.masked_language_model.load_state_dict(start.masked_language_model.state_dict())
    return model, _train(model, run, text, SHARES, 1_000 + run.seed)  # not the blocks of the start again


def _train(
    model: PretrainingModel, run: runs.Run, text: runs.Text, shares: tuple[float, float], stream: int
) -> History:
    objective = replace(Objective.named(run.objective), shares=shares)
    data = PretrainingData(text.train, text.wordpiece, objective, run.length, run.batch_size)
    return train(model, data.batches(np.random.default_rng(stream)), run.recipe())


# --- keeping results ----------------------------------------------------------------------------------------


def curve(history: History) -> list[float]:
    """Means of the masked language model loss over every `ablation.CURVE_EVERY` steps."""
    losses, every = history.losses["mlm"], ablation.CURVE_EVERY
    return [float(np.mean(losses[start : start + every])) for start in range(0, len(losses), every)]


def rounded(values):
    """The same numbers, lists and dicts with four digits: more would not come out alike on another machine."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 4) if isinstance(values, float) else values


def keep(output: Path, module: str, seeds: int, rows: list[dict], **settings) -> None:
    """Writes all rows so far, with the command, versions, device and settings."""
    content = {
        "command": f"python -m spanbert_tutorial.experiments.{module} --output FILE --seeds {seeds}",
        "surroundings": ablation.surroundings(),
        "start": asdict(START),
        "curve_every": ablation.CURVE_EVERY,
        "curve_tolerance": ablation.CURVE_TOLERANCE,
        **settings,
        "rows": rounded(rows),
    }
    ablation.write_whole(Path(output), content)


def column(content: dict, part: str, *names: str, **chosen) -> list[float]:
    """One figure of every seed, in the order of the seeds: `row[part][name]…` of the rows with the chosen values."""
    rows = [row for row in content["rows"] if all(row[key] == value for key, value in chosen.items())]
    figures = [row[part] for row in sorted(rows, key=lambda row: row["seed"])]
    for name in names:
        figures = [figure[name] for figure in figures]
    return figures


def command(
    purpose: str,
    run_all: Callable[..., None],
    seeds: int | None,
    arguments: list[str] | None,
    goes_on: bool = False,
    **inputs: str,
) -> int:
    """The command line of an experiment; returns the exit code. seeds: how many unless told, None where there is one
    only. goes_on: whether `run_all` continues an output. inputs: name → what it is, of further paths."""
    options = argparse.ArgumentParser(description=purpose)
    for name, meaning in inputs.items():
        options.add_argument(f"--{name}", type=Path, required=True, help=meaning)
    options.add_argument("--output", type=Path, required=True, help="JSON file of the results")
    if seeds is not None:
        options.add_argument("--seeds", type=int, default=seeds)
    chosen = options.parse_args(arguments)
    try:
        if not (goes_on and chosen.output.exists()):
            check_output(chosen.output)
        run_all(**vars(chosen))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
