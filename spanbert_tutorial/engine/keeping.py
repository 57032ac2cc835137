"""What stands beside the learning: the progress bar, and with snapshots the figures of a run, its
state, and stopping where it can go on.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tqdm import tqdm

from spanbert_tutorial.engine.metrics import Metrics
from spanbert_tutorial.engine.processes import any_process, fail_together, processes
from spanbert_tutorial.engine.snapshots import Snapshots

KEPT_STEPS = 1_000  # of the history in a snapshot, which so does not grow with the length of a run

Thing = TypeVar("Thing")


class Keeper:
    """Looks on while a run of `steps` steps learns: `note` after each step. trainer, history: a
    `loop.Trainer` and a `loop.History`; reference: a loss to show beside the current one.

    Until `go_on` names the snapshots there is only the bar, and a signal stops the run at once.
    """

    def __init__(self, trainer, history, steps: int, reference: float | None = None):
        self.trainer = trainer
        self.history = history
        self.steps = steps
        self.reference = reference
        self.snapshots: Snapshots | None = None
        self.metrics: Metrics | None = None  # in the first process only

    def go_on(
        self,
        snapshots: Snapshots,
        batches: Iterable[dict],
        held_out: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        """Brings model, optimizer, schedule, history and batches to the newest snapshot, if there
        is one, and keeps them and the run's figures from here on. held_out: gives figures of
        held-out text, kept now and then."""
        self.snapshots, self.parts = (
            snapshots,
            self.trainer.parts() | {"progress": Progress(self, batches)},
        )
        snapshots.load(self.parts)
        done = self.history.done
        if processes().is_main_process:
            self.metrics = Metrics(
                snapshots.folder.parent / "metrics.jsonl", done + 1, self.steps, held_out
            )
        if done == self.steps:
            fail_together(self.add_figures)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While this is open the bar is there, and with snapshots a signal waits for the end of the
        step."""
        with (
            progress_bar(self.steps, self.history.done) as self.bar,
            finishing_the_step(self.snapshots is not None) as self.asked_to_stop,
        ):
            yield

    def note(self, step: int) -> None:
        """After each step. Raises KeyboardInterrupt once it is kept, where one of the processes was
        asked to stop."""
        show(self.bar, self.history, self.reference, self.trainer.tokens)
        if step == self.steps:
            self.trainer.check_weights(step)
        if self.snapshots is None:
            return
        fail_together(self.add_figures)
        stop = any_process(self.asked_to_stop())
        due = any_process(self.snapshots.due())
        if stop or due or step == self.steps:
            self.trainer.check_weights(step)
            self.snapshots.save(self.parts, step)
            stop = any_process(self.asked_to_stop())  # perhaps meanwhile
        if stop:
            raise KeyboardInterrupt(f"Stopped after step {step} of {self.steps}")

    def add_figures(self) -> None:
        """The figures of the last step, to the file of them."""
        if self.metrics is not None:
            self.metrics.add(
                self.history, self.trainer.schedule.get_last_lr()[0], *self.trainer.taken()
            )


class Progress:
    """What a snapshot keeps beside model, optimizer and schedule: the last steps of the history,
    the place in the batches, and what the run has taken so far, (tokens, seconds)."""

    def __init__(self, keeper: Keeper, batches: Iterable[dict]):
        self.history = keeper.history
        self.trainer = keeper.trainer
        self.batches = batches

    def state_dict(self) -> dict:
        last = {name: values[-KEPT_STEPS:] for name, values in self.history.losses.items()}
        history = {"steps": self.history.steps[-KEPT_STEPS:], "losses": last}
        return {
            "history": history,
            "batches": self.batches.state_dict(),
            "taken": self.trainer.taken(),
        }

    def load_state_dict(self, state: dict) -> None:
        vars(self.history).update(state["history"])
        self.batches.load_state_dict(state["batches"])
        self.trainer.before = state["taken"]


def progress_bar(steps: int, done: int = 0, unit: str = "step", delay: float = 0.0) -> tqdm:
    """A bar on the terminal or in a live notebook; silent where outputs are kept
    (SPANBERT_TUTORIAL_STATIC=1).

    done: steps of an earlier part of the run. delay: seconds before the bar is there.
    """
    silent = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1" or not processes().is_main_process
    form = {"unit": unit, "delay": delay, "mininterval": 0.5, "dynamic_ncols": True}
    return tqdm(total=steps, initial=done, disable=silent, file=sys.stdout, **form)


def with_bar(things: Sequence[Thing], unit: str) -> Iterator[Thing]:
    """The things one after another, with a bar once it takes longer than two seconds. unit: what
    one of them is."""
    with progress_bar(len(things), unit=unit, delay=2.0) as bar:
        for thing in things:
            yield thing
            bar.update()


def show(bar: tqdm, history, reference: float | None, tokens: int) -> None:
    """One step on the bar: smoothed losses, the reference to compare with, tokens a second since
    the bar began."""
    shown = {name: f"{history.mean(name, 20):.2f}" for name in history.losses if name != "loss"}
    if reference is not None:
        shown["unigram"] = f"{reference:.2f}"
    bar.update()
    if tokens and (seconds := bar.format_dict["elapsed"]):
        shown["tokens/s"] = f"{tokens / seconds:,.0f}"
    bar.set_postfix(shown, refresh=False)


@contextmanager
def finishing_the_step(wanted: bool) -> Iterator[Callable[[], bool]]:
    """While this is open, the first Ctrl-C (or SIGTERM) only makes the yielded function true, so
    that the step can be finished and kept; the second one stops at once. Without `wanted`, or
    outside the main thread, nothing changes."""
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
