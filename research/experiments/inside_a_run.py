"""What a model knows at every 50th step of a short run: its losses with parts of the context gone,
where its heads look, what it fills into three gaps. Chapter: `book/bert/pretraining`.

Measures: `loss/CONDITION`, `attention/HEAD/DISTANCE`, `gap N/TOKEN` (a probability of one of the
three top tokens) and `gap N/right`, the probability of the right one; `baseline/NAME`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from research.experiments.leaving_the_plateau import LIVE
from spanbert_tutorial.pretraining import plateau, runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.train import train

SEEDS = 1
GAPS = (1, 4, 13)  # which of the masked tokens of the first batch
SETTINGS = {"run": LIVE, "gaps": GAPS}
EVERY = 50


def beside(settings: Mapping, text: EncodedText) -> dict[str, Any]:
    """The losses of the baselines on the same tokens."""
    run = settings["run"]
    at = plateau.around_masks(plateau.held_out_batches(run, text))
    tables = unigram_baselines(runs.training_data(run, text))
    bigrams = plateau.BigramModel(text.train.ids, len(text.wordpiece))
    pairs = zip(at["left"], at["id"], strict=True)
    left = [-np.log(bigrams.probabilities(left, None)[token]) for left, token in pairs]
    losses = tables.losses(at["position"], at["id"]) | {"left": float(np.mean(left))}
    return {"baseline": losses}


def one(seed: int, settings: Mapping, text: EncodedText) -> dict[str, Any]:
    """The measurements, by step."""
    run = settings["run"]
    held_out = plateau.held_out_batches(run, text)
    versions = plateau.versions(held_out, text.wordpiece)
    model = runs.new_model(run, text)
    found: dict[str, Any] = {}

    def look(step: int) -> None:
        model.eval()
        losses = {
            name: float(plateau.token_losses(model, batches).mean())
            for name, batches in versions.items()
        }
        weights = plateau.attention_by_distance(model.encoder, held_out[0])
        heads = {
            f"layer {layer + 1}, head {head + 1}": {
                str(distance - weights.shape[2] // 2): float(weight)
                for distance, weight in enumerate(weights[layer, head])
            }
            for layer, head in np.ndindex(weights.shape[:2])
        }
        top, p, right = plateau.predictions(model, held_out[0], settings["gaps"])
        gaps = {
            f"gap {number + 1}": dict(
                zip(text.wordpiece.tokens(top[number].tolist()), p[number].tolist(), strict=True)
            )
            | {"right": float(right[number])}
            for number in range(len(top))
        }
        found[f"step {step}"] = {"loss": losses, "attention": heads, **gaps}
        model.train()

    batches = runs.training_data(run, text).batches(np.random.default_rng(run.seed))
    train(model, plateau.watched(batches, range(0, run.steps, EVERY), look), run.recipe())
    look(run.steps)
    return found
