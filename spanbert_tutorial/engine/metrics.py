"""The figures of a run as it goes: one JSON object a line. Chapter:
`book/spanbert/pretraining_spanbert`."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import InputError, NoRoom, parse_json

EVERY = 10  # steps whose means make a line
# about so many lines of a long run also have figures of held-out text; a short run has fewer
HELD_OUT_LINES = 40


class Metrics:
    """Writes `path`: step, means of the losses over the last steps, learning rate, tokens so far,
    seconds so far.

    steps: of the whole run; the last one writes a line, too. first_step: a run that goes on keeps
    the lines before it. held_out: gives figures of held-out text by name; asked now and then, and
    at the last step. Raises NoRoom when the file cannot be written, InputError when its lines
    cannot be used, FloatingPointError when a figure is no number.
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
        """The whole lines of steps before this one: a killed run may leave half a line."""
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
            wrong = f"the figures of before in {self.path} cannot be used ({error})"
            raise InputError(f"{wrong}: restore the file from a copy, or remove it.") from error

    def add(self, history, learning_rate: float, tokens: int, seconds: float) -> None:
        """After a step: every tenth writes a line, once, and it is on the disk before the snapshot
        of that step. history: a `loop.History`; tokens, seconds: of the whole run."""
        step = history.steps[-1]
        if step == self.last or (step % EVERY and step != self.steps):
            return
        means = {
            name: round(history.mean(name, (step - 1) % EVERY + 1), 4) for name in history.losses
        }
        line = {"step": step, **means, "learning_rate": float(f"{learning_rate:.4g}")}
        line |= {"tokens": tokens, "seconds": round(seconds, 1)}
        if self.held_out is not None and (step % self.held_out_every == 0 or step == self.steps):
            line |= {name: round(value, 4) for name, value in self.held_out().items()}
        if lost := [name for name, value in line.items() if not math.isfinite(value)]:
            raise FloatingPointError(
                f"{lost[0]} is {line[lost[0]]} after step {step}: lower the peak learning rate."
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
        return NoRoom(
            f"the figures in {self.path} cannot be written ({error}): make room, or allow "
            f"writing there."
        )
