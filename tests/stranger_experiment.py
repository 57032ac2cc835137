"""What a batch size costs a stranger's objective. Chapter: `book/spanbert/pretraining_spanbert`."""

from dataclasses import replace

from research.experiments.token_vs_span import measured_run
from research.grid import CURVES
from spanbert_tutorial.pretraining.presets import Run

ARMS = (4, 8)
SEEDS = 2
SETTINGS = {"run": Run(objective="labeled+long", steps=1_000), **CURVES}


def one(batch, seed, settings, text):
    return measured_run(replace(settings["run"], batch_size=batch, seed=seed), text)
