"""The figures of a run as it goes: one JSON object a line. Chapter: `book/spanbert/pretraining_spanbert`."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

EVERY = 10  # steps whose means make a line
HELD_OUT_LINES = 40  # about so many lines of a long run also have figures of held-out text; a short run has fewer


class Metrics:
    """Writes `path`: step, means of the losses over the last steps, learning rate, tokens so far, seconds so far.

    steps: of the whole run; the last one writes a line, too. first_step: a run that goes on keeps the lines before it.
    held_out: gives figures of held-out text by name; asked now and then, and at the last step.
    """

    def __init__(
        self,
        path: str | Path,
        first_step: int,
        steps: int,
        held_out: Callable[[], dict[str, float]] | None = None,
    ):
        self.path, self.steps, self.held_out = Path(path), steps, held_out
        self.held_out_every = EVERY * max(25, steps // (EVERY * HELD_OUT_LINES))
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        kept = [json.loads(line) for line in lines if line.endswith("\n")]  # a killed run may leave half a line
        kept = [line for line in kept if line["step"] < first_step]
        self.tokens_before, self.before = (kept[-1]["tokens"], kept[-1]["seconds"]) if kept else (0, 0.0)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        os.replace(part, self.path)
        self.began = time.monotonic()

    def add(self, history, learning_rate: float, tokens: int) -> None:
        """After a step: every tenth writes a line. history: a `training.History`; tokens: since this part began."""
        step = history.steps[-1]
        if step % EVERY and step != self.steps:
            return
        means = {name: round(history.mean(name, (step - 1) % EVERY + 1), 4) for name in history.losses}
        seconds = round(self.before + time.monotonic() - self.began, 1)
        line = {"step": step, **means, "learning_rate": float(f"{learning_rate:.4g}")}
        line |= {"tokens": self.tokens_before + tokens, "seconds": seconds}
        if self.held_out is not None and (step % self.held_out_every == 0 or step == self.steps):
            line |= {name: round(value, 4) for name, value in self.held_out().items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
