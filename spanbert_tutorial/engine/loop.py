"""One training loop for everything in this book, on Hugging Face Accelerate. Chapter:
`book/spanbert/pretraining_spanbert`.

The loop assumes only one thing about the model: called with a batch (a dict of tensors), it returns
a dict of losses, and `loss` is the one to minimize. Recipe: BERT §A.2 (AdamW, linear warm-up and
decay, no weight decay on biases and LayerNorm), with the second Adam beta of RoBERTa, which suits
short runs.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from spanbert_tutorial.engine.keeping import Keeper, finishing_the_step, progress_bar, show
from spanbert_tutorial.engine.metrics import History
from spanbert_tutorial.engine.processes import keep_freed_memory, precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.engine.states import Stateful
from spanbert_tutorial.errors import InputError

Batch = dict[str, Tensor]
SKIPPED = 50  # steps in a row whose gradient overflows in fp16 before a run gives up


@dataclass(frozen=True)
class Recipe:
    """How to train. The learning rate reaches its peak after `warmup_steps` and falls linearly to 0
    at `steps`. accumulate: batches per step, whose gradients are averaged, for steps that do not
    fit into memory."""

    steps: int
    peak_learning_rate: float
    warmup_steps: int
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    accumulate: int = 1


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weight decay for matrices only, not for biases and LayerNorm (all one-dimensional)."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.dim() > 1]
    vectors = [p for p in parameters if p.dim() <= 1]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def train(
    model: nn.Module,
    batches: Iterable[Batch],
    recipe: Recipe,
    reference: float | None = None,
    snapshots: Snapshots | None = None,
    held_out: Callable[[], dict[str, float]] | None = None,
) -> History:
    """Trains `model` in place for `recipe.steps` steps, each of `recipe.accumulate` batches, and
    returns the history.

    reference: a loss to show next to the current one, e.g. the unigram entropy. snapshots: where to
    keep the state, from which the same call resumes bit for bit after it was stopped; `batches`
    then needs `state_dict` and `load_state_dict` (`batches.Batches` has them). held_out: computes
    held-out metrics, kept now and then next to the losses (with snapshots only).

    Several processes average their gradients and losses: `batches` then has to give each its part
    of a batch, with losses scaled so that their mean over the processes is that of the whole batch.

    Raises InputError when the batches end early, and FloatingPointError naming the step when the
    loss or the gradient is not finite (the weights are then those of the step before), or when the
    weights are not finite at the end or before a snapshot. A snapshot never holds such weights.
    """
    trainer = Trainer(model, recipe)
    history = History()
    keeper = Keeper(trainer, history, recipe.steps)
    if snapshots is not None:
        keeper.resume(snapshots, cast(Stateful, batches), held_out)
    stream = iter(batches)
    with (
        trainer.training(),
        progress_bar(recipe.steps, history.done) as bar,
        finishing_the_step(snapshots is not None) as asked_to_stop,
    ):
        for step in range(history.done + 1, recipe.steps + 1):
            drawn = draw(batches, stream, recipe, step)
            history.add(step, trainer.step(drawn, step))
            show(bar, history, reference, trainer.tokens)
            keeper.after_step(step, asked_to_stop)
    return history


def draw(
    batches: Iterable[Batch], stream: Iterator[Batch], recipe: Recipe, step: int
) -> list[tuple[Batch, str]]:
    """The batches of a step from `stream`, each with its position in the data for messages, where
    `batches` knows it. Raises InputError when they end early."""
    drawn = [(batch, getattr(batches, "place", "")) for batch in islice(stream, recipe.accumulate)]
    if len(drawn) < recipe.accumulate:
        raise InputError(
            f"the batches ended at step {step - 1} of {recipe.steps}: give more text or fewer steps."
        )
    return drawn


class Trainer:
    """Model, optimizer and schedule on the device of this process. `tokens` counts the tokens seen
    since `began`; `before` has the tokens and seconds of earlier parts of the run."""

    def __init__(self, model: nn.Module, recipe: Recipe):
        processes()  # before the accelerator, which would choose the device by itself
        keep_freed_memory()
        self.accelerator = Accelerator(mixed_precision=precision())
        groups = parameter_groups(model, recipe.weight_decay)
        optimizer = torch.optim.AdamW(
            groups,
            lr=recipe.peak_learning_rate,
            betas=recipe.betas,
            eps=recipe.epsilon,
            fused=True,  # one kernel for all weights
        )
        self.schedule = get_linear_schedule_with_warmup(
            optimizer, recipe.warmup_steps, recipe.steps
        )
        self.bare = model
        self.home = next(model.parameters()).device
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.clip_norm = recipe.clip_norm
        self.skipped = 0
        self.before = (0, 0.0)
        self.tokens = 0
        self.began = time.monotonic()

    @contextmanager
    def training(self) -> Iterator[None]:
        """While this is open the model is in training mode. Afterwards, whatever happens, it is in
        evaluation mode, in float32, and on the device that it came from."""
        self.model.train()
        try:
            yield
        finally:
            # back to float32, also in a second training of the same model
            self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)
            vars(self.bare).pop("_is_accelerate_prepared", None)
            self.bare.zero_grad()  # what an interrupted step has left
            self.bare.eval()
            self.bare.to(self.home)

    def step(self, batches: list[tuple[Batch, str]], number: int) -> dict[str, float]:
        """One step; returns its losses, averaged over batches and processes. number, and the string
        that comes with each batch, say where it failed."""
        losses: list[dict[str, float]] = []
        for batch, position in batches:
            last = len(losses) == len(batches) - 1
            # the processes exchange gradients once per step
            with nullcontext() if last else self.accelerator.no_sync(self.model):
                where = f"at step {number}{position}"
                losses.append(self.gradients(batch, 1 / len(batches), where))
        self.update(where if len(batches) == 1 else f"at step {number}")
        return averaged(losses)

    def gradients(self, batch: Batch, part: float, where: str) -> dict[str, float]:
        """Adds `part` times the gradients of a batch; returns its losses, averaged over the
        processes."""
        device = self.accelerator.device
        losses = self.model({name: value.to(device) for name, value in batch.items()})
        values = {
            name: self.accelerator.reduce(loss.detach(), "mean").item()
            for name, loss in losses.items()
        }
        if not math.isfinite(values["loss"]):
            raise FloatingPointError(what_went_wrong(values, where, batch, self.bare))
        self.accelerator.backward(losses["loss"] * part if part < 1 else losses["loss"])
        seen = batch["attention_mask"].sum() if "attention_mask" in batch else torch.tensor(0)
        self.tokens += int(self.accelerator.reduce(seen.to(device), "sum").item())
        return values

    def update(self, where: str) -> None:
        """One step of the optimizer. In fp16 a gradient that overflows is skipped, and the scaler
        lowers its factor; otherwise, or when that does not help, the run ends before the weights
        are damaged."""
        norm = float(self.accelerator.clip_grad_norm_(self.model.parameters(), self.clip_norm))
        self.skipped = 0 if math.isfinite(norm) else self.skipped + 1
        if self.skipped > (0 if self.accelerator.scaler is None else SKIPPED):
            raise FloatingPointError(
                f"the gradient's norm is {norm} {where}: lower the peak learning rate."
            )
        self.optimizer.step()
        # accelerate's own flag does not see a skipped step: the fused AdamW skips in its kernel
        if not self.skipped:
            self.schedule.step()
        self.optimizer.zero_grad()

    def check_weights(self, step: int) -> None:
        """Raises FloatingPointError when this step left weights that are not finite: its loss was
        finite, but the step itself can be too long."""
        name = first_not_finite(self.bare)
        if name:
            raise FloatingPointError(
                f"after step {step} the weights are not finite (first {name}): lower the peak "
                "learning rate."
            )

    def parts(self) -> dict[str, Stateful]:
        """What a snapshot keeps of the training; in fp16 also the scaler of the loss."""
        parts: dict[str, Stateful] = {
            "model": self.bare,
            "optimizer": self.optimizer,
            "schedule": self.schedule,
        }
        if self.accelerator.scaler is not None:
            parts["scaler"] = self.accelerator.scaler
        return parts

    def taken(self) -> tuple[int, float]:
        """Tokens and seconds of the run so far, including its earlier parts."""
        return self.before[0] + self.tokens, self.before[1] + time.monotonic() - self.began


def averaged(losses: Sequence[dict[str, float]]) -> dict[str, float]:
    """The means over batches; of a loss that some batches lack, over those that have it."""
    names = dict.fromkeys(name for values in losses for name in values)
    found = {name: [values[name] for values in losses if name in values] for name in names}
    return {name: sum(values) / len(values) for name, values in found.items()}


def what_went_wrong(losses: dict[str, float], where: str, batch: Batch, model: nn.Module) -> str:
    """Step, batch and likely cause of a loss that is not finite. where: step and position in the
    data."""
    inputs = tuple(next(iter(batch.values())).shape)
    loss = f"the loss is {losses['loss']} {where} (inputs {inputs})"
    name = first_not_finite(model)
    if name:
        return (
            f"{loss}: the weights are not finite (first {name}). At the first step, the checkpoint "
            "is broken: take another one. Later, an earlier step was too long: lower the peak "
            "learning rate."
        )
    return (
        f"{loss}: the weights are finite, this batch overflows: look at it, or lower the peak "
        "learning rate."
    )


def first_not_finite(model: nn.Module) -> str:
    """Name of the first weight that is infinite or NaN, "" if there is none."""
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            return name
    return ""
