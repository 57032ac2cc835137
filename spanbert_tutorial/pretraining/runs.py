"""One pre-training run, from text to a trained model, with settings that leave the plateau.
Chapter: `book/spanbert/pretraining_spanbert`.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from spanbert_tutorial.bert.encoder import EncoderConfig, set_dropout
from spanbert_tutorial.engine.ahead import drawn_ahead
from spanbert_tutorial.engine.loop import History, Recipe, Trainer, draw, train
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import Batches, InTurn, MixedData, PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_data, held_out_losses
from spanbert_tutorial.pretraining.fixed_shapes import compiled, with_fixed_shapes
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.objectives import Mixture, Objective, objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run

REHEARSAL = 6.0  # seconds that a rehearsal warms up for, and then again that it times
SLOW = 10.0  # seconds of a step beyond which a rehearsal makes a step of each batch: the optimizer
# takes a small part of it


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
    compiling: bool = False,
) -> tuple[PretrainingModel, History]:
    """Trains a new model, or goes on with `model`, with the run's dropout. The same run on the same
    text gives the same batches. compiling: whether to compile the step (`fixed_shapes`)."""
    model = model or new_model(run, text)
    watch = partial(held_out_losses, model, held_out_data(run, text))
    with prepared(run, text, model, compiling) as batches:
        history = train(model, batches, run.recipe(), text.unigram_entropy, snapshots, watch)
    return model, history


@contextmanager
def prepared(
    run: Run, text: EncodedText, model: PretrainingModel, compiling: bool
) -> Iterator[Batches | InTurn]:
    """The batches of a run, and while this is open the model as the run trains it."""
    set_dropout(model, run.dropout)
    batches = data_of(run, text).batches(np.random.default_rng(run.seed))
    if not compiling:
        yield batches
        return
    with compiled(model, run):
        yield with_fixed_shapes(batches)


def rehearse(
    run: Run,
    text: EncodedText,
    model: PretrainingModel,
    steps: int | None = None,
    compiling: bool = False,
) -> tuple[int, float, float]:
    """Trains for some seconds as the run would, with its batches drawn on the way, and times that
    after a warm-up. Returns the number of parameters, and seconds and tokens a step (of all
    processes). steps: how many to time, if that is not left to their speed."""
    with prepared(run, text, model, compiling) as batches:
        recipe = run.recipe()
        trainer = Trainer(model, recipe)
        single = replace(recipe, accumulate=1)
        with trainer.training(), drawn_ahead(batches, trainer.device) as source:
            timed(trainer, source, single, 1)  # kernels are chosen, or compiled
            seconds, _ = timed(trainer, source, single, 1)
            if steps is None:  # on a CPU, each new shape of a batch costs time when it first comes
                seconds, _ = timed(trainer, source, single, fitting(trainer.mean(seconds)))
            seconds = trainer.mean(seconds)
            whole = seconds * run.accumulate <= SLOW
            recipe, parts = (recipe, 1) if whole else (single, run.accumulate)
            steps = steps or fitting(seconds * recipe.accumulate)
            seconds, tokens = timed(trainer, source, recipe, steps)
    parameters = sum(weight.numel() for weight in model.parameters())
    return parameters, parts * seconds, parts * tokens


def fitting(seconds: float) -> int:
    """How many steps of so many seconds fit into `REHEARSAL`, from 2 to 200."""
    return min(max(round(REHEARSAL / seconds), 2), 200)


def timed(
    trainer: Trainer, batches: Iterable[dict], recipe: Recipe, steps: int
) -> tuple[float, float]:
    """Seconds and tokens a step, of so many steps that end with a reading."""
    stream = iter(batches)
    tokens = trainer.tokens
    began = time.monotonic()
    for step in range(1, steps + 1):
        trainer.step(draw(batches, stream, recipe, step), step)
        if step == steps or trainer.reading_due(step, asked_to_stop=False):
            trainer.read()
    return (time.monotonic() - began) / steps, (trainer.tokens - tokens) / steps
