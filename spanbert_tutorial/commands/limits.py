"""What the numbers of a command may be: one table for all commands, checked before anything else is
done. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from spanbert_tutorial.errors import InputError


class Limit(NamedTuple):
    """Whether a number is one that an option can take, and what to give otherwise."""

    fits: Callable[[float], bool]
    wanted: str


def whole(least: int, most: int) -> Limit:
    """Whole numbers from `least` to `most`."""
    end = "2^63 − 1" if most == 2**63 - 1 else f"{most:,}"
    return Limit(lambda number: least <= number <= most, f"a whole number from {least:,} to {end}")


def between(least: float, most: float) -> Limit:
    """Numbers between the two, which are not among them themselves."""
    return Limit(lambda number: least < number < most, f"a number between {least:g} and {most:g}")


# Option → limit; an option means the same wherever it stands.
LIMITS = {
    "seed": whole(0, 2**63 - 1),  # what torch and NumPy both take
    "steps": whole(1, 999_999_999),  # the names of snapshots have nine digits
    "max_length": whole(
        4, 1_000_000
    ),  # [CLS], two tokens and [SEP]; a model says itself how many positions it has
    "doc_stride": whole(1, 1_000_000),
    "batch_size": whole(1, 100_000),
    "accumulate": whole(1, 100_000),
    "vocab_size": whole(1, 1_000_000),  # the library makes room for all of them at once
    "held_out_every": whole(2, 1_000_000),
    "seeds": whole(1, 10_000),
    "epochs": between(0, 10_000),
    "learning_rate": between(0, 1e38),  # float32 ends soon after
    "threshold": Limit(lambda number: not math.isnan(number), "a number"),
}


def check(options: Mapping[str, object]) -> None:
    """Raises InputError naming the first number that its option cannot take. options: by name, as
    argparse has them; what is not given is None."""
    for name, limit in LIMITS.items():
        number = options.get(name)
        if number is not None and not limit.fits(number):
            raise InputError(f"--{name.replace('_', '-')} is {number}: give {limit.wanted}.")
