"""One training loop for everything in this book, on Hugging Face Accelerate. Chapter:
`book/spanbert/pretraining_spanbert`.

The loop knows nothing of the model but this: called with a batch (a dict of tensors) it returns a dict of losses whose
`loss` is the one to minimise. Recipe: BERT §A.2 (AdamW, linear warm-up and decay, weight decay not on biases and
LayerNorm), with the second Adam beta of RoBERTa, which suits short runs.
"""

import ctypes
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

import torch
from accelerate import Accelerator, PartialState
from torch import nn
from tqdm import tqdm
from transformers import get_linear_schedule_with_warmup

from spanbert_tutorial.engine.metrics import Metrics
from spanbert_tutorial.engine.snapshots import Snapshots, one_says, together
from spanbert_tutorial.errors import InputError

SKIPPED = 50  # steps one after another whose gradient overflows in fp16, before a run gives up


@dataclass(frozen=True)
class Recipe:
    """How to train. peak_learning_rate is reached after `warmup_steps` and falls linearly to 0 at `steps`. accumulate:
    batches of a step, whose gradients are averaged, for steps larger than the memory."""

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
    """What a run left: the numbers of its steps, and for each step the losses by name (nats)."""

    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)

    def add(self, step: int, losses: dict[str, float]) -> None:
        self.steps.append(step)
        for name, value in losses.items():
            self.losses.setdefault(name, []).append(value)

    def mean(self, name: str, last: int) -> float:
        """Mean of the last `last` values of a loss: single batches are noisy."""
        values = self.losses[name][-last:]
        return sum(values) / len(values)


@dataclass
class Progress:
    """What a snapshot keeps beside model, optimizer and schedule: the history, the place in the batches, and what the
    run has taken so far, (tokens, seconds)."""

    history: History
    batches: Iterable[dict]
    trainer: "Trainer"

    def state_dict(self) -> dict:
        state = {"history": json.dumps(vars(self.history)), "batches": self.batches.state_dict()}
        return state | {"taken": self.trainer.taken()}

    def load_state_dict(self, state: dict) -> None:
        vars(self.history).update(json.loads(state["history"]))
        self.batches.load_state_dict(state["batches"])
        self.trainer.before = state["taken"]


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight decay on matrices only: biases and LayerNorm (all one-dimensional) go without."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.dim() > 1]
    vectors = [p for p in parameters if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def precision() -> str:
    """Accelerate's name of the arithmetic: "bf16" where the machine computes in it natively, "fp16" (with a loss
    scaler) on older graphics cards that have it, such as a T4, else "no" (float32).

    Asks for the capability itself: `torch.cuda.is_bf16_supported()` is also true where bfloat16 is only emulated.
    """
    if torch.cuda.is_available():
        capability = torch.cuda.get_device_capability()
        return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "no"
    # not a public name: where a release of torch lacks it, float32 is always right
    return "bf16" if getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)() else "no"


def processes() -> PartialState:
    """This process among those of the run; on a machine without accelerator they are processes of the CPU."""
    if PartialState._shared_state:  # the first call decides
        return PartialState()
    accelerator = torch.accelerator.is_available() if hasattr(torch, "accelerator") else torch.cuda.is_available()
    # the first process may read a large corpus for hours before the others see it
    return PartialState(cpu=not accelerator, timeout=timedelta(days=7))


def keep_freed_memory() -> bool:
    """Lets a CPU process keep the memory of one step for the next; true where this can be set (glibc, so on Linux).

    By default C's `free` hands large blocks back to the system, which fills every page anew with zeros when the next
    step asks for it (`benchmarks/freed_memory.py`).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, TypeError):  # not glibc; Windows cannot even ask
        return False
    # M_MMAP_THRESHOLD, above which blocks are apart (older glibc: 32 MiB at most); M_TRIM_THRESHOLD of the heap's end
    return any(mallopt(-3, most) for most in (2**31 - 1, 2**25)) and bool(mallopt(-1, 2**31 - 1))


def progress_bar(steps: int, done: int = 0) -> tqdm:
    """A bar on the terminal or in a live notebook; silent where outputs are kept (SPANBERT_TUTORIAL_STATIC=1).

    done: steps of an earlier part of the run.
    """
    silent = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1" or not processes().is_main_process
    form = {"unit": "step", "mininterval": 0.5, "dynamic_ncols": True}
    return tqdm(total=steps, initial=done, disable=silent, file=sys.stdout, **form)


def train(
    model: nn.Module,
    batches: Iterable[dict],
    recipe: Recipe,
    reference: float | None = None,
    snapshots: Snapshots | None = None,
    held_out: Callable[[], dict[str, float]] | None = None,
) -> History:
    """Trains `model` in place for `recipe.steps` steps, each of `recipe.accumulate` batches, and returns the history.

    reference: a loss to show beside the current one, e.g. the unigram entropy. snapshots: where to keep the state, from
    which the same call goes on bit for bit after it was stopped; `batches` then needs `state_dict` and
    `load_state_dict` (`batches.Batches` has them). held_out: figures of held-out text, kept now and then beside the
    losses (with snapshots only). Raises InputError when the batches end early, and FloatingPointError naming the step
    when the loss or the gradient is not a number; the weights are then those of the step before.
    """
    trainer, history, metrics = Trainer(model, recipe), History(), None
    if snapshots is not None:
        trainer.accelerator.register_for_checkpointing(trainer.schedule, Progress(history, batches, trainer))
        snapshots.load(trainer.accelerator)
        if trainer.accelerator.is_main_process:
            path = snapshots.folder.parent / "metrics.jsonl"
            metrics = Metrics(path, len(history.steps) + 1, recipe.steps, held_out)

    def note_figures() -> None:
        if metrics is not None:
            metrics.add(history, trainer.schedule.get_last_lr()[0], *trainer.taken())

    stream, done = iter(batches), len(history.steps)
    if done == recipe.steps and (error := together(note_figures, trainer.accelerator)):
        raise error
    with (trainer.training(), progress_bar(recipe.steps, done) as bar,
          finishing_the_step(snapshots is not None) as asked_to_stop):
        for step in range(done + 1, recipe.steps + 1):
            drawn = [(batch, getattr(batches, "place", "")) for batch in islice(stream, recipe.accumulate)]
            if len(drawn) < recipe.accumulate:
                ended = f"the batches ended at step {step - 1} of {recipe.steps}"
                raise InputError(f"{ended}: give more text or fewer steps.")
            history.add(step, trainer.step(drawn, step))
            show(bar, history, reference, trainer.tokens)
            if snapshots is not None:
                if error := together(note_figures, trainer.accelerator):
                    raise error
                stop, due = (one_says(said, trainer.accelerator) for said in (asked_to_stop(), snapshots.due()))
                if stop or due or step == recipe.steps:
                    snapshots.save(trainer.accelerator, step)
                    stop = one_says(asked_to_stop(), trainer.accelerator)  # perhaps meanwhile
                if stop:
                    raise KeyboardInterrupt(f"Stopped after step {step} of {recipe.steps}")
    return history


class Trainer:
    """Model, optimizer and schedule on the device of this process; `tokens` counts what they have seen since `began`,
    `before` is what earlier parts of the run took."""

    def __init__(self, model: nn.Module, recipe: Recipe):
        processes()
        keep_freed_memory()
        self.accelerator, self.clip_norm, self.tokens = Accelerator(mixed_precision=precision()), recipe.clip_norm, 0
        self.before, self.began, self.skipped = (0, 0.0), time.monotonic(), 0
        groups = parameter_groups(model, recipe.weight_decay)
        how = {"betas": recipe.betas, "eps": recipe.epsilon, "fused": True}  # one kernel for all weights
        optimizer = torch.optim.AdamW(groups, lr=recipe.peak_learning_rate, **how)
        self.schedule = get_linear_schedule_with_warmup(optimizer, recipe.warmup_steps, recipe.steps)
        self.bare, (self.model, self.optimizer) = model, self.accelerator.prepare(model, optimizer)

    @contextmanager
    def training(self) -> Iterator[None]:
        """While this is open the model trains; afterwards, whatever happens, it is as it was made: in float32."""
        self.model.train()
        try:
            yield
        finally:
            self.accelerator.unwrap_model(self.model, keep_fp32_wrapper=False)  # from here on it computes in float32
            vars(self.bare).pop("_is_accelerate_prepared", None)  # or a second training would do so, too
            self.bare.zero_grad()  # what a broken step has left
            self.bare.eval()

    def step(self, batches: list[tuple[dict, str]], number: int) -> dict[str, float]:
        """One step; returns its losses, the means over batches and processes. number, and beside each batch its place
        in the data: for the message on failure."""
        losses: list[dict[str, float]] = []
        for batch, place in batches:
            last = len(losses) == len(batches) - 1
            with nullcontext() if last else self.accelerator.no_sync(self.model):  # processes meet once a step
                losses.append(self.gradients(batch, 1 / len(batches), f"at step {number}{place}"))
        self.update(f"at step {number}{place if len(batches) == 1 else ''}")
        return {name: sum(values[name] for values in losses) / len(losses) for name in losses[0]}

    def gradients(self, batch: dict, part: float, where: str) -> dict[str, float]:
        """Adds `part` of the gradients of a batch; returns its losses, of several processes their means."""
        losses = self.model({name: value.to(self.accelerator.device) for name, value in batch.items()})
        values = {name: self.accelerator.reduce(loss.detach(), "mean").item() for name, loss in losses.items()}
        if not math.isfinite(values["loss"]):
            raise FloatingPointError(what_went_wrong(values, where, batch, self.bare))
        self.accelerator.backward(losses["loss"] * part if part < 1 else losses["loss"])
        seen = batch["attention_mask"].sum() if "attention_mask" in batch else torch.tensor(0)
        self.tokens += int(self.accelerator.reduce(seen.to(self.accelerator.device), "sum").item())
        return values

    def update(self, where: str) -> None:
        """One step along the gradients. In fp16 a gradient that overflows is passed over, and the scaler lowers its
        factor; elsewhere, or when that does not help, the run ends before the weights are spoilt."""
        norm = float(self.accelerator.clip_grad_norm_(self.model.parameters(), self.clip_norm))
        self.skipped = 0 if math.isfinite(norm) else self.skipped + 1
        if self.skipped > (0 if self.accelerator.scaler is None else SKIPPED):
            raise FloatingPointError(f"the gradient's norm is {norm} {where}: lower the peak learning rate.")
        self.optimizer.step()
        if not self.skipped:  # accelerate's own flag does not see it: the fused AdamW passes over inside its kernel
            self.schedule.step()
        self.optimizer.zero_grad()

    def taken(self) -> tuple[int, float]:
        """Tokens and seconds of the run so far, earlier parts included."""
        return self.before[0] + self.tokens, self.before[1] + time.monotonic() - self.began


def what_went_wrong(losses: dict[str, float], where: str, batch: dict, model: nn.Module) -> str:
    """Step, batch and the likely cause of a loss that is not a number. where: step and place in the data."""
    found = f"the loss is {losses['loss']} {where} (inputs {tuple(next(iter(batch.values())).shape)})"
    lost = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if lost:
        return (f"{found}: the weights hold no numbers (first {lost[0]}). At the first step that means they came so: "
                "take another checkpoint. Later, an earlier step was too long: lower the peak learning rate.")
    return f"{found}: the weights are finite, this batch overflows: look at it, or lower the peak learning rate."


@contextmanager
def finishing_the_step(wanted: bool) -> Iterator[Callable[[], bool]]:
    """While this is open, the first Ctrl-C (or SIGTERM) only makes the yielded function true, so that the step can be
    finished and kept; the second one stops at once. Without `wanted`, or outside the main thread, nothing changes."""
    asked: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show(bar: tqdm, history: History, reference: float | None, tokens: int) -> None:
    """One step on the bar: smoothed losses, the reference to compare with, tokens a second since the bar began."""
    shown = {name: f"{history.mean(name, 20):.2f}" for name in history.losses if name != "loss"}
    if reference is not None:
        shown["unigram"] = f"{reference:.2f}"
    bar.update()
    if tokens and (seconds := bar.format_dict["elapsed"]):
        shown["tokens/s"] = f"{tokens / seconds:,.0f}"
    bar.set_postfix(shown, refresh=False)
