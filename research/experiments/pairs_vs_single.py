"""Blocks of one segment against pairs, with and without next sentence prediction. Chapter:
`book/evidence/plateau`.

Pairs and the NSP loss usually come and go together. The format `pairs` keeps the pairs and drops
the loss, so that the two can be told apart. Seeds are paired; the budget is equal in steps and in
inputs a step.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np
import torch

from research.grid import CURVES, curves, rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import evaluate
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train

# What the model reads and what it predicts, as objectives: a model of `mlm` passes over the labels
# of `mlm+nsp` data.
SEEDS = 5
ARMS = {
    "one segment": ("mlm", "mlm"),
    "pairs": ("mlm+nsp", "mlm"),
    "pairs + NSP": ("mlm+nsp", "mlm+nsp"),
}
SETTINGS = {"run": Run(objective="mlm", steps=1_800), **CURVES}


def pretrain(name: str, run: Run, text: EncodedText) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with inputs of the format `name`. With one seed all formats start from
    the same encoder."""
    reads, predicts = ARMS[name]
    model = runs.new_model(replace(run, objective=predicts), text)
    data = PretrainingData(
        text.train, text.wordpiece, Objective.named(reads), run.max_length, run.batch_size
    )
    return model, train(model, data.batches(np.random.default_rng(run.seed)), run.recipe())


def held_out(model: PretrainingModel, run: Run, text: EncodedText) -> dict[str, dict[str, float]]:
    """Held-out losses on both kinds of input, each chosen token replaced by [MASK]; the same masks
    for every model."""
    results = {}
    for way, reads in {"one segment": "mlm", "pairs": "mlm+nsp"}.items():
        objective = Objective.named(reads).mask_only
        data = PretrainingData(
            text.held_out, text.wordpiece, objective, run.max_length, run.batch_size
        )
        results[way] = evaluate(model, data, np.random.default_rng(12345))
        if way == "pairs" and model.tasks:
            results[way]["nsp_accuracy"] = label_accuracy(model, data)
            results[way]["not_next"] = float(np.mean(data.labels))  # type: ignore[arg-type]  # pairs have labels
    return results


@torch.no_grad()
def label_accuracy(model: PretrainingModel, data: PretrainingData) -> float:
    """Share of the pairs whose label the head that reads [CLS] finds, with 15 % of the tokens
    masked."""
    (task,), device, right = model.tasks, next(model.parameters()).device, 0
    for batch in data.epoch(np.random.default_rng(12345)):
        batch = {name: value.to(device) for name, value in batch.items()}
        logits = getattr(model, task.name)(model.encode(batch))
        right += (logits.argmax(-1) == batch[task.name]).sum().item()
    return right / len(data)


def one(name: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run, trained and measured."""
    run = replace(settings["run"], seed=seed)
    model, history = pretrain(name, run, text)
    return {
        "run": asdict(run),
        "held_out": rounded(held_out(model, run, text)),
        "curve": curves(history),
    }


def beside(settings: Mapping, text: EncodedText) -> dict:
    """A short run that the page repeats."""
    short = {"run": replace(settings["run"], steps=min(100, settings["run"].steps))}
    return {"live": {"format": "pairs + NSP"} | one("pairs + NSP", 0, short, text)}
