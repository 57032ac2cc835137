"""Two ways raced in one run: taken in turns, so that a noisy machine slows both alike."""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from research.grid import surroundings

ROUNDS = 7
WARM_UP = (
    5  # on a virtual machine the first steps are slow until the memory they use is really there
)


def race(first: Callable[[], object], second: Callable[[], object], rounds: int = ROUNDS) -> dict:
    """Median seconds of both, and the median, least and greatest of the ratios second / first, one
    ratio a round.

    A ratio above 1 says how many times as fast `first` is. Both are called a few times before, to
    warm up.
    """
    pairs = []
    for _ in range(WARM_UP + rounds):
        pairs.append((seconds(first), seconds(second)))
    firsts, seconds_ = zip(*pairs[WARM_UP:], strict=True)
    ratios = [b / a for a, b in pairs[WARM_UP:]]
    return {
        "seconds": [round(statistics.median(times), 6) for times in (firsts, seconds_)],
        "rounds": rounds,
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(min(ratios), 3), round(max(ratios), 3)],
    }


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def greatest_memory() -> float:
    """The greatest memory of this process so far, in MiB. Not on Windows, whose Python cannot
    tell."""
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def keep(name: str, results: dict) -> None:
    """Writes results to the path on the command line, or `data/results/NAME.json`."""
    path = (
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else Path(__file__).parents[1] / "data" / "results" / f"{name}.json"
    )
    command = f"python -m {sys.modules['__main__'].__spec__.name} OUTPUT.json"
    results = {"command": command, "surroundings": surroundings(), **results}
    print(json.dumps(results, indent=1))
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
