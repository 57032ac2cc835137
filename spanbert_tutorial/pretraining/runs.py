"""One pre-training run, from text to a trained model, with settings that leave the plateau.
Chapter: `book/spanbert/pretraining_spanbert`.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count, islice

import numpy as np

from spanbert_tutorial.bert.encoder import EncoderConfig, set_dropout
from spanbert_tutorial.engine.device import seeded
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.processes import any_process, processes
from spanbert_tutorial.engine.snapshots import Snapshots, long_run
from spanbert_tutorial.engine.stream import Stream
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.batches import Batches, Interleaved, PretrainingData
from spanbert_tutorial.pretraining.checkpoints import check_heads, check_vocabulary
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_data, held_out_losses
from spanbert_tutorial.pretraining.fixed_shapes import compiled, with_fixed_shapes
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.objectives import Mixture, Objective, objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import train

REHEARSAL = 1.5  # seconds that a rehearsal times at least


def new_model(run: Run, text: EncodedText) -> PretrainingModel:
    """An untrained model of the run's size, the same for the same seed."""
    changes = {"hidden_dropout_prob": run.dropout, "attention_probs_dropout_prob": run.dropout}
    changes["initializer_range"] = run.initializer_range
    config = EncoderConfig.preset(run.size, vocab_size=len(text.wordpiece), **changes)
    most = config.max_position_embeddings
    require(run.max_length <= most, f"max_length is {run.max_length}, over {most}: give less.")
    with seeded(run.seed):
        model = PretrainingModel(config, objective_or_mixture(run.objective))
    if run.sinusoidal_positions:
        start_positions_from_sinusoids(model.encoder)
    return model


def training_data(
    run: Run, text: EncodedText, objective: Objective | None = None
) -> PretrainingData:
    """The blocks of a run; objective: another one than its own."""
    own = objective or Objective.named(run.objective)
    shape = run.max_length, run.batch_size, run.by_length
    return PretrainingData(text.train, text.wordpiece, own, *shape)


def batches_of(run: Run, text: EncodedText) -> Batches | Interleaved:
    """What the run trains on: blocks of one objective, or of several that take turns. Raises
    InputError where the first batches have nothing to predict."""
    objective, rng = objective_or_mixture(run.objective), np.random.default_rng(run.seed)
    rows = objective.parts if isinstance(objective, Mixture) else {run.objective: objective}
    parts = {name: training_data(run, text, row) for name, row in rows.items()}
    for data in parts.values():
        check_targets(data)
    if isinstance(objective, Mixture):
        return Interleaved(parts, objective.weights, rng)
    return Batches(data, rng)


def check_targets(data: PretrainingData) -> None:
    """Raises InputError where the first batches have nothing to predict: each loss would be a mean
    over nothing."""
    batches = list(islice(data.epoch(np.random.default_rng(0)), 8))
    told = "no token was masked, all words exceed the budget: give longer documents, or mlm."
    require(any(len(batch["masked_positions"]) for batch in batches), told)
    for task in data.objective.tasks:
        told = f"{task.loss_name.upper()} has no {task.counted} in this text"
        told += f" ({task.explained})" if task.explained else ""
        mend = "give longer documents, words within the masking budget, or an objective without it"
        require(any(map(task.count, batches)), f"{told}: {mend}.")


def pretrain(
    run: Run,
    text: EncodedText,
    model: PretrainingModel | None = None,
    snapshots: Snapshots | None = None,
    compiling: bool = False,
) -> tuple[PretrainingModel, History]:
    """Trains a new model, or goes on with `model`, with the run's dropout. The same run on the same
    text gives the same batches, and drops the same units. compiling: whether to compile the step
    (`fixed_shapes`). Raises InputError for a model of another objective, or of fewer tokens."""
    model = model or new_model(run, text)
    watch = partial(held_out_losses, model, held_out_data(run, text))
    with (
        seeded(run.seed + processes().process_index),
        prepared(run, text, model, compiling) as batches,
        long_run(batches, snapshots, text.unigram_entropy, watch) as (stream, hooks),
    ):
        return model, train(model, stream, run.recipe(), hooks)


@contextmanager
def prepared(
    run: Run, text: EncodedText, model: PretrainingModel, compiling: bool
) -> Iterator[Batches | Interleaved]:
    """The batches of a run, and while this is open the model as the run trains it."""
    if isinstance(model, PretrainingModel):  # of a relative the heads are its own
        check_heads(model, run.objective)
        check_vocabulary(text.wordpiece, model.encoder, "of the text")
    set_dropout(model, run.dropout)
    batches = batches_of(replace(run, by_length=run.by_length and not compiling), text)
    with compiled(model, run) if compiling else nullcontext():
        yield with_fixed_shapes(batches) if compiling else batches


def rehearse(
    run: Run, text: EncodedText, model: PretrainingModel, compiling: bool = False
) -> tuple[int, float, float]:
    """Trains as the run would, with its batches drawn on the way, for 1, 2, 4, … steps until these
    take `REHEARSAL` seconds; `model` keeps what it learns. Returns the number of parameters, and
    seconds and tokens a step (of all processes).

    A step of several batches counts as so many steps of one: its time is an upper limit, by little.
    """
    config = replace(run.recipe(), accumulate=1)
    with prepared(run, text, model, compiling) as batches, closing(Stream(batches)) as stream:
        if compiling:  # which takes a minute, at the first batch
            train(model, stream, replace(config, steps=2))
        for number in (2**i for i in count()):
            before = stream.taken()
            train(model, stream, replace(config, steps=number))
            tokens, seconds = np.subtract(stream.taken(), before)
            if any_process(seconds > REHEARSAL):
                break
    each = run.accumulate / number
    parameters = sum(weight.numel() for weight in model.parameters())
    return parameters, float(seconds * each), float(tokens * each)
