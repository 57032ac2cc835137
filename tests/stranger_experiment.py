"""What a batch size costs a stranger's objective. Chapter: `book/spanbert/pretraining_spanbert`."""

from dataclasses import replace

from spanbert_tutorial import runs
from spanbert_tutorial.experiments.results import CURVES
from spanbert_tutorial.experiments.token_vs_span import measured_run

ARM, ARMS, SEEDS = "batch", (4, 8), 2
SETTINGS = {"run": runs.Run(objective="labelled+long", steps=1_000), **CURVES}


def one(batch, seed, settings, text):
    return measured_run(replace(settings["run"], batch_size=batch, seed=seed), text)
