"""The record of a run: its losses step by step. Chapter: `book/workshop/engine`."""

import math
from dataclasses import dataclass, field
from typing import Any

KEPT_STEPS = 1_000  # steps of the history in a snapshot, so that it does not grow with the run


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

    def state_dict(self) -> dict[str, Any]:
        losses = {name: values[-KEPT_STEPS:] for name, values in self.losses.items()}
        return {"steps": self.steps[-KEPT_STEPS:], "losses": losses}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        self.losses = state["losses"]
