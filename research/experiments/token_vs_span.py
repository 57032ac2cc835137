"""Token against span masking, with and without the span boundary objective. Chapter:
`book/evidence/plateau`.

The budget is equal: the same steps, blocks and share of masked tokens. With the same seed all
objectives start from the same encoder weights and see the same blocks first.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, replace

from research.grid import CURVES, curves, rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.presets import RUNS, Run

ARMS = ("mlm", "span", "span+sbo")
SEEDS = 5
SETTINGS = {"run": replace(RUNS["tiny"], steps=1_800), **CURVES}


def one(objective: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run, trained and measured."""
    return measured_run(replace(settings["run"], objective=objective, seed=seed), text)


def measured_run(run: Run, text: EncodedText) -> dict:
    """Trains a model; its settings, its figures on held-out text beside those of two tables without
    context, its loss curves and the seconds."""
    began = time.monotonic()
    model, history = runs.pretrain(run, text)
    held_out = rounded(held_out_metrics(model, run, text, tables=True))
    return {
        "run": asdict(run),
        "held_out": held_out,
        "curve": curves(history),
        "seconds": round(time.monotonic() - began),
    }
