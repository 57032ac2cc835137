"""One training loop for everything in this book, on Hugging Face Accelerate. Chapter:
`book/spanbert/pretraining_spanbert`.

The loop knows nothing of the model but this: called with a batch (a dict of tensors) it returns a
dict of losses whose `loss` is the one to minimize. Recipe: BERT §A.2 (AdamW, linear warm-up and
decay, weight decay not on biases and LayerNorm), with the second Adam beta of RoBERTa, which suits
short runs.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice

import torch
from accelerate import Accelerator
from torch import nn
from transformers import get_linear_schedule_with_warmup

from spanbert_tutorial.engine.keeping import Keeper
from spanbert_tutorial.engine.processes import keep_freed_memory, precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError

SKIPPED = 50  # steps one after another whose gradient overflows in fp16, before a run gives up


@dataclass(frozen=True)
class Recipe:
    """How to train. peak_learning_rate is reached after `warmup_steps` and falls linearly to 0 at
    `steps`. accumulate: batches of a step, whose gradients are averaged, for steps larger than the
    memory."""

    steps: int
    peak_learning_rate: float
    warmup_steps: int
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-6
    clip_norm: float = 1.0
    accumulate: int = 1


@dataclass
class History:
    """What a run left: the numbers of its steps, and for each step the losses by name (nats). A
    long run that was stopped and went on has only the last steps of the parts before."""

    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)

    def add(self, step: int, losses: dict[str, float]) -> None:
        self.steps.append(step)
        for name, value in losses.items():
            self.losses.setdefault(name, []).append(value)

    @property
    def done(self) -> int:
        """Steps of the run so far."""
        return self.steps[-1] if self.steps else 0

    def mean(self, name: str, last: int) -> float:
        """Mean of the last `last` values of a loss: single batches are noisy."""
        values = self.losses[name][-last:]
        return sum(values) / len(values)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight decay on matrices only: biases and LayerNorm (all one-dimensional) go without."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.dim() > 1]
    vectors = [p for p in parameters if p.dim() <= 1]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def train(
    model: nn.Module,
    batches: Iterable[dict],
    recipe: Recipe,
    reference: float | None = None,
    snapshots: Snapshots | None = None,
    held_out: Callable[[], dict[str, float]] | None = None,
) -> History:
    """Trains `model` in place for `recipe.steps` steps, each of `recipe.accumulate` batches, and
    returns the history.

    reference: a loss to show beside the current one, e.g. the unigram entropy. snapshots: where to
    keep the state, from which the same call goes on bit for bit after it was stopped; `batches`
    then needs `state_dict` and `load_state_dict` (`batches.Batches` has them). held_out: figures of
    held-out text, kept now and then beside the losses (with snapshots only). Raises InputError when
    the batches end early, and FloatingPointError naming the step when the loss or the gradient is
    not a number (the weights are then those of the step before) or the weights are not after the
    last step. Such weights are never kept in a snapshot.
    """
    trainer = Trainer(model, recipe)
    history = History()
    keeper = Keeper(trainer, history, recipe.steps, reference)
    if snapshots is not None:
        keeper.go_on(snapshots, batches, held_out)
    stream = iter(batches)
    with trainer.training(), keeper.watching():
        for step in range(history.done + 1, recipe.steps + 1):
            drawn = draw(batches, stream, recipe, step)
            history.add(step, trainer.step(drawn, step))
            keeper.note(step)
    return history


def draw(
    batches: Iterable[dict], stream: Iterator[dict], recipe: Recipe, step: int
) -> list[tuple[dict, str]]:
    """The batches of a step from `stream`, and beside each its place in the data, where `batches`
    knows it. Raises InputError when they end early."""
    drawn = [(batch, getattr(batches, "place", "")) for batch in islice(stream, recipe.accumulate)]
    if len(drawn) < recipe.accumulate:
        raise InputError(
            f"the batches ended at step {step - 1} of {recipe.steps}: give more text or fewer "
            f"steps."
        )
    return drawn


class Trainer:
    """Model, optimizer and schedule on the device of this process; `tokens` counts what they have
    seen since `began`, `before` is what earlier parts of the run took."""

    def __init__(self, model: nn.Module, recipe: Recipe):
        processes()  # before the accelerator, which would choose by itself
        keep_freed_memory()
        self.accelerator = Accelerator(mixed_precision=precision())
        groups = parameter_groups(model, recipe.weight_decay)
        how = {
            "betas": recipe.betas,
            "eps": recipe.epsilon,
            "fused": True,
        }  # one kernel for all weights
        optimizer = torch.optim.AdamW(groups, lr=recipe.peak_learning_rate, **how)
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
        """While this is open the model trains; afterwards, whatever happens, it is as it was made:
        in float32, and on the device that it came from, where the tensors of whoever reads it
        are."""
        self.model.train()
        try:
            yield
        finally:
            self.accelerator.unwrap_model(
                self.model, keep_fp32_wrapper=False
            )  # from here on it computes in float32
            vars(self.bare).pop(
                "_is_accelerate_prepared", None
            )  # or a second training would do so, too
            self.bare.zero_grad()  # what a broken step has left
            self.bare.eval()
            self.bare.to(self.home)

    def step(self, batches: list[tuple[dict, str]], number: int) -> dict[str, float]:
        """One step; returns its losses, the means over batches and processes. number, and beside
        each batch its place in the data: for the message on failure."""
        losses: list[dict[str, float]] = []
        for batch, place in batches:
            last = len(losses) == len(batches) - 1
            with (
                nullcontext() if last else self.accelerator.no_sync(self.model)
            ):  # processes meet once a step
                losses.append(self.gradients(batch, 1 / len(batches), f"at step {number}{place}"))
        self.update(f"at step {number}{place if len(batches) == 1 else ''}")
        return {name: sum(values[name] for values in losses) / len(losses) for name in losses[0]}

    def gradients(self, batch: dict, part: float, where: str) -> dict[str, float]:
        """Adds `part` of the gradients of a batch; returns its losses, of several processes their
        means."""
        losses = self.model(
            {name: value.to(self.accelerator.device) for name, value in batch.items()}
        )
        values = {
            name: self.accelerator.reduce(loss.detach(), "mean").item()
            for name, loss in losses.items()
        }
        if not math.isfinite(values["loss"]):
            raise FloatingPointError(what_went_wrong(values, where, batch, self.bare))
        self.accelerator.backward(losses["loss"] * part if part < 1 else losses["loss"])
        seen = batch["attention_mask"].sum() if "attention_mask" in batch else torch.tensor(0)
        self.tokens += int(self.accelerator.reduce(seen.to(self.accelerator.device), "sum").item())
        return values

    def update(self, where: str) -> None:
        """One step along the gradients. In fp16 a gradient that overflows is passed over, and the
        scaler lowers its factor; elsewhere, or when that does not help, the run ends before the
        weights are spoilt."""
        norm = float(self.accelerator.clip_grad_norm_(self.model.parameters(), self.clip_norm))
        self.skipped = 0 if math.isfinite(norm) else self.skipped + 1
        if self.skipped > (0 if self.accelerator.scaler is None else SKIPPED):
            raise FloatingPointError(
                f"the gradient's norm is {norm} {where}: lower the peak learning rate."
            )
        self.optimizer.step()
        if (
            not self.skipped
        ):  # accelerate's own flag does not see it: the fused AdamW passes over inside its kernel
            self.schedule.step()
        self.optimizer.zero_grad()

    def check_weights(self, step: int) -> None:
        """Raises FloatingPointError, before anything is kept, when this step left weights that are
        no numbers: its loss was still one, but a step can be too long."""
        lost = first_lost(self.bare)
        if lost:
            raise FloatingPointError(
                f"after step {step} the weights hold no numbers (first {lost}): lower the peak "
                "learning rate."
            )

    def parts(self) -> dict[str, object]:
        """What a snapshot keeps of it; in fp16 also the factor of the loss."""
        parts = {"model": self.bare, "optimizer": self.optimizer, "schedule": self.schedule}
        return (
            parts
            if self.accelerator.scaler is None
            else parts | {"scaler": self.accelerator.scaler}
        )

    def taken(self) -> tuple[int, float]:
        """Tokens and seconds of the run so far, earlier parts included."""
        return self.before[0] + self.tokens, self.before[1] + time.monotonic() - self.began


def what_went_wrong(losses: dict[str, float], where: str, batch: dict, model: nn.Module) -> str:
    """Step, batch and the likely cause of a loss that is not a number. where: step and place in the
    data."""
    found = (
        f"the loss is {losses['loss']} {where} (inputs {tuple(next(iter(batch.values())).shape)})"
    )
    lost = first_lost(model)
    if lost:
        return (
            f"{found}: the weights hold no numbers (first {lost}). At the first step that means "
            f"they came so: "
            "take another checkpoint. Later, an earlier step was too long: lower the peak "
            "learning rate."
        )
    return (
        f"{found}: the weights are finite, this batch overflows: look at it, or lower the "
        f"peak learning rate."
    )


def first_lost(model: nn.Module) -> str:
    """Name of the first weight that is infinite or no number, "" where there is none."""
    return next(
        (name for name, weight in model.named_parameters() if not weight.isfinite().all()), ""
    )
