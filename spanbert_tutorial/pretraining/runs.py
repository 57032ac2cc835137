"""One pre-training run, from text to a trained model, with settings that leave the plateau.
Chapter: `book/spanbert/pretraining_spanbert`.
"""

import time
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np
import torch

from spanbert_tutorial.bert.encoder import EncoderConfig, set_dropout
from spanbert_tutorial.engine.loop import History, Recipe, train
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import MixedData, PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_data, held_out_losses
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.objectives import Mixture, Objective, objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run


def new_model(
    run: Run, text: EncodedText, objective: Objective | Mixture | None = None
) -> PretrainingModel:
    """An untrained model of the run's size, the same for the same seed. objective: another one than
    the run's, with the same heads."""
    changes = {"hidden_dropout_prob": run.dropout, "attention_probs_dropout_prob": run.dropout}
    changes["initializer_range"] = run.initializer_range
    config = EncoderConfig.preset(run.size, vocab_size=len(text.wordpiece), **changes)
    if run.max_length > config.max_position_embeddings:
        raise InputError(
            f"a length of {run.max_length} is over {config.max_position_embeddings} positions: give "
            f"less."
        )
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        model = PretrainingModel(config, objective or objective_or_mixture(run.objective))
    if run.sinusoidal_positions:
        start_positions_from_sinusoids(model.encoder)
    return model


def training_data(run: Run, text: EncodedText) -> PretrainingData:
    """The blocks that the run trains on."""
    return blocks_of(run, text, Objective.named(run.objective))


def blocks_of(run: Run, text: EncodedText, objective: Objective) -> PretrainingData:
    """The blocks of a run with another objective than its own."""
    return PretrainingData(
        text.train,
        text.wordpiece,
        objective,
        run.max_length,
        run.batch_size,
        by_length=run.by_length,
    )


def data_of(run: Run, text: EncodedText) -> PretrainingData | MixedData:
    """What the run trains on: blocks of one objective, or of several that take turns."""
    objective = objective_or_mixture(run.objective)
    if isinstance(objective, Objective):
        return blocks_of(run, text, objective)
    parts = {name: blocks_of(run, text, part) for name, part in objective.parts.items()}
    return MixedData(parts, objective.shares)


def pretrain(
    run: Run,
    text: EncodedText,
    model: PretrainingModel | None = None,
    snapshots: Snapshots | None = None,
) -> tuple[PretrainingModel, History]:
    """Trains a new model, or goes on with `model`, with the run's dropout. The same run on the same
    text gives the same batches."""
    model = model or new_model(run, text)
    set_dropout(model, run.dropout)
    batches = data_of(run, text).batches(np.random.default_rng(run.seed))
    watch = partial(held_out_losses, model, held_out_data(run, text))
    return model, train(model, batches, run.recipe(), text.unigram_entropy, snapshots, watch)


def rehearse(
    run: Run, text: EncodedText, model: PretrainingModel, steps: int = 4
) -> tuple[int, float, float]:
    """A few steps of a run. Returns the number of parameters, and seconds and tokens a step (of all
    processes)."""
    batches = list(islice(data_of(run, text).batches(np.random.default_rng(run.seed)), steps + 1))
    recipe = Recipe(steps + 1, run.peak_learning_rate, warmup_steps=1)  # of one batch each
    moments: list[float] = []
    train(model, noting(batches, moments), recipe)
    tokens = (
        processes().num_processes
        * sum(int(batch["attention_mask"].sum()) for batch in batches)
        / len(batches)
    )
    return (
        sum(weight.numel() for weight in model.parameters()),
        (moments[-1] - moments[1]) / (steps - 1),
        tokens,
    )


def noting(batches: list[dict], moments: list[float]) -> Iterator[dict]:
    """The batches, with the time at which each was asked for."""
    for batch in batches:
        moments.append(time.monotonic())
        yield batch
