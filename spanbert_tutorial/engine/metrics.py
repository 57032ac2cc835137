"""The record of a run: its losses step by step, and the file of its metrics. Chapter:
`book/workshop/engine`."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import InputError, NoRoom, parse_json

EVERY = 10  # steps averaged in one line
# about how many lines of a long run also have held-out metrics; a short run has fewer
HELD_OUT_LINES = 40


@dataclass
class History:
    """The record of a run: the numbers of its steps, and for each step the losses by name (nats).
    A long run that was stopped and resumed has only the last steps of its earlier parts."""

    steps: list[int] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)

    def add(self, step: int, losses: dict[str, float]) -> None:
        """Records one step. A loss that it lacks, as where objectives take turns, is no number
        there."""
        for name in losses:  # in their order
            self.losses.setdefault(name, [math.nan] * len(self.steps))
        self.steps.append(step)
        for name, values in self.losses.items():
            values.append(losses.get(name, math.nan))

    @property
    def done(self) -> int:
        """Number of steps so far."""
        return self.steps[-1] if self.steps else 0

    def mean(self, name: str, last: int) -> float:
        """Mean of a loss over the last `last` steps, because single batches are noisy; over those
        that have it, and no number where none has."""
        values = [value for value in self.losses[name][-last:] if not math.isnan(value)]
        return sum(values) / len(values) if values else math.nan


class Metrics:
    """Writes `path`, one JSON object per line: step, mean losses of the last steps, learning rate,
    and the tokens and seconds so far.

    steps: of the whole run; the last one also writes a line. first_step: a resumed run keeps the
    lines before it. held_out: computes held-out metrics by name, called now and then and at the
    last step. Raises NoRoom when the file cannot be written, InputError when its lines cannot be
    used, FloatingPointError when a metric is not a finite number.
    """

    def __init__(
        self,
        path: str | Path,
        first_step: int,
        steps: int,
        held_out: Callable[[], dict[str, float]] | None = None,
    ):
        self.path = Path(path)
        self.steps = steps
        self.held_out = held_out
        self.held_out_every = EVERY * max(25, steps // (EVERY * HELD_OUT_LINES))
        kept = self.lines_before(first_step)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, "".join(kept))
        except OSError as error:
            raise self.no_room(error) from error
        self.last = json.loads(kept[-1])["step"] if kept else 0

    def lines_before(self, first_step: int) -> list[str]:
        """The complete lines of steps before this one: a killed run may leave half a line."""
        try:
            lines = (
                self.path.read_text(encoding="utf-8").splitlines(keepends=True)
                if self.path.exists()
                else []
            )
            return [
                line
                for line in lines
                if line.endswith("\n") and parse_json(line)["step"] < first_step
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"the earlier metrics in {self.path} cannot be used ({error}): restore the file "
                "from a copy, or remove it."
            ) from error

    def add(self, history: History, learning_rate: float, tokens: int, seconds: float) -> None:
        """Call after each step. Every tenth step writes a line, once, which is on the disk before
        that step's snapshot. tokens, seconds: of the whole run."""
        step = history.steps[-1]
        if step == self.last or (step % EVERY and step != self.steps):
            return
        means = {name: history.mean(name, (step - 1) % EVERY + 1) for name in history.losses}
        known = {name: round(mean, 4) for name, mean in means.items() if not math.isnan(mean)}
        line: dict[str, float] = {"step": step, **known}
        line |= {"learning_rate": float(f"{learning_rate:.4g}")}
        line |= {"tokens": tokens, "seconds": round(seconds, 1)}
        if self.held_out is not None and (step % self.held_out_every == 0 or step == self.steps):
            line |= {name: round(value, 4) for name, value in self.held_out().items()}
        for name, value in line.items():
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"{name} is {value} after step {step}: lower the peak learning rate."
                )
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self.no_room(error) from error
        self.last = step

    def no_room(self, error: OSError) -> NoRoom:
        """The error to raise when the file cannot be written."""
        return NoRoom(
            f"the metrics in {self.path} cannot be written ({error}): make room, or allow writing "
            "there."
        )
