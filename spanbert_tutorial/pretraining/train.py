"""The training loop of everything in this book, pre-training and
fine-tuning. Chapter: `book/bert/pretraining`, which shows `train`.

Called with a batch (a dict of tensors) the model returns its losses in
nats by name; "loss" is the one to minimize. Several processes average
their gradients and losses: `batches` gives each its part of a batch.
Recipe: BERT §A.2, with the second Adam beta of RoBERTa, which suits
short runs. What a long run adds are hooks: `engine`.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from spanbert_tutorial.engine.device import (
    check_weights,
    detached,
    new_accelerator,
    restored,
    send,
    skips_overflows,
)
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.hooks import Hook

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    The learning rate rises for `warmup_steps`, then falls linearly to
    0 at `steps`. accumulate: batches a step, whose gradients are
    averaged, for steps that do not fit into memory. log_every: steps
    between two looks at the losses; each look waits for the GPU."""

    steps: int
    peak_learning_rate: float
    warmup_steps: int
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    accumulate: int = 1
    log_every: int = 1


@dataclass
class TrainingState:
    """A run on its way: what a hook may show, keep or restore."""

    config: TrainingConfig
    model: nn.Module
    optimizer: Any
    schedule: Any
    batches: Any
    history: History = field(default_factory=History)


class Unread(NamedTuple):
    """Losses of a step's batches and its gradient's norm, on the
    device."""

    step: int
    losses: list[Batch]
    norm: Tensor


def adamw(model: nn.Module, config: TrainingConfig) -> AdamW:
    """The optimizer: no weight decay on biases and LayerNorm."""
    weights = [w for w in model.parameters() if w.requires_grad]
    matrices = [w for w in weights if w.dim() > 1]
    vectors = [w for w in weights if w.dim() < 2]
    return AdamW(
        [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=config.peak_learning_rate,
        betas=config.betas,
        eps=config.epsilon,
        fused=True,  # one kernel for all weights
    )


def linear_schedule(
    optimizer: AdamW, config: TrainingConfig
) -> LambdaLR:
    """The learning rate rises to its peak, then falls to 0."""
    warmup, steps = config.warmup_steps, config.steps

    def share(step: int) -> float:  # of the peak
        if step < warmup:
            return step / warmup
        return (steps - step) / max(1, steps - warmup)

    return LambdaLR(optimizer, share)


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    config: TrainingConfig,
    hooks: Sequence[Hook] = (),
) -> History:
    """Trains `model` in place; returns the losses of its steps.

    Raises FloatingPointError, naming the step, where loss, gradient
    or weights are not finite; after a bad loss or gradient the weights
    are those of the step before."""
    accelerator = new_accelerator()
    optimizer: Any = adamw(model, config)
    schedule = linear_schedule(optimizer, config)
    with restored(model, accelerator):
        net, wrapped = accelerator.prepare(model, optimizer)
        state = TrainingState(config, model, wrapped, schedule, batches)
        for hook in hooks:
            hook.on_start(state)  # a snapshot is restored here

        stream = iter(batches)
        failed = torch.zeros((), device=accelerator.device)
        unread: list[Unread] = []
        for step in range(state.history.done + 1, config.steps + 1):
            passed = []
            for part in range(config.accumulate):
                batch = send(next(stream, None), accelerator.device)
                last = part == config.accumulate - 1
                # processes exchange gradients once a step
                quiet = accelerator.no_sync(net)
                with nullcontext() if last else quiet:
                    losses = net(batch)
                    loss = losses["loss"] / config.accumulate
                    accelerator.backward(loss)
                passed.append(detached(losses))
            norm = accelerator.clip_grad_norm_(
                net.parameters(), config.clip_norm
            )
            # with fp16, the scaler skips such steps itself
            if accelerator.scaler is None:
                looked = [norm, *(losses["loss"] for losses in passed)]
                bad = ~torch.stack(looked).isfinite().all()
                failed = torch.maximum(failed, bad.float())
                # where it is 1, the fused kernel changes nothing
                optimizer.found_inf = failed
            wrapped.step()
            schedule.step()
            wrapped.zero_grad()

            unread.append(Unread(step, passed, norm))
            if step % config.log_every == 0 or step == config.steps:
                # the only place that waits for the GPU
                for number, means in read(unread, accelerator):
                    state.history.add(number, means)
                unread = []
                for hook in hooks:
                    hook.on_log(state)
        check_weights(model, config.steps)
    return state.history


def read(
    unread: Sequence[Unread], accelerator: Accelerator
) -> list[tuple[int, dict[str, float]]]:
    """Each step's losses, means over its batches and the processes."""
    batches = [batch for one in unread for batch in one.losses]
    waiting = [loss for batch in batches for loss in batch.values()]
    waiting += [one.norm for one in unread]
    numbers = accelerator.reduce(torch.stack(waiting), "mean").tolist()
    values, norms = iter(numbers), numbers[-len(unread) :]
    steps = []
    for one, norm in zip(unread, norms, strict=True):
        losses = [{k: next(values) for k in b} for b in one.losses]
        checked = [batch["loss"] for batch in losses]
        if not skips_overflows(accelerator):
            checked.append(norm)
        if not all(map(math.isfinite, checked)):
            raise FloatingPointError(
                f"step {one.step}: losses {losses}, norm of the "
                f"gradient {norm}. In the first step, look at the "
                "weights it starts from and at the batch; later, lower "
                "the peak learning rate."
            )
        steps.append((one.step, means_of(losses)))
    return steps


def means_of(losses: list[dict[str, float]]) -> dict[str, float]:
    """Means over batches; of a loss that some lack, over the others."""
    means = {}
    for name in dict.fromkeys(name for one in losses for name in one):
        values = [one[name] for one in losses if name in one]
        means[name] = sum(values) / len(values)
    return means
