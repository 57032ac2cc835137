"""The same run under several objectives and seeds, kept as a file of results. Chapter:
`book/spanbert/pretraining_spanbert`.

Seeds are paired: with the same seed all objectives start from the same encoder weights and see the same blocks first.
The budget is equal: the same steps, blocks and share of masked pieces.
"""

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy import stats

from spanbert_tutorial import runs
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.errors import InputError

OBJECTIVES = ("mlm", "span", "span+sbo")
CURVE_EVERY = 25  # steps whose mean is one point of a kept loss curve
CURVE_TOLERANCE = 0.3  # nats by which a point may differ on another machine: in the steep fall roundings grow


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Mean of first − second over paired seeds and half the width of its 95 % t-interval."""
    difference = np.subtract(first, second)
    if len(difference) < 2:
        raise InputError("an interval needs at least two seeds: give more.")
    error = stats.sem(difference)
    return float(difference.mean()), float(error * stats.t.ppf(0.975, len(difference) - 1))


@dataclass(frozen=True)
class Difference:
    """A mean difference over paired seeds, half the width of its own 95 % t-interval, and its p-value corrected for the
    family that it belongs to; `shown`: whether that is below 0.05."""

    mean: float
    half: float
    p: float

    @property
    def shown(self) -> bool:
        return self.p < 0.05


def family(pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> dict[str, Difference]:
    """First − second for each pair of columns (paired by seed) of a family: several differences that answer one
    question, so that one of them may look like something by luck. Paired t-tests, corrected after Holm (1979): the
    smallest of m p-values times m, the next times m − 1, and so on, and none below one before it."""
    found, least = {}, 0.0
    intervals = {name: paired_interval(*columns) for name, columns in pairs.items()}
    single = {name: float(stats.ttest_rel(*columns).pvalue) for name, columns in pairs.items()}
    for place, name in enumerate(sorted(single, key=single.__getitem__)):
        least = max(least, min(1.0, (len(pairs) - place) * single[name]))
        found[name] = Difference(*intervals[name], least)
    return {name: found[name] for name in pairs}


def one(run: runs.Run, text: runs.Text) -> dict:
    """Trains and measures one run; a plain dict ready for JSON."""
    began = time.monotonic()
    model, history = runs.pretrain(run, text)
    means = {
        name: [round(float(np.mean(values[i : i + CURVE_EVERY])), 4) for i in range(0, len(values), CURVE_EVERY)]
        for name, values in history.losses.items()
    }
    held_out = runs.held_out(model, run, text, tables=True)
    rounded = {way: {name: round(value, 4) for name, value in values.items()} for way, values in held_out.items()}
    return {"run": asdict(run), "held_out": rounded, "curve": means, "seconds": round(time.monotonic() - began)}


def surroundings() -> dict[str, str | int]:
    """Versions and device, to keep beside the figures."""
    packages = {name: version(name) for name in ("torch", "transformers", "numpy", "tokenizers")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    machine = {"device": device, "threads": torch.get_num_threads(), "arithmetic": precision()}
    return {"python": platform.python_version(), **packages, **machine}


def run_all(output: str | Path, seeds: int, run: runs.Run, objectives: Sequence[str] = OBJECTIVES) -> None:
    """Each objective with every seed on the almanac; `output` is rewritten after each run, so a stopped command goes
    on where it was. Raises InputError when `output` holds results of other settings."""
    output = Path(output)
    kept = read_kept(output, run) if output.exists() else []
    if not kept:
        check_output(output)
    done = {(row["run"]["objective"], row["run"]["seed"]) for row in kept}
    with TemporaryDirectory() as scratch:
        text = runs.open_text("almanac", scratch)
        for seed in range(seeds):
            for objective in objectives:
                if (objective, seed) in done:
                    continue
                kept.append(one(replace(run, objective=objective, seed=seed), text))
                print(f"seed {seed}, {objective}: {kept[-1]['held_out']}", flush=True)
                write_whole(output, results(kept, text, seeds, run.steps, objectives))


def results(kept: list[dict], text: runs.Text, seeds: int, steps: int, objectives: Sequence[str]) -> dict:
    """The content of a results file."""
    chosen = " ".join(objectives)
    command = f"python -m spanbert_tutorial ablate --output FILE --seeds {seeds} --steps {steps} --objectives {chosen}"
    return {
        "command": command,
        "surroundings": surroundings(),
        "unigram_entropy": round(text.unigram_entropy, 4),
        "pieces": len(text.train.ids),
        "vocabulary": len(text.wordpiece),
        "curve_every": CURVE_EVERY,
        "curve_tolerance": CURVE_TOLERANCE,
        "rows": kept,
    }


def read_kept(output: Path, run: runs.Run) -> list[dict]:
    """Rows of an earlier, stopped command with the same settings."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    for row in rows:
        same = runs.Run(**row["run"]) == replace(run, objective=row["run"]["objective"], seed=row["run"]["seed"])
        if not same:
            raise InputError(f"{output} holds results of other settings: give another --output.")
    return rows


def write_whole(output: Path, content: dict) -> None:
    """Writes JSON beside the target and then renames it, so that no reader meets half a file."""
    part = output.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(part, output)


def column(content: dict, objective: str, way: str, name: str) -> list[float]:
    """One figure of every seed, in the order of the seeds. content: a results file."""
    rows = [row for row in content["rows"] if row["run"]["objective"] == objective]
    return [row["held_out"][way][name] for row in sorted(rows, key=lambda row: row["run"]["seed"])]
