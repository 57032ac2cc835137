"""What sharing the layers' weights costs at equal width, in miniature. Evidence:
`book/evidence/relatives`.

After ALBERT's Table 4: an encoder of two layers of width 128, the size of the book's other small
experiments, whose layers share all weights, only attention, only the feed-forward part, or nothing.
Masked language modeling on the almanac. Paired seeds: the embeddings, the first layer and the
batches are the same for all four.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace

import torch

from research.results import CURVES, curve, rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.relatives.albert import SHARING, AlbertConfig, AlbertEncoder

ARM = "sharing"
ARMS = SHARING
SEEDS = 3
RUN = Run(objective="mlm", steps=1_200)
SHORT = replace(RUN, steps=50)  # a page can afford to train this one again
SETTINGS = {"start": RUN, **CURVES}


def new_model(run: Run, text: EncodedText, sharing: str) -> PretrainingModel:
    """An untrained model as `runs.new_model` makes it, but an ALBERT whose layers share; E = H."""
    config = AlbertConfig.preset(
        run.size,
        vocab_size=len(text.wordpiece),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=run.initializer_range,
        sharing=sharing,  # type: ignore[arg-type]  # a key of AlbertConfig alone
    )
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        # a stream of its own, so that the first weights do not depend on how many layers there are
        encoder = AlbertEncoder(config, torch.Generator().manual_seed(run.seed))
        model = PretrainingModel(config, Objective.named(run.objective), encoder)
    start_positions_from_sinusoids(model.encoder)
    return model


def trained(run: Run, text: EncodedText, sharing: str) -> dict:
    """The figures of one run, trained and measured on held-out text."""
    model = new_model(run, text, sharing)
    _, history = runs.pretrain(run, text, model)
    sizes = {
        "parameters": sum(weight.numel() for weight in model.encoder.parameters()),
        "in_layers": sum(weight.numel() for weight in model.encoder.layers.parameters()),
    }
    held_out = held_out_metrics(model, run, text)["token"]
    return sizes | {"held_out": rounded(held_out), "curve": curve(history.losses["mlm"])}


def one(sharing: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run of a row."""
    return trained(replace(settings["start"], seed=seed), text, sharing)


def beside(settings: Mapping, text: EncodedText) -> dict:
    """A short run that the evidence page does again."""
    short = replace(settings["start"], steps=min(SHORT.steps, settings["start"].steps))
    return {
        "short": {
            "sharing": "all",
            "seed": short.seed,
            **trained(short, text, "all"),
            "run": asdict(short),
        }
    }
