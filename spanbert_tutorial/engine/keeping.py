"""What accompanies the training: the progress bar and, with snapshots, the metrics of a run, its
state, and stopping where it can be resumed. Chapter: `book/workshop/engine`.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from tqdm import tqdm

from spanbert_tutorial.engine.metrics import History, Metrics
from spanbert_tutorial.engine.processes import any_process, fail_together, processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.engine.states import Stateful

KEPT_STEPS = 1_000  # steps of the history in a snapshot, so that it does not grow with the run

Item = TypeVar("Item")


class Trainer(Protocol):
    """The part of `loop.Trainer` that is needed here."""

    schedule: Any
    before: tuple[int, float]

    def parts(self) -> dict[str, Stateful]: ...

    def taken(self) -> tuple[int, float]: ...

    def check_weights(self, step: int) -> None: ...


class Keeper:
    """Keeps the state and the metrics of a run of `steps` steps: call `resume` before the first
    step, if the run has snapshots, and `after_step` after each step whose losses are read."""

    def __init__(self, trainer: Trainer, history: History, steps: int):
        self.trainer = trainer
        self.history = history
        self.steps = steps
        self.snapshots: Snapshots | None = None
        self.parts: dict[str, Stateful] = {}  # what a snapshot holds
        self.metrics: Metrics | None = None  # in the first process only

    def resume(
        self,
        snapshots: Snapshots,
        batches: Stateful,
        held_out: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        """Restores model, optimizer, schedule, history and batches from the newest snapshot, if
        there is one, and keeps snapshots and metrics from here on. held_out: computes held-out
        metrics, called now and then."""
        self.snapshots = snapshots
        self.parts = {
            **self.trainer.parts(),
            "progress": Progress(self.history, self.trainer, batches),
        }
        snapshots.load(self.parts)
        done = self.history.done
        if processes().is_main_process:
            path = snapshots.folder.parent / "metrics.jsonl"
            self.metrics = Metrics(path, done + 1, self.steps, held_out)
        if done == self.steps:
            fail_together(self.add_metrics)

    def after_step(self, step: int, asked_to_stop: Callable[[], bool]) -> None:
        """Writes metrics and a snapshot when they are due. Raises FloatingPointError before weights
        that are not finite are kept, and KeyboardInterrupt after a snapshot, if one of the
        processes was asked to stop."""
        save = self.snapshot_needed(asked_to_stop) or step == self.steps
        if save:
            self.trainer.check_weights(step)
        if self.snapshots is None:
            return
        fail_together(self.add_metrics)  # on the disk before the snapshot of the same step
        if not save:
            return
        self.snapshots.save(self.parts, step)
        if any_process(asked_to_stop()):
            raise KeyboardInterrupt(f"Stopped after step {step} of {self.steps}")

    def snapshot_needed(self, asked_to_stop: Callable[[], bool]) -> bool:
        """Whether one of the processes was asked to stop, or its time for a snapshot has come."""
        if self.snapshots is None:
            return False
        return any_process(asked_to_stop() or self.snapshots.due())

    def add_metrics(self) -> None:
        """Writes the metrics of the last step."""
        if self.metrics is not None:
            learning_rate = self.trainer.schedule.get_last_lr()[0]
            self.metrics.add(self.history, learning_rate, *self.trainer.taken())


class Progress:
    """What a snapshot keeps besides model, optimizer and schedule: the last steps of the history,
    the position in the batches, and the tokens and seconds that the run has taken so far."""

    def __init__(self, history: History, trainer: Trainer, batches: Stateful):
        self.history = history
        self.trainer = trainer
        self.batches = batches

    def state_dict(self) -> dict[str, Any]:
        losses = {name: values[-KEPT_STEPS:] for name, values in self.history.losses.items()}
        return {
            "history": {"steps": self.history.steps[-KEPT_STEPS:], "losses": losses},
            "batches": self.batches.state_dict(),
            "taken": self.trainer.taken(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.history.steps = state["history"]["steps"]
        self.history.losses = state["history"]["losses"]
        self.batches.load_state_dict(state["batches"])
        self.trainer.before = state["taken"]


def progress_bar(steps: int, done: int = 0, unit: str = "step", delay: float = 0.0) -> tqdm:
    """A progress bar in the terminal or a live notebook; silent where outputs are stored
    (SPANBERT_TUTORIAL_STATIC=1).

    done: steps of an earlier part of the run. delay: seconds before the bar appears.
    """
    silent = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1" or not processes().is_main_process
    return tqdm(
        total=steps,
        initial=done,
        unit=unit,
        delay=delay,
        disable=silent,
        file=sys.stdout,
        mininterval=0.5,
        dynamic_ncols=True,
    )


def with_bar(items: Sequence[Item], unit: str) -> Iterator[Item]:
    """Yields the items, with a progress bar once that takes longer than two seconds. unit: what one
    item is."""
    with progress_bar(len(items), unit=unit, delay=2.0) as bar:
        for item in items:
            yield item
            bar.update()


def show(bar: tqdm, history: History, reference: float | None, tokens: int) -> None:
    """Shows the steps so far on the bar: smoothed losses, the reference to compare with, and tokens
    per second since the bar began."""
    shown = {name: f"{history.mean(name, 20):.2f}" for name in history.losses if name != "loss"}
    if reference is not None:
        shown["unigram"] = f"{reference:.2f}"
    bar.update(history.done - bar.n)
    seconds = bar.format_dict["elapsed"]
    if tokens and seconds:
        shown["tokens/s"] = f"{tokens / seconds:,.0f}"
    bar.set_postfix(shown, refresh=False)


@contextmanager
def finishing_the_step(enabled: bool) -> Iterator[Callable[[], bool]]:
    """While this is open, the first Ctrl-C (or SIGTERM) only makes the yielded function return
    true, so that the step can be finished and kept; the second one stops at once. Unless `enabled`,
    and outside the main thread, signals act as usual."""
    signals: list[int] = []
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: object) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
