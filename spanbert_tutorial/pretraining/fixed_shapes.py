"""Batches of one shape, and a model compiled for it: faster steps on a graphics card. Page:
`book/workshop/engine`.

`torch.compile` makes one program for each shape that it meets, of few large kernels, and records it
as a CUDA graph, which the card repeats without being told each kernel. So inputs are padded to the
maximum length, and targets to a fixed number. What is added has no loss: its targets are −100,
which the cross-entropy passes over, and the means are over the real ones.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.pretraining.batches import INPUTS, Batches, Interleaved, target_columns
from spanbert_tutorial.pretraining.presets import Run


def compiling_pays(run: Run) -> bool:
    """Whether a run is compiled by default: on a graphics card that `torch.compile` knows, from the
    size mini on."""
    known = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (7, 0)
    return known and importlib.util.find_spec("triton") is not None and run.size != "tiny"


def with_fixed_shapes(batches: Batches | Interleaved) -> Batches | Interleaved:
    """The same batches with the same draws, from here on padded. The last batch of an epoch keeps
    its number of rows, so there are two shapes for each objective."""
    for source in batches.parts.values() if isinstance(batches, Interleaved) else (batches,):
        data = source.data
        targets = data.objective.masking.budget(data.max_length) + 1  # ⌈⌉ in each of two segments
        source.ready = partial(padded, length=data.max_length, targets=targets)
    return batches


def padded(batch: dict[str, Tensor], length: int, targets: int) -> dict[str, Tensor]:
    """A batch with inputs of `length` and room for `targets` masked tokens a row, and for as many
    targets of each auxiliary objective, with the numbers of real ones, `masked_count` and
    `NAME_count`, beside them."""
    rows, n = batch["input_ids"].shape
    fixed = dict(batch)
    for name in (*INPUTS, "labels"):
        value = NO_TARGET if name == "labels" else 0
        fixed[name] = F.pad(batch[name], (0, length - n), value=value)
    positions = batch["masked_positions"] // n * length + batch["masked_positions"] % n
    # what is added reads [CLS] of all rows in turn: one row alone would gather all their gradients
    added = added_rows(rows, targets, len(positions))
    fixed["masked_positions"] = torch.cat([positions, added * length])
    fixed.setdefault("masked_count", torch.tensor(float(max(len(positions), 1))))
    for kind, names in target_columns(batch).items():
        real = len(batch[f"{kind}_batch"])
        added = added_rows(rows, targets, real)
        for name in names:
            value = NO_TARGET if name == f"{kind}_labels" else 0
            empty = batch[name].new_full((len(added), *batch[name].shape[1:]), value)
            fixed[name] = torch.cat([batch[name], empty])
        fixed[f"{kind}_batch"][real:] = added
        fixed.setdefault(f"{kind}_count", torch.tensor(float(max(real, 1))))
    return fixed


def added_rows(rows: int, targets: int, real: int) -> Tensor:
    """The rows of targets that are added to the real ones, to `targets` for each row, or to the
    first multiple of that which is enough."""
    usual = rows * targets
    return torch.arange(usual * max(1, -(-real // usual)) - real) % rows


@contextmanager
def compiled(model: nn.Module, run: Run, **options: Any) -> Iterator[None]:
    """While this is open, the model's losses and their gradients are compiled. options: of
    `torch.compile`; by default it records CUDA graphs where a step is one batch of one process. A
    graph writes the gradients of the next batch over those of the last, which must not be in use
    any more."""
    alone = run.accumulate == 1 and processes().num_processes == 1
    options = options or {"mode": "reduce-overhead" if alone else "default"}
    model.forward = torch.compile(model.forward, dynamic=False, **options)
    try:
        yield
    finally:
        del model.forward  # that of its class again
