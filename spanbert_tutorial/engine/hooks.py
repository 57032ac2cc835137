"""What looks at a run on its way: the progress bar, and all that a long run has around its loop.
Chapter: `book/workshop/engine`.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

from tqdm import tqdm

from spanbert_tutorial.engine.processes import processes

Item = TypeVar("Item")


class Hook:
    """Base of what looks at a run: before its first step, and after each reading of its losses.
    state: `train.TrainingState`."""

    def on_start(self, state: Any) -> None: ...

    def on_log(self, state: Any) -> None: ...


def progress_bar(steps: int | None, done: int = 0, unit: str = "step", delay: float = 0.0) -> tqdm:
    """A progress bar in the terminal or a live notebook; silent where outputs are stored
    (SPANBERT_TUTORIAL_STATIC=1).

    steps: None if unknown. done: steps of an earlier part. delay: seconds before the bar appears.
    """
    # stdout may be a file of results, but a notebook shows stderr in red
    notebook = type(sys.stdout).__module__.startswith("ipykernel")
    silent = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1" or not processes().is_main_process
    return tqdm(
        total=steps,
        initial=done,
        unit=unit,
        delay=delay,
        disable=silent,
        file=sys.stdout if notebook else sys.stderr,
        mininterval=0.5,
        dynamic_ncols=True,
    )


def with_bar(items: Iterable[Item], unit: str) -> Iterator[Item]:
    """Yields the items, with a progress bar once that takes longer than two seconds. unit: what one
    item is."""
    steps = len(items) if isinstance(items, Sized) else None
    with progress_bar(steps, unit=unit, delay=2.0) as bar:
        for item in items:
            yield item
            bar.update()


class ProgressBar(Hook):
    """Shows the steps so far, smoothed losses, a reference to compare them with (such as the
    unigram entropy), and where the batches count them the tokens per second."""

    def __init__(self, reference: float | None = None):
        self.reference = reference
        self.bar: tqdm | None = None

    def on_start(self, state: Any) -> None:
        self.bar = progress_bar(state.config.steps, state.history.done)

    def on_log(self, state: Any) -> None:
        assert self.bar is not None
        history = state.history
        shown = {name: f"{history.mean(name, 20):.2f}" for name in history.losses if name != "loss"}
        if self.reference is not None:
            shown["unigram"] = f"{self.reference:.2f}"
        self.bar.update(history.done - self.bar.n)
        speed = getattr(state.batches, "tokens_per_second", 0.0)
        if speed:
            shown["tokens/s"] = f"{speed:,.0f}"
        self.bar.set_postfix(shown, refresh=False)
        if history.done == state.config.steps:
            self.close()

    def close(self) -> None:
        """Ends the line of the bar, also when the run breaks off."""
        if self.bar is not None:
            self.bar.close()


@contextmanager
def finishing_the_step() -> Iterator[Callable[[], bool]]:
    """While this is open, the first Ctrl-C (or SIGTERM) only makes the yielded function return
    true, so that the step can be finished and kept; the second one stops at once. Outside the main
    thread signals act as usual."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
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
