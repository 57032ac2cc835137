"""What sharing the layers' weights costs at equal width, in miniature. Chapter: `book/relatives/albert`.

    python -m spanbert_tutorial.experiments.albert_sharing --output FILE

After ALBERT's Table 4: an encoder of two layers of width 128, the size of the book's other small experiments, whose
layers share all weights, only attention, only the feed-forward part, or nothing. Masked language modelling on the
almanac. Paired seeds: the embeddings, the first layer and the batches are the same for all four. A stopped command
goes on.
"""

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from spanbert_tutorial import runs
from spanbert_tutorial.experiments.continued import command, curve, keep, rounded
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.pretraining import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.relatives.albert import SHARING, AlbertConfig, AlbertEncoder

SEEDS, RUN = 3, runs.Run(objective="mlm", steps=1_200)
SHORT = replace(RUN, steps=50)  # a chapter can afford to train this one again


def new_model(run: runs.Run, text: runs.Text, sharing: str) -> PretrainingModel:
    """An untrained model as `runs.new_model` makes it, but an ALBERT whose layers share; E = H."""
    changes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    changes |= {"initializer_range": run.initializer_range, "sharing": sharing}
    config = AlbertConfig.preset(run.size, vocab_size=len(text.wordpiece), **changes)
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        # a stream of its own, so that the first weights do not depend on how many layers there are
        encoder = AlbertEncoder(config, torch.Generator().manual_seed(run.seed))
        model = PretrainingModel(config, Objective.named(run.objective), encoder)
    start_positions_from_sinusoids(model.encoder)
    return model


def row(run: runs.Run, text: runs.Text, sharing: str) -> dict:
    """One run, trained and measured on held-out text, as a plain dict ready for JSON."""
    model = new_model(run, text, sharing)
    _, history = runs.pretrain(run, text, model)
    sizes = {
        "parameters": sum(weight.numel() for weight in model.encoder.parameters()),
        "in_layers": sum(weight.numel() for weight in model.encoder.layers.parameters()),
    }
    held_out = runs.held_out(model, run, text)["token"]
    return {"sharing": sharing, "seed": run.seed, **sizes, "held_out": held_out, "curve": curve(history)}


def run_all(output: Path, seeds: int, run: runs.Run = RUN, short: runs.Run = SHORT) -> None:
    """Each kind with every seed; `output` is rewritten after each run, and what it holds is not run again."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.exists() else []
    with TemporaryDirectory() as scratch:
        text = runs.open_text("almanac", scratch)
        again = {**rounded(row(short, text, "all")), "run": asdict(short)}
        for seed in range(seeds):
            for sharing in SHARING:
                if any((kept["sharing"], kept["seed"]) == (sharing, seed) for kept in rows):
                    continue
                began = time.monotonic()
                rows.append(row(replace(run, seed=seed), text, sharing))
                print(f"{time.monotonic() - began:.0f} s", seed, sharing, rows[-1]["held_out"], flush=True)
                entropy = round(text.unigram_entropy, 4)
                keep(output, "albert_sharing", seeds, rows, start=asdict(run), short=again, unigram_entropy=entropy)


def main(arguments: list[str] | None = None) -> int:
    return command("What sharing the layers' weights costs at equal width.", run_all, SEEDS, arguments, goes_on=True)


if __name__ == "__main__":
    sys.exit(main())
