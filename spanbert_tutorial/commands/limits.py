"""The allowed range of each numeric option: one table for all commands, checked before anything
else. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import math
from collections.abc import Mapping
from typing import Any

from spanbert_tutorial.errors import require

# option → the least and the greatest whole number; an option means the same in every command
WHOLE = {
    "seed": (0, 2**63 - 1),  # what torch and NumPy both take
    "steps": (1, 999_999_999),  # the names of snapshots have nine digits
    "max_length": (4, 1_000_000),  # at least [CLS], two tokens and [SEP]
    "max_answer_length": (1, 1_000_000),
    "n_best": (1, 1_000),
    "doc_stride": (1, 1_000_000),
    "batch_size": (1, 100_000),
    "accumulate": (1, 100_000),
    "vocab_size": (1, 1_000_000),  # the tokenizers library allocates all of them at once
    "held_out_every": (2, 1_000_000),
}
# option → the numbers it lies between, both excluded
BETWEEN = {
    "epochs": (0, 10_000),
    "learning_rate": (0, 1e38),  # the maximum of float32 is 3.4e38
}


def check(options: Mapping[str, Any]) -> None:
    """Raises InputError for the first number that its option does not accept. options: values by
    name, as argparse gives them; None where an option is not given."""
    given = {name: number for name, number in options.items() if number is not None}
    for name, number in given.items():
        told = f"--{name.replace('_', '-')} is {number}"
        if name in WHOLE:
            low, high = WHOLE[name]
            end = "2^63 − 1" if high == 2**63 - 1 else f"{high:,}"
            require(low <= number <= high, f"{told}: give a whole number from {low:,} to {end}.")
        if name in BETWEEN:
            low, high = BETWEEN[name]
            require(low < number < high, f"{told}: give a number between {low:g} and {high:g}.")
        if name == "threshold":
            require(not math.isnan(number), f"{told}: give a number.")
