"""Paired differences with 95% intervals. Chapters: all evidence pages, such as
`book/evidence/plateau`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from spanbert_tutorial.errors import require

Values = Sequence[float] | np.ndarray


class Difference(NamedTuple):
    """A mean difference over paired runs, the ends of its 95% t-interval, and the p-value of the
    paired two-sided t-test, not corrected."""

    mean: float
    low: float
    high: float
    p: float


def paired_difference(first: Values, second: Values, test_to_train: float = 0.0) -> Difference:
    """Mean of first − second over paired runs; p is 1 where all differences are 0.

    first, second: one value a run, in the same order of the runs. test_to_train: where the runs are
    random splits of *one* collection, the number of test cases per training case. Such splits
    overlap, so the corrected resampled t-test of Nadeau and Bengio (Machine Learning 52, 2003)
    multiplies the variance of the mean of J splits by 1 + J × test_to_train.

    Raises InputError for fewer than two runs, and for values of different runs.
    """
    require(len(first) == len(second), "first and second differ in length: give pairs of runs.")
    require(len(first) > 1, "an interval needs at least two runs: give more.")
    differences = np.subtract(first, second)
    mean = float(differences.mean())
    runs = len(differences)
    error = float(differences.std(ddof=1) * np.sqrt(1 / runs + test_to_train))
    if error == 0:
        return Difference(mean, mean, mean, float(mean == 0))
    # Student's t with runs − 1 degrees of freedom
    half = float(error * stdtrit(runs - 1, 0.975))
    p = float(2 * stdtr(runs - 1, -abs(mean) / error))
    return Difference(mean, mean - half, mean + half, p)
