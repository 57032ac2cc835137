"""What shortens the time in which the loss stays at the unigram entropy. Chapter:
`book/evidence/plateau`.

A tiny model under ten settings of its run. Seeds are paired: the same seed gives every setting the
same masks and, with the same batch size, the same batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from research.experiments.token_vs_span import measured_run
from research.grid import CURVE_EVERY
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run

GAP = 1.0  # nats below the unigram entropy that count as having left

# What each arm changes in a run of the book: tiny, token masking, 3e-3 after a warm-up of 0.1,
# start 0.06, sinusoidal positions, batch 32.
SEEDS = 5
ARMS: dict[str, dict[str, Any]] = {
    "as in the book": {},
    "no sinusoids": {"sinusoidal_positions": False},
    "start 0.02": {"initializer_range": 0.02},
    "peak 1e-3": {"peak_learning_rate": 1e-3},
    "no warm-up": {"warmup": 0.0},
    "warm-up of 0.4": {"warmup": 0.4},
    "half the batch": {"batch_size": 16},
    "half, twice the steps": {"batch_size": 16, "steps": 2_000},  # as much text as the book's run
    # twice the blocks, two thirds of the tokens
    "short blocks": {"max_length": 24, "batch_size": 64},
    "short blocks, half": {"max_length": 24},  # half as many: as many blocks as the book's run
}
RUN = Run(objective="mlm", steps=1_000)
SETTINGS = {"start": RUN, "gap": GAP, "curve_every": CURVE_EVERY}
LIVE_TOLERANCE = (
    0.25  # nats, on another machine; in the fall bf16 and float32 were up to 0.104 apart
)


def setting(name: str, seed: int, run: Run = RUN) -> Run:
    """The run of an arm and a seed."""
    changed = replace(run, seed=seed, **ARMS[name])
    return replace(changed, steps=min(changed.steps, 2 * run.steps))  # a shorter trial stays one


LIVE = replace(setting("short blocks", seed=0), steps=600)  # the run that the chapter repeats


def left_after(curve: Sequence[float], every: int, entropy: float) -> int | None:
    """The step at which a loss curve, means over `every` steps, first lies `GAP` below the unigram
    entropy, or None."""
    below = np.flatnonzero(np.asarray(curve) < entropy - GAP)
    return int(below[0] + 1) * every if len(below) else None


def one(name: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run, and when it left."""
    row = measured_run(setting(name, seed, settings["start"]), text)
    return {
        "left_after": left_after(row["curve"]["mlm"], settings["curve_every"], text.unigram_entropy)
    } | row


def beside(settings: Mapping, text: EncodedText) -> dict:
    """The chapter's run."""
    live = replace(LIVE, steps=min(LIVE.steps, settings["start"].steps))
    return {"curve_tolerance": LIVE_TOLERANCE, "live": measured_run(live, text)}
