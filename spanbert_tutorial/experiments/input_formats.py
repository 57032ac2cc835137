"""Blocks of one segment against pairs, with and without next sentence prediction. Chapter:
`book/spanbert/single_sequence`.

    python -m spanbert_tutorial.experiments.input_formats --output FILE

Pairs and the NSP loss usually come and go together. The format `pairs` keeps the pairs and drops the loss, so that the
two can be told apart. Seeds are paired; the budget is equal in steps and in inputs a step. A stopped command goes on.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.batches import PretrainingData
from spanbert_tutorial.engine.loop import History, train
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.pretraining import PretrainingModel, measure

# What the model reads and what it predicts, as objectives: a model of `mlm` passes over the labels of `mlm+nsp` data.
FORMATS = {"one segment": ("mlm", "mlm"), "pairs": ("mlm+nsp", "mlm"), "pairs + NSP": ("mlm+nsp", "mlm+nsp")}
SEEDS, RUN = 5, runs.Run(objective="mlm", steps=1_800)


def pretrain(name: str, run: runs.Run, text: runs.Text) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with inputs of the format `name`. With one seed all formats start from the same encoder."""
    reads, predicts = FORMATS[name]
    model = runs.new_model(replace(run, objective=predicts), text)
    data = PretrainingData(text.train, text.wordpiece, Objective.named(reads), run.length, run.batch_size)
    return model, train(model, data.batches(np.random.default_rng(run.seed)), run.recipe(), text.unigram_entropy)


def held_out(model: PretrainingModel, run: runs.Run, text: runs.Text) -> dict[str, dict[str, float]]:
    """Held-out losses on both kinds of input, each chosen piece replaced by [MASK]; the same masks for every model."""
    results = {}
    for way, reads in {"one segment": "mlm", "pairs": "mlm+nsp"}.items():
        objective = Objective.named(reads).mask_only
        data = PretrainingData(text.held_out, text.wordpiece, objective, run.length, run.batch_size)
        results[way] = measure(model, data, np.random.default_rng(12345))
        if way == "pairs" and model.tasks:
            results[way]["nsp_accuracy"] = label_accuracy(model, data)
            results[way]["not_next"] = float(data.labels.mean())
    return results


@torch.no_grad()
def label_accuracy(model: PretrainingModel, data: PretrainingData) -> float:
    """Share of the pairs whose label the head that reads [CLS] finds, with 15 % of the pieces masked."""
    (task,), device, right = model.tasks, next(model.parameters()).device, 0
    for batch in data.epoch(np.random.default_rng(12345)):
        batch = {name: value.to(device) for name, value in batch.items()}
        logits = getattr(model, task.name)(model.encode(batch))
        right += (logits.argmax(-1) == batch[task.name]).sum().item()
    return right / len(data)


def row(name: str, run: runs.Run, model: PretrainingModel, history: History, text: runs.Text) -> dict:
    """One run as a plain dict ready for JSON."""
    every = ablation.CURVE_EVERY
    curve = {
        loss: [round(float(np.mean(values[i : i + every])), 4) for i in range(0, len(values), every)]
        for loss, values in history.losses.items()
    }
    figures = {
        way: {key: round(value, 4) for key, value in values.items()}
        for way, values in held_out(model, run, text).items()
    }
    return {"format": name, "run": asdict(run), "held_out": figures, "curve": curve}


def content(rows: list[dict], live: dict, text: runs.Text) -> dict:
    """What the file of results holds. live: a short run that the chapter does again."""
    return {
        "command": "python -m spanbert_tutorial.experiments.input_formats --output FILE",
        "surroundings": ablation.surroundings(),
        "unigram_entropy": round(text.unigram_entropy, 4),
        "curve_every": ablation.CURVE_EVERY,
        "curve_tolerance": ablation.CURVE_TOLERANCE,
        "live": live,
        "rows": sorted(rows, key=lambda kept: (kept["run"]["seed"], list(FORMATS).index(kept["format"]))),
    }


def run_all(output: Path, text: runs.Text, seeds: int = SEEDS, formats: Sequence[str] = tuple(FORMATS)) -> None:
    """Each format with every seed; `output` is rewritten after each run, and what it holds is not run again."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.exists() else []
    short = replace(RUN, steps=100)
    live = row("pairs + NSP", short, *pretrain("pairs + NSP", short, text), text)
    for seed in range(seeds):
        for name in formats:
            if any((kept["format"], kept["run"]["seed"]) == (name, seed) for kept in rows):
                continue
            began, run = time.monotonic(), replace(RUN, seed=seed)
            rows.append(row(name, run, *pretrain(name, run, text), text))
            print(f"{time.monotonic() - began:.0f} s, seed {seed}, {name}: {rows[-1]['held_out']}", flush=True)
            ablation.write_whole(output, content(rows, live, text))


def column(results: dict, name: str, way: str, figure: str) -> list[float]:
    """One held-out figure of every seed, in the order of the seeds. results: the content of the file."""
    return [kept["held_out"][way][figure] for kept in results["rows"] if kept["format"] == name]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description="One segment against pairs, with and without next sentence prediction."
    )
    parser.add_argument("--output", type=Path, required=True, help="JSON file of the results")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        run_all(options.output, runs.open_text("almanac", folder), options.seeds, options.formats)


if __name__ == "__main__":
    main()
