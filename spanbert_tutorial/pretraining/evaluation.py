"""What a model has learned: losses and accuracy on held-out text. Chapter:
`book/spanbert/pretraining_spanbert`."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.bert.inputs import masked_labels, masked_positions
from spanbert_tutorial.bert.masking import MaskingScheme, TokenMasking
from spanbert_tutorial.pretraining.baselines import UnigramBaselines, unigram_baselines
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel, masked_logits, pretraining_losses
from spanbert_tutorial.pretraining.objectives import Mixture, Objective, objective_or_mixture
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.spanbert.span_masking import SpanMasking

WATCHED_BATCHES = 8  # of held-out text, for the curve of a run
GAPS_SEED = 12345  # the gaps in held-out text, the same for every model


@torch.no_grad()
def evaluate(
    model: PretrainingModel,
    data: PretrainingData,
    rng: np.random.Generator,
    most: int | None = None,
    tables: UnigramBaselines | None = None,
) -> dict[str, float]:
    """Means over one pass of held-out data, or over its first `most` batches: every loss in nats,
    and `accuracy`.

    accuracy: the share of chosen tokens whose likeliest prediction by the masked language model
    head is the original. tables: what frequencies alone reach on the same tokens is then there,
    too, under `frequency` and `by_position`, and for the targets of a task that predicts tokens
    under `LOSS_frequency` and `LOSS_by_position`. What had nothing to be a mean over is left out.
    """
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    totals: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for batch in islice(data.epoch(rng), most):
        batch = {name: value.to(device) for name, value in batch.items()}
        for name, (mean, count) in batch_metrics(model, batch, tables).items():
            totals[name] += mean * count, count
    model.train(training)
    return {name: float(total / count) for name, (total, count) in totals.items()}


def batch_metrics(
    model: PretrainingModel, batch: dict[str, Tensor], tables: UnigramBaselines | None
) -> dict[str, tuple[float, int]]:
    """Of one batch the metrics of `evaluate`, each a mean and over how many tokens or targets,
    where there are any."""
    hidden = model.encode(batch)
    losses = {name: loss.item() for name, loss in pretraining_losses(model, hidden, batch).items()}
    right = masked_logits(model, hidden, batch).argmax(-1) == masked_labels(batch)
    metrics = losses | {"accuracy": right.float().mean().item()}
    if tables is not None:
        metrics |= tables.losses(*masked_tokens(batch))
    counted = {name: (value, len(right)) for name, value in metrics.items()}
    for task in model.tasks:
        if (name := task.loss_name) in losses:
            count, tokens = task.count(batch), task.predicted_tokens(batch)
            counted[name] = losses[name], count
            reached = tables.losses(*tokens) if tables is not None and tokens is not None else {}
            counted |= {f"{name}_{table}": (value, count) for table, value in reached.items()}
    return {name: (mean, count) for name, (mean, count) in counted.items() if count}


def masked_tokens(batch: dict[str, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """(positions in the model's input, original ids) of the masked tokens, int [t] each."""
    positions = masked_positions(batch) % batch["labels"].shape[1]
    return positions.cpu().numpy(), masked_labels(batch).cpu().numpy()


def held_out_losses(
    model: PretrainingModel, blocks: Mapping[str, PretrainingData]
) -> dict[str, float]:
    """Losses on a small part of the held-out text, always the same gaps, so that they make a curve:
    of the masked language model under each way of choosing (`held_out_token`, …), of an auxiliary
    objective (such as `held_out_sbo`). blocks: as `held_out_data` gives them."""
    curve: dict[str, float] = {}
    for way, data in blocks.items():
        # the last way counts: of SBO, that of whole spans
        names = {"mlm": way} | {task.loss_name: task.loss_name for task in model.tasks}
        found = evaluate(model, data, np.random.default_rng(GAPS_SEED), WATCHED_BATCHES)
        curve |= {f"held_out_{names[one]}": found[one] for one in names if one in found}
    return curve


def held_out_metrics(
    model: PretrainingModel,
    run: Run,
    text: EncodedText,
    most: int | None = None,
    tables: bool = False,
) -> dict[str, dict[str, float]]:
    """Held-out losses and accuracy under both ways of choosing, each chosen token replaced by
    [MASK]; with a task that reads pairs also of pairs, under "pairs".

    The same blocks and the same masks for every model, so that runs can be compared pair by pair.
    most: batches, if not all. tables: also what the two tables without context reach on the same
    tokens (`unigram_baselines`).
    """
    results = {}
    for name, data in held_out_data(run, text).items():
        known = unigram_baselines(replace(data, corpus=text.train)) if tables else None
        results[name] = evaluate(model, data, np.random.default_rng(GAPS_SEED), most, known)
    return results


def baseline_losses(
    run: Run, text: EncodedText, most: int | None = None
) -> dict[str, dict[str, float]]:
    """What the two tables without context reach on the tokens that `held_out_metrics` scores, and
    how many tokens these are (`tokens`). No model is needed."""
    results = {}
    for name, data in held_out_data(run, text).items():
        batches = islice(data.epoch(np.random.default_rng(GAPS_SEED)), most)
        positions, ids = map(np.concatenate, zip(*map(masked_tokens, batches), strict=True))
        tables = unigram_baselines(replace(data, corpus=text.train))
        results[name] = tables.losses(positions, ids) | {"tokens": len(ids)}
    return results


def held_out_data(run: Run, text: EncodedText) -> dict[str, PretrainingData]:
    """The held-out blocks under each way of choosing, every chosen token replaced by [MASK]; of a
    mixture also under the ways of its parts that are neither of the two."""
    objective = objective_or_mixture(run.objective)
    unpaired = tuple(task for task in objective.tasks if not task.paired)
    ways: dict[str, MaskingScheme] = {"token": TokenMasking(), "span": SpanMasking()}
    parts = objective.parts if isinstance(objective, Mixture) else {}
    ways |= {n: part.masking for n, part in parts.items() if part.masking not in ways.values()}
    objectives = {name: Objective(masking, "token", unpaired) for name, masking in ways.items()}
    if unpaired != objective.tasks:
        objectives["pairs"] = Objective(TokenMasking(), "token", objective.tasks)
    shape = run.max_length, run.batch_size
    return {
        name: PretrainingData(text.held_out, text.wordpiece, way.mask_only, *shape)
        for name, way in objectives.items()
    }
