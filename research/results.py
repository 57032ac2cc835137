"""What an experiment saves in its results file, and how a chapter reads it: columns, curves,
intervals, corrected p-values. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from scipy import stats

from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.errors import InputError

CURVE_EVERY = 25  # steps averaged into one point of a stored loss curve
# Nats by which a point may differ on another machine: rounding errors grow in the steep fall.
CURVE_TOLERANCE = 0.3
# For the settings of an experiment that stores curves.
CURVES = {"curve_every": CURVE_EVERY, "curve_tolerance": CURVE_TOLERANCE}


# --- writing a results file ----------------------------------------------------------


def surroundings() -> dict[str, str | int]:
    """Versions and device, stored next to the metrics."""
    packages = {name: version(name) for name in ("torch", "transformers", "numpy", "tokenizers")}
    return {
        "python": platform.python_version(),
        **packages,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
        "arithmetic": precision(),
    }


def curve(losses: Sequence[float]) -> list[float]:
    """Means over every `CURVE_EVERY` steps."""
    starts = range(0, len(losses), CURVE_EVERY)
    return [round(float(np.mean(losses[start : start + CURVE_EVERY])), 4) for start in starts]


def curves(history: History) -> dict[str, list[float]]:
    """`curve` of each loss of a run, by its name."""
    return {name: curve(losses) for name, losses in history.losses.items()}


def rounded(values: Any) -> Any:
    """The same numbers, lists and dicts with four decimals; more would differ between machines."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 4) if isinstance(values, float) else values


# --- reading it ----------------------------------------------------------------------


def row_value(row: Mapping, name: str) -> Any:
    """A value of a row; older files store it in the row's `run`."""
    return row[name] if name in row else row["run"][name]


def column(content: Mapping, *names: str, **chosen: object) -> list[Any]:
    """One metric per seed, in the order of the seeds: `row[name][name]…` of the rows with the
    chosen values. content: of a results file."""
    rows = [
        row
        for row in content["rows"]
        if all(row_value(row, key) == value for key, value in chosen.items())
    ]
    values: list[Any] = sorted(rows, key=lambda row: row_value(row, "seed"))
    for name in names:
        values = [value[name] for value in values]
    return values


# --- statistics ----------------------------------------------------------------------

Values = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Difference:
    """A mean difference over paired seeds, half the width of its own 95% t-interval, and its
    p-value, corrected for the family of comparisons it belongs to."""

    mean: float
    half: float
    p: float

    @property
    def shown(self) -> bool:
        """Whether it is significant: p below 0.05."""
        return self.p < 0.05


def paired_difference(first: Values, second: Values, test_to_train: float = 0.0) -> Difference:
    """Mean of first − second over paired seeds with a 95% t-interval and the p-value of the paired
    two-sided t-test, not corrected; p is 1 where all differences are 0.

    test_to_train: where the seeds are random splits of *one* collection, the number of test cases
    per training case. Such splits overlap, so the corrected resampled t-test of Nadeau and Bengio
    (Machine Learning 52, 2003) multiplies the variance of the mean of J splits by
    1 + J × test_to_train.

    Raises InputError for fewer than two seeds.
    """
    differences = np.subtract(first, second)
    if len(differences) < 2:
        raise InputError("an interval needs at least two seeds: give more.")
    mean = float(differences.mean())
    error = float(stats.sem(differences)) * np.sqrt(1 + test_to_train * len(differences))
    if error == 0:
        return Difference(mean, 0.0, float(mean == 0))
    t = stats.t(len(differences) - 1)
    return Difference(mean, float(error * t.ppf(0.975)), float(2 * t.sf(abs(mean) / error)))


def paired_interval(
    first: Values, second: Values, test_to_train: float = 0.0
) -> tuple[float, float]:
    """Mean of first − second over paired seeds and half the width of its 95% t-interval.
    test_to_train: as in `paired_difference`."""
    difference = paired_difference(first, second, test_to_train)
    return difference.mean, difference.half


def p_value(first: Values, second: Values, test_to_train: float = 0.0) -> float:
    """p-value of the paired two-sided t-test that goes with `paired_interval`."""
    return paired_difference(first, second, test_to_train).p


def family(
    pairs: Mapping[str, tuple[Values, Values]], test_to_train: float = 0.0
) -> dict[str, Difference]:
    """First − second for each pair of columns (paired by seed) of a family: several differences
    that answer one question, so their p-values are corrected together (Holm, 1979). Intervals are
    not corrected. test_to_train: as in `paired_difference`."""
    differences = [paired_difference(*columns, test_to_train) for columns in pairs.values()]
    corrected = holm(tuple(each.p for each in differences))
    return {
        name: Difference(each.mean, each.half, p)
        for name, each, p in zip(pairs, differences, corrected, strict=True)
    }


@cache  # the library collects garbage at each call, a quarter of a second
def holm(p_values: tuple[float, ...]) -> tuple[float, ...]:
    """The p-values of a family, corrected."""
    from statsmodels.stats.multitest import multipletests  # here: importing it takes a second

    return tuple(multipletests(p_values, method="holm")[1].tolist())
