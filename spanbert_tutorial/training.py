"""One training loop for everything in this book, on Hugging Face Accelerate. Chapter:
`book/spanbert/pretraining_spanbert`.

The loop knows nothing of the model but this: called with a batch (a dict of tensors) it returns a dict of losses whose
`loss` is the one to minimise. Recipe: BERT §A.2 (AdamW, linear warm-up and decay, weight decay not on biases and
LayerNorm), with the second Adam beta of RoBERTa, which suits short runs.
"""

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from accelerate import Accelerator
from torch import nn
from tqdm import tqdm
from transformers import get_linear_schedule_with_warmup

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.snapshots import Snapshots


@dataclass(frozen=True)
class Recipe:
    """How to train. peak_learning_rate is reached after `warmup_steps` and falls linearly to 0 at `steps`."""

    steps: int
    peak_learning_rate: float
    warmup_steps: int
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-6
    clip_norm: float = 1.0


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
    """What a snapshot keeps beside model, optimizer and schedule: the history and the place in the batches."""

    history: History
    batches: Iterable[dict]

    def state_dict(self) -> dict:
        return {"history": json.dumps(vars(self.history)), "batches": self.batches.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        vars(self.history).update(json.loads(state["history"]))
        self.batches.load_state_dict(state["batches"])


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """Weight decay on matrices only: biases and LayerNorm (all one-dimensional) go without."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.dim() > 1]
    vectors = [p for p in parameters if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def precision() -> str:
    """Accelerate's name of the arithmetic: "bf16" where the machine computes in it natively, else "no" (float32).

    Asks for the capability itself: `torch.cuda.is_bf16_supported()` is also true where bfloat16 is only emulated.
    """
    if torch.cuda.is_available():
        native = torch.cuda.get_device_capability() >= (8, 0)
    else:
        # not a public name: where a release of torch lacks it, float32 is always right
        native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    return "bf16" if native else "no"


def progress_bar(steps: int, done: int = 0) -> tqdm:
    """A bar on the terminal or in a live notebook; silent where outputs are kept (SPANBERT_TUTORIAL_STATIC=1).

    done: steps of an earlier part of the run.
    """
    silent = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1"
    form = {"unit": "step", "mininterval": 0.5, "dynamic_ncols": True}
    return tqdm(total=steps, initial=done, disable=silent, file=sys.stdout, **form)


def train(
    model: nn.Module,
    batches: Iterable[dict],
    recipe: Recipe,
    reference: float | None = None,
    snapshots: Snapshots | None = None,
) -> History:
    """Trains `model` in place for `recipe.steps` batches and returns the history.

    reference: a loss to show beside the current one, e.g. the unigram entropy. snapshots: where to keep the state, from
    which the same call goes on bit for bit after it was stopped; `batches` then needs `state_dict` and
    `load_state_dict` (`pretraining.Batches` has them). Raises InputError when the batches end early, and
    FloatingPointError naming the step when the loss is not a number.
    """
    accelerator = Accelerator(mixed_precision=precision())
    groups = parameter_groups(model, recipe.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=recipe.peak_learning_rate, betas=recipe.betas, eps=recipe.epsilon)
    schedule = get_linear_schedule_with_warmup(optimizer, recipe.warmup_steps, recipe.steps)
    prepared, optimizer = accelerator.prepare(model, optimizer)
    history = History()
    if snapshots is not None:
        accelerator.register_for_checkpointing(schedule, Progress(history, batches))
        snapshots.load(accelerator)
    stream, done = iter(batches), len(history.steps)
    prepared.train()
    with progress_bar(recipe.steps, done) as bar, finishing_the_step(snapshots is not None) as asked_to_stop:
        for step in range(done + 1, recipe.steps + 1):
            batch = next(stream, None)
            if batch is None:
                ended = f"the batches ended at step {step - 1} of {recipe.steps}"
                raise InputError(f"{ended}: give more text or fewer steps.")
            losses = prepared({name: value.to(accelerator.device) for name, value in batch.items()})
            values = {name: loss.item() for name, loss in losses.items()}
            if not math.isfinite(values["loss"]):
                raise FloatingPointError(f"the loss is {values['loss']} at step {step}: lower the peak learning rate.")
            accelerator.backward(losses["loss"])
            accelerator.clip_grad_norm_(prepared.parameters(), recipe.clip_norm)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            history.add(step, values)
            show(bar, history, reference)
            if snapshots is not None and (snapshots.due() or asked_to_stop() or step == recipe.steps):
                snapshots.save(accelerator, step)
            if asked_to_stop():
                raise KeyboardInterrupt(f"Stopped after step {step} of {recipe.steps}")
    accelerator.unwrap_model(prepared, keep_fp32_wrapper=False)  # from here on the model computes in float32 again
    model.eval()
    return history


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


def show(bar: tqdm, history: History, reference: float | None) -> None:
    """One step on the bar, with smoothed losses and, to compare with, the reference."""
    shown = {name: f"{history.mean(name, 20):.2f}" for name in history.losses if name != "loss"}
    if reference is not None:
        shown["unigram"] = f"{reference:.2f}"
    bar.set_postfix(shown, refresh=False)
    bar.update()
