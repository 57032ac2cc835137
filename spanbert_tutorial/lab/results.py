"""What an experiment keeps in its file of results, and what chapters draw from it: columns, curves,
intervals. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
import torch
from scipy import stats

from spanbert_tutorial.engine.loop import History
from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.errors import InputError

CURVE_EVERY = 25  # steps whose mean is one point of a kept loss curve
CURVE_TOLERANCE = (
    0.3  # nats by which a point may differ on another machine: in the steep fall roundings grow
)
CURVES = {
    "curve_every": CURVE_EVERY,
    "curve_tolerance": CURVE_TOLERANCE,
}  # for the settings of who keeps curves


# --- what a file keeps --------------------------------------------------------------


def surroundings() -> dict[str, str | int]:
    """Versions and device, to keep beside the figures."""
    packages = {name: version(name) for name in ("torch", "transformers", "numpy", "tokenizers")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    machine = {"device": device, "threads": torch.get_num_threads(), "arithmetic": precision()}
    return {"python": platform.python_version(), **packages, **machine}


def curve(losses: Sequence[float]) -> list[float]:
    """Means over every `CURVE_EVERY` steps."""
    starts = range(0, len(losses), CURVE_EVERY)
    return [round(float(np.mean(losses[start : start + CURVE_EVERY])), 4) for start in starts]


def curves(history: History) -> dict[str, list[float]]:
    """`curve` of each loss of a run, by its name."""
    return {name: curve(losses) for name, losses in history.losses.items()}


def rounded(values):
    """The same numbers, lists and dicts with four digits: more would not come out alike on another
    machine."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 4) if isinstance(values, float) else values


# --- what a chapter draws from it ---------------------------------------------------


def said(row: Mapping, name: str) -> object:
    """A value of a row, of older files of its `run`."""
    return row[name] if name in row else row["run"][name]


def column(content: Mapping, *names: str, **chosen: object) -> list:
    """One figure of every seed, in the order of the seeds: `row[name][name]…` of the rows with the
    chosen values. content: of a results file."""
    rows = [
        row
        for row in content["rows"]
        if all(said(row, key) == value for key, value in chosen.items())
    ]
    figures = sorted(rows, key=lambda row: said(row, "seed"))
    for name in names:
        figures = [figure[name] for figure in figures]
    return figures


def standard_error(difference: Sequence[float], test_to_train: float = 0.0) -> float:
    """Of the mean of paired differences over seeds. Where the seeds are random splits of *one*
    collection, the splits overlap and the differences are alike: the corrected resampled t-test of
    Nadeau and Bengio (Machine Learning 52,
    2003) then takes the variance times 1/J + test_to_train in place of 1/J, for J splits with
    `test_to_train` cases to test on for each case to learn from."""
    if len(difference) < 2:
        raise InputError("an interval needs at least two seeds: give more.")
    return float(stats.sem(difference) * np.sqrt(1 + test_to_train * len(difference)))


def paired_interval(
    first: Sequence[float], second: Sequence[float], test_to_train: float = 0.0
) -> tuple[float, float]:
    """Mean of first − second over paired seeds and half the width of its 95 % t-interval.
    test_to_train: as `standard_error` has it."""
    difference = np.subtract(first, second)
    error = standard_error(difference, test_to_train)
    return float(difference.mean()), float(error * stats.t.ppf(0.975, len(difference) - 1))


def p_value(first: Sequence[float], second: Sequence[float], test_to_train: float = 0.0) -> float:
    """Of the paired two-sided t-test that belongs to `paired_interval`; 1 where all differences are
    0."""
    difference = np.subtract(first, second)
    mean = abs(difference.mean())
    error = standard_error(difference, test_to_train)
    return float(2 * stats.t.sf(mean / error, len(difference) - 1)) if error else float(mean == 0)


@dataclass(frozen=True)
class Difference:
    """A mean difference over paired seeds, half the width of its own 95 % t-interval, and its
    p-value corrected for the family that it belongs to; `shown`: whether that is below 0.05."""

    mean: float
    half: float
    p: float

    @property
    def shown(self) -> bool:
        return self.p < 0.05


def family(
    pairs: Mapping[str, tuple[Sequence[float], Sequence[float]]], test_to_train: float = 0.0
) -> dict[str, Difference]:
    """First − second for each pair of columns (paired by seed) of a family: several differences
    that answer one question, so that one of them may look like something by luck. Paired t-tests,
    corrected after Holm (1979): the smallest of m p-values times m, the next times m − 1, and so
    on, and none below one before it. test_to_train: as `standard_error` has it."""
    found = {}
    least = 0.0
    intervals = {name: paired_interval(*columns, test_to_train) for name, columns in pairs.items()}
    single = {name: p_value(*columns, test_to_train) for name, columns in pairs.items()}
    for place, name in enumerate(sorted(single, key=single.__getitem__)):
        least = max(least, min(1.0, (len(pairs) - place) * single[name]))
        found[name] = Difference(*intervals[name], least)
    return {name: found[name] for name in pairs}
