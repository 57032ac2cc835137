"""The file of a run's metrics. Chapter: `book/workshop/engine`."""

import json
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from spanbert_tutorial.engine.files import write_text, writing
from spanbert_tutorial.engine.hooks import Hook
from spanbert_tutorial.engine.processes import fail_together, processes
from spanbert_tutorial.errors import InputError, parse_json

EVERY = 10  # steps averaged in one line
# about how many lines of a long run also have held-out metrics; a short run has fewer
HELD_OUT_LINES = 40


class Metrics(Hook):
    """Writes `path`, one JSON object per line: step, mean losses of the last steps, learning rate,
    and the tokens and seconds so far. The batches have to be a `Stream`.

    The last step also writes a line; a resumed run keeps the lines before it. held_out: computes
    held-out metrics by name, called now and then and at the last step. Raises NoRoom when the file
    cannot be written, InputError when its lines cannot be used, FloatingPointError when a metric is
    not a finite number.
    """

    def __init__(
        self, path: str | Path, held_out: Callable[[], dict[str, float]] | None = None
    ) -> None:
        self.path = Path(path)
        self.held_out = held_out
        self.begun = False

    def on_log(self, state: Any) -> None:
        step = state.history.done
        if step % EVERY == 0 or step == state.config.steps:
            # on the disk before the snapshot of the same step
            fail_together(partial(self.write, state, *state.batches.taken()))

    def write(self, state: Any, tokens: int, seconds: float) -> None:
        if not processes().is_main_process:
            return
        line = self.line(state) | {"tokens": tokens, "seconds": round(seconds, 1)}
        step, steps = state.history.done, state.config.steps
        every = EVERY * max(25, steps // (EVERY * HELD_OUT_LINES))
        if self.held_out is not None and (step % every == 0 or step == steps):
            line |= {name: round(value, 4) for name, value in self.held_out().items()}
        for name, value in line.items():
            if not math.isfinite(value):
                wrong = f"{name} is {value} after step {step}"
                raise FloatingPointError(f"{wrong}: lower the peak learning rate.")
        with writing(f"the metrics in {self.path}", "make room, or allow writing there"):
            if not self.begun:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self.path, "".join(self.lines_before(step)))
                self.begun = True
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def line(self, state: Any) -> dict[str, float]:
        """Step, mean losses since the line before, and learning rate."""
        history = state.history
        means = {
            name: history.mean(name, (history.done - 1) % EVERY + 1) for name in history.losses
        }
        known = {name: round(mean, 4) for name, mean in means.items() if not math.isnan(mean)}
        learning_rate = float(f"{state.schedule.get_last_lr()[0]:.4g}")
        return {"step": history.done, **known, "learning_rate": learning_rate}

    def lines_before(self, step: int) -> list[str]:
        """The complete lines of earlier steps: a killed run may leave half a line, and steps that
        no snapshot has are taken again."""
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            return [
                line for line in lines if line.endswith("\n") and parse_json(line)["step"] < step
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"the metrics in {self.path} cannot be used ({error}): restore or remove the file."
            ) from error
