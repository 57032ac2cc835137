"""What a model knows at every 50th step of a short run: its losses with parts of the context gone,
where its heads look, what it fills into three gaps. Chapter: `book/bert/pretraining`.

Measures: `loss/CONDITION`, `attention/HEAD/DISTANCE`, `gap N/TOKEN` (a probability of one of the
three top tokens) and `gap N/right`, the probability of the right one; `baseline/NAME`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from research.experiments.leaving_the_plateau import LIVE
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import masked_labels, masked_positions
from spanbert_tutorial.pretraining import plateau, runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.train import train

SEEDS = 1
GAPS = (1, 4, 13)  # which of the masked tokens of the first batch
SETTINGS = {"run": LIVE, "gaps": GAPS}
EVERY = 50


@torch.no_grad()
def predictions(
    model: PretrainingModel, batch: dict[str, Tensor], places: Sequence[int], most: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the model would fill into k of the t masked places: the `most` top tokens, int [k,most],
    their probabilities, float [k,most], and those of the right tokens, float [k]."""
    device = next(model.parameters()).device
    hidden = model.encode({name: value.to(device) for name, value in batch.items()})
    asked = masked_positions(batch)[list(places)]
    p = model.masked_language_model(hidden.flatten(0, 1)[asked]).softmax(-1).cpu()  # [k,V]
    top = p.topk(most)
    right = p.gather(1, masked_labels(batch)[list(places)][:, None])[:, 0]
    return top.indices.numpy(), top.values.numpy(), right.numpy()


def attention_by_distance(
    encoder: BertEncoder, batch: dict[str, Tensor], most: int = 4
) -> np.ndarray:
    """float [L, A, 2 · most + 1]: the mean weight that masked places give to the place at distance
    −most … most; places outside the input are left out. An even spread gives about 1 / (length of
    the input) everywhere."""
    device = encoder.embeddings.word_embeddings.weight.device
    names = ("input_ids", "token_type_ids", "attention_mask")
    maps = torch.stack(
        encoder.attention_maps(**{name: batch[name].to(device) for name in names}), dim=2
    ).cpu()  # [B,A,L,n,n]
    rows, positions = (batch["labels"] != -100).nonzero(as_tuple=True)
    lengths = batch["attention_mask"].sum(1)[rows]
    means = []
    for place in (positions + distance for distance in range(-most, most + 1)):
        real = (place >= 0) & (place < lengths)
        weights = maps[rows[real], :, :, positions[real], place[real]]
        means.append(weights.mean(0).T)  # [L,A]
    return torch.stack(means, dim=2).numpy()


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
        weights = attention_by_distance(model.encoder, held_out[0])
        heads = {
            f"layer {layer + 1}, head {head + 1}": {
                str(distance - weights.shape[2] // 2): float(weight)
                for distance, weight in enumerate(weights[layer, head])
            }
            for layer, head in np.ndindex(weights.shape[:2])
        }
        top, p, right = predictions(model, held_out[0], settings["gaps"])
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
