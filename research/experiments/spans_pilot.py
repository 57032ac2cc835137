"""Which learning rate each arm of `spans_and_boundaries` gets. Chapter: `book/spanbert/boundary`.

Two rates, that of the start and half of it, a third of the steps, and two seeds that are not used
afterwards. An arm gets the rate with the lower loss on validation text, under its own way of
hiding. Where names stand after so few steps is kept beside it: a measure that cannot move should
not decide anything.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from research.experiments import spans_and_boundaries as core
from research.experiments.boundary_probe import go_on
from research.grid import text_facts
from research.measurements import name_ranks
from research.results import CURVES, column, curve, rounded
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.objectives import Objective

FIRST_SEED = 100  # its seeds are this one and the next: no other run has them
RATES = 3e-3, 1.5e-3
WAYS = {
    name: Objective.named(objective).unit
    for name, objective in core.ARMS.items()
    if name != "start"
}
ARM = ("arm", "rate")
SEEDS = 2
ARMS = tuple((name, rate) for name in WAYS for rate in RATES)
SETTINGS = {
    "vocabulary": core.VOCABULARY,
    "start": core.START,
    "go_on": replace(core.GO_ON, steps=1_500),
    "first_seed": FIRST_SEED,
    **CURVES,
}
Asked = tuple[name_ranks.Known, list[name_ranks.Gap]]


def prepare(folder: Path, settings: Mapping, models: Path) -> tuple[dict, tuple]:
    """The text, and the names to rank: those of validation documents."""
    text = core.small_tokens(folder, settings["vocabulary"])
    known, gaps = core.names_to_rank(text.wordpiece, settings["start"].max_length - 2, "validation")
    return text_facts(text) | {"gaps": len(gaps)}, (text, (known, gaps), models)


def one(
    arm: tuple[str, float],
    seed: int,
    settings: Mapping,
    text: EncodedText,
    asked: Asked,
    models: Path,
) -> dict:
    """Losses and names after a short run from the kept start of this seed."""
    name, rate = arm
    start, _ = core.trained("start", FIRST_SEED + seed, settings, text, models)
    run = replace(core.run_of(name, FIRST_SEED + seed, settings), peak_learning_rate=rate)
    model, history = go_on(start, run, text)
    losses = {way: found["mlm"] for way, found in held_out_metrics(model, run, text).items()}
    known, gaps = asked
    names = name_ranks.figures(
        gaps, name_ranks.model_ranks(model.eval(), text.wordpiece, gaps, known)
    )
    return rounded({"losses": losses, "names": names}) | {"curve": curve(history.losses["mlm"])}


def chosen(content: Mapping) -> dict[str, float]:
    """Arm → its rate. content: of the file of results."""

    def loss(name: str, rate: float) -> float:
        return float(np.mean(column(content, "losses", WAYS[name], arm=name, rate=rate)))

    return {name: min(RATES, key=lambda rate: loss(name, rate)) for name in WAYS}
