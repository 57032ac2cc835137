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

from spanbert_tutorial.engine.ahead import drawn_ahead
from spanbert_tutorial.engine.keeping import Keeper, finishing_the_step, progress_bar, show
from spanbert_tutorial.engine.metrics import History
from spanbert_tutorial.engine.processes import keep_freed_memory, precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.engine.states import Stateful
from spanbert_tutorial.errors import InputError

Batch = dict[str, Tensor]
SKIPPED = 50  # steps in a row whose gradient overflows in fp16 before a run gives up
READ_EVERY = 10  # steps on a graphics card between two readings, as many as a line of metrics has
LONGEST = 1.0  # seconds between two readings, where steps are so slow that waiting costs nothing


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

    On a graphics card the losses of several steps are read together, because reading waits for the
    card (`Trainer`), and the batches are drawn ahead (`ahead`).

    Raises InputError when the batches end early, and FloatingPointError naming the step when the
    loss or the gradient is not finite (the weights are then those of the step before), or when the
    weights are not finite at the end or before a snapshot. A snapshot never holds such weights.
    """
    trainer = Trainer(model, recipe)
    history = History()
    keeper = Keeper(trainer, history, recipe.steps)
    with drawn_ahead(batches, trainer.device) as source:
        if snapshots is not None:
            keeper.resume(snapshots, cast(Stateful, source), held_out)
        stream = iter(source)
        with (
            trainer.training(),
            progress_bar(recipe.steps, history.done) as bar,
            finishing_the_step(snapshots is not None) as asked_to_stop,
        ):
            for step in range(history.done + 1, recipe.steps + 1):
                trainer.step(draw(source, stream, recipe, step), step)
                if trainer.reading_due(step, asked_to_stop()):
                    for number, losses in trainer.read():
                        history.add(number, losses)
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


@dataclass(frozen=True)
class Passed:
    """A batch that has gone through the model. Its losses wait on the device until they are read.
    names, losses: [k] each; inputs: their shape; seen: its tokens."""

    position: str
    inputs: tuple[int, ...]
    names: tuple[str, ...]
    losses: Tensor
    seen: Tensor


@dataclass(frozen=True)
class Taken:
    """A step whose losses and gradient's norm wait on the device."""

    number: int
    batches: list[Passed]
    norm: Tensor


class Trainer:
    """Model, optimizer and schedule on the device of this process. `tokens` counts the tokens seen
    since `began`; `before` has the tokens and seconds of earlier parts of the run.

    A graphics card computes while this process already prepares what comes next, until the process
    looks at a number: then it waits. So `step` looks at none, and `read` looks at those of several
    steps at once. Between them, `spoiled` on the device keeps the optimizer from changing the
    weights after a loss or gradient that is not finite.
    """

    def __init__(self, model: nn.Module, recipe: Recipe):
        processes()  # before the accelerator, which would choose the device by itself
        keep_freed_memory()
        self.accelerator = Accelerator(mixed_precision=precision())
        self.device = self.accelerator.device
        groups = parameter_groups(model, recipe.weight_decay)
        self.adamw = torch.optim.AdamW(
            groups,
            lr=recipe.peak_learning_rate,
            betas=recipe.betas,
            eps=recipe.epsilon,
            fused=True,  # one kernel for all weights
        )
        self.schedule = get_linear_schedule_with_warmup(
            self.adamw, recipe.warmup_steps, recipe.steps
        )
        self.bare = model
        self.home = next(model.parameters()).device
        self.model, self.optimizer = self.accelerator.prepare(model, self.adamw)
        self.clip_norm = recipe.clip_norm
        self.steps = recipe.steps
        self.read_every = steps_between_readings(self.device)
        self.read_at = time.monotonic()
        self.taken_steps: list[Taken] = []
        self.spoiled = torch.zeros((), dtype=torch.bool, device=self.device)
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

    def step(self, batches: list[tuple[Batch, str]], number: int) -> None:
        """One step, which does not wait for a graphics card; `read` returns its losses. number, and
        the string that comes with each batch, say where it failed."""
        passed: list[Passed] = []
        for batch, position in batches:
            last = len(passed) == len(batches) - 1
            # the processes exchange gradients once per step
            with nullcontext() if last else self.accelerator.no_sync(self.model):
                passed.append(self.gradients(batch, 1 / len(batches), position))
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.taken_steps.append(Taken(number, passed, norm))
        self.update(self.taken_steps[-1])

    def gradients(self, batch: Batch, part: float, position: str) -> Passed:
        """Adds `part` times the gradients of a batch."""
        inputs = tuple(next(iter(batch.values())).shape)
        seen = batch["attention_mask"].sum() if "attention_mask" in batch else torch.tensor(0)
        losses = self.model(on_device(batch, self.device))
        self.accelerator.backward(losses["loss"] * part if part < 1 else losses["loss"])
        # a copy: a CUDA graph writes its next losses to the same memory
        kept = torch.stack([loss.detach() for loss in losses.values()])
        self.spoiled = self.spoiled | ~losses["loss"].detach().isfinite()
        return Passed(position, inputs, tuple(losses), kept, seen)

    def update(self, step: Taken) -> None:
        """One step of the optimizer, which leaves the weights alone after anything that is not
        finite. In fp16 a gradient that overflows is skipped, and the scaler lowers its factor; when
        that does not help, the run ends."""
        if self.accelerator.scaler is None:
            self.spoiled = self.spoiled | ~step.norm.isfinite()
            # where this is 1 the fused kernel does nothing
            self.adamw.found_inf = self.spoiled.float()  # type: ignore[attr-defined]
        else:  # waits: the schedule counts no step that was skipped
            self.skipped = 0 if math.isfinite(step.norm.item()) else self.skipped + 1
            if self.skipped > SKIPPED:
                raise FloatingPointError(norm_not_finite(step))
        self.optimizer.step()
        # accelerate's own flag does not see a skipped step: the fused AdamW skips in its kernel
        if not self.skipped:
            self.schedule.step()
        self.optimizer.zero_grad()

    def reading_due(self, step: int, asked_to_stop: bool) -> bool:
        """Whether the losses are to be read after this step. Several processes read at the same
        steps, because they exchange what they read."""
        if step % self.read_every == 0 or step == self.steps:
            return True
        alone = processes().num_processes == 1
        return alone and (asked_to_stop or time.monotonic() - self.read_at > LONGEST)

    def read(self) -> list[tuple[int, dict[str, float]]]:
        """Waits for the steps since the last reading. Returns their numbers and losses, averaged
        over batches and processes.

        Raises FloatingPointError naming the first step whose loss or gradient is not finite; the
        weights are then those of the step before.
        """
        steps = self.taken_steps
        self.taken_steps = []
        passed = [batch for step in steps for batch in step.batches]
        losses = self.accelerator.reduce(torch.cat([batch.losses for batch in passed]), "mean")
        norms = torch.stack([step.norm.to(losses) for step in steps])
        numbers = iter(torch.cat([losses, norms]).tolist())  # here it waits
        found = [[{name: next(numbers) for name in b.names} for b in s.batches] for s in steps]
        for step, values in zip(steps, found, strict=True):
            self.check(step, values, next(numbers))
        seen = torch.tensor(sum(int(batch.seen) for batch in passed), device=self.device)
        self.tokens += int(self.accelerator.reduce(seen, "sum"))
        self.read_at = time.monotonic()
        return [(step.number, averaged(v)) for step, v in zip(steps, found, strict=True)]

    def check(self, step: Taken, losses: list[dict[str, float]], norm: float) -> None:
        """Raises FloatingPointError when a loss of the step, or its gradient, is not finite."""
        for batch, values in zip(step.batches, losses, strict=True):
            if not math.isfinite(values["loss"]):
                where = f"at step {step.number}{batch.position} (inputs {batch.inputs})"
                raise FloatingPointError(what_went_wrong(values["loss"], where, self.bare))
        if self.accelerator.scaler is None and not math.isfinite(norm):
            raise FloatingPointError(norm_not_finite(step))

    def mean(self, number: float) -> float:
        """The mean of a number over the processes."""
        return self.accelerator.reduce(torch.tensor(number).to(self.device), "mean").item()

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


def steps_between_readings(device: torch.device) -> int:
    """After how many steps the losses are read: each step where nothing waits for it, as on a CPU,
    or where it waits anyway, as in fp16."""
    return 1 if device.type == "cpu" or precision() == "fp16" else READ_EVERY


def on_device(batch: Batch, device: torch.device) -> Batch:
    """The batch on the device. To a graphics card it goes from pinned memory, which needs no
    waiting."""
    if device.type == "cuda":
        batch = {name: v if v.is_cuda else v.pin_memory() for name, v in batch.items()}
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}


def averaged(losses: Sequence[dict[str, float]]) -> dict[str, float]:
    """The means over batches; of a loss that some batches lack, over those that have it."""
    names = dict.fromkeys(name for values in losses for name in values)
    found = {name: [values[name] for values in losses if name in values] for name in names}
    return {name: sum(values) / len(values) for name, values in found.items()}


def norm_not_finite(step: Taken) -> str:
    """What to say of a gradient that is not finite."""
    position = step.batches[0].position if len(step.batches) == 1 else ""
    return (
        f"the gradient's norm is {step.norm.item()} at step {step.number}{position}: lower the peak "
        "learning rate."
    )


def what_went_wrong(loss: float, where: str, model: nn.Module) -> str:
    """Step, batch and likely cause of a loss that is not finite. where: step, position in the data
    and shape of the inputs."""
    name = first_not_finite(model)
    if name:
        return (
            f"the loss is {loss} {where}: the weights are not finite (first {name}). At the first "
            "step, the checkpoint is broken: take another one. Later, an earlier step was too "
            "long: lower the peak learning rate."
        )
    return (
        f"the loss is {loss} {where}: the weights are finite, this batch overflows: look at it, or "
        "lower the peak learning rate."
    )


def first_not_finite(model: nn.Module) -> str:
    """Name of the first weight that is infinite or NaN, "" if there is none."""
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            return name
    return ""
