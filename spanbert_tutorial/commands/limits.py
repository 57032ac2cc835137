"""The allowed range of each numeric option: one table for all commands, checked before anything
else. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spanbert_tutorial.errors import InputError


class Limit(NamedTuple):
    """Which numbers an option accepts, and the words for them."""

    fits: Callable[[float], bool]
    words: str


def whole(low: int, high: int) -> Limit:
    """Whole numbers from `low` to `high`, both included."""
    end = "2^63 − 1" if high == 2**63 - 1 else f"{high:,}"
    return Limit(lambda number: low <= number <= high, f"a whole number from {low:,} to {end}")


def between(low: float, high: float) -> Limit:
    """Numbers between `low` and `high`, both excluded."""
    return Limit(lambda number: low < number < high, f"a number between {low:g} and {high:g}")


# option → limit; an option means the same in every command
LIMITS = {
    "seed": whole(0, 2**63 - 1),  # what torch and NumPy both take
    "steps": whole(1, 999_999_999),  # the names of snapshots have nine digits
    "max_length": whole(4, 1_000_000),  # at least [CLS], two tokens and [SEP]
    "max_answer_length": whole(1, 1_000_000),
    "n_best": whole(1, 1_000),
    "doc_stride": whole(1, 1_000_000),
    "batch_size": whole(1, 100_000),
    "accumulate": whole(1, 100_000),
    "vocab_size": whole(1, 1_000_000),  # the tokenizers library allocates all of them at once
    "held_out_every": whole(2, 1_000_000),
    "seeds": whole(1, 10_000),
    "epochs": between(0, 10_000),
    "learning_rate": between(0, 1e38),  # the maximum of float32 is 3.4e38
    "threshold": Limit(lambda number: not math.isnan(number), "a number"),
}


def check(options: Mapping[str, Any]) -> None:
    """Raises InputError for the first number that its option does not accept. options: values by
    name, as argparse gives them; None where an option is not given."""
    for name, limit in LIMITS.items():
        number = options.get(name)
        if number is not None and not limit.fits(number):
            raise InputError(f"--{name.replace('_', '-')} is {number}: give {limit.words}.")
