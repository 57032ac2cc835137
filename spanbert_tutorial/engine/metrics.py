"""The file of a run's metrics. Chapter: `book/workshop/engine`."""

import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from spanbert_tutorial.engine.files import writing
from spanbert_tutorial.engine.hooks import Hook
from spanbert_tutorial.engine.processes import in_first_process

EVERY = 10  # steps averaged in one line
# about how many lines of a long run also have held-out metrics; a short run has fewer
HELD_OUT_LINES = 40


class Metrics(Hook):
    """Writes `path`, one JSON object per line: step, mean losses of the last steps, learning rate,
    and the tokens and seconds so far. The batches have to be a `Stream`.

    The last step also writes a line. held_out: computes held-out metrics by name, called now and
    then and at the last step. A snapshot has the size of the file: what a killed run wrote after it
    is cut off. Raises NoRoom when the file cannot be written, FloatingPointError when a metric is
    not a finite number.
    """

    def __init__(
        self, path: str | Path, held_out: Callable[[], dict[str, float]] | None = None
    ) -> None:
        self.path = Path(path)
        self.held_out = held_out
        self.size = 0  # of the file, in bytes

    def on_log(self, state: Any) -> None:
        step = state.history.done
        if step % EVERY == 0 or step == state.config.steps:
            # on the disk before the snapshot of the same step
            in_first_process(partial(self.write, state, *state.batches.taken()))

    def write(self, state: Any, tokens: int, seconds: float) -> None:
        history, step, steps = state.history, state.history.done, state.config.steps
        means = {name: history.mean(name, (step - 1) % EVERY + 1) for name in history.losses}
        line: dict[str, float] = {"step": step}
        line |= {name: round(mean, 4) for name, mean in means.items() if not math.isnan(mean)}
        line["learning_rate"] = float(f"{state.schedule.get_last_lr()[0]:.4g}")
        line |= {"tokens": tokens, "seconds": round(seconds, 1)}
        every = EVERY * max(25, steps // (EVERY * HELD_OUT_LINES))
        if self.held_out is not None and (step % every == 0 or step == steps):
            line |= {name: round(value, 4) for name, value in self.held_out().items()}
        for name, value in line.items():
            if not math.isfinite(value):
                wrong = f"{name} is {value} after step {step}"
                raise FloatingPointError(f"{wrong}: lower the peak learning rate.")
        with writing(f"the metrics in {self.path}", "make room, or allow writing there"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() > self.size:
                    file.truncate(self.size)
                file.write(f"{json.dumps(line)}\n".encode())
                file.flush()
                os.fsync(file.fileno())
                self.size = file.tell()

    def state_dict(self) -> dict[str, int]:
        return {"size": self.size}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.size = state["size"]
