"""Settings of span masking and of the span boundary objective (SBO), one changed at a time.
Chapter: `book/evidence/spans_and_boundaries`.

Miniatures: all go on from the starts of `spans_and_boundaries` (give the same `--models`), but for
1,000 steps only, and no task is trained. The rows "span" and "span+sbo" are the paper's settings,
as long; each other row differs from one of them in one thing.

What is compared, and the sign that was expected, stood here before the first run: `CLAIMS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from research.experiments import spans_and_boundaries as core
from research.experiments.boundary_probe import go_on
from research.grid import CURVES, curve, rounded, text_facts
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.spanbert.boundary import boundary_loss
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking


@dataclass(frozen=True)
class ChangedBoundary(Boundary):
    """SBO, its part of the loss multiplied by `weight`. positions=False: all tokens of a span are
    predicted from the same vector."""

    weight: float = 1.0
    positions: bool = True

    def loss(self, head: nn.Module, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        if self.positions:
            return self.weight * super().loss(head, hidden, batch)
        rows = self.rows(batch)
        none = {"positions.weight": torch.zeros_like(head.get_parameter("positions.weight"))}
        logits = torch.func.functional_call(head, none, (hidden, rows))
        return self.weight * boundary_loss(logits, rows, masked_tokens=1)


SEEDS = 5
ARMS: dict[str, SpanMasking | ChangedBoundary] = {
    "span": SpanMasking(),
    "p 0.1": SpanMasking(p=0.1),
    "p 0.4": SpanMasking(p=0.4),
    "at most 3 words": SpanMasking(max_words=3),
    "10 % hidden": SpanMasking(mask_ratio=0.1),
    "40 % hidden": SpanMasking(mask_ratio=0.4),
    "released mode": SpanMasking(complete_words=False),
    "span+sbo": ChangedBoundary(),
    "SBO × 0.3": ChangedBoundary(weight=0.3),
    "SBO × 3": ChangedBoundary(weight=3.0),
    "boundaries only": ChangedBoundary(positions=False),
}
CLAIMS = {
    "length": "held-out loss, tokens hidden one by one: at most 3 words below span, since short "
    "spans are nearer to single tokens",
    "weight": "held-out loss, tokens hidden one by one: SBO × 3 above span+sbo, since the second "
    "head takes room",
    "kind": "kind of a hidden name, read from the tokens right outside: each arm against span or "
    "span+sbo, no sign expected",
}
SETTINGS = {
    "vocabulary": core.VOCABULARY,
    "start": core.START,
    "go_on": replace(core.GO_ON, steps=1_000),
    "claims": CLAIMS,
    **CURVES,
    "fit_documents": core.FIT_DOCUMENTS,
}


def objective_of(arm: str) -> Objective:
    """The row "span" with the arm's scheme, or the row "span+sbo" with the arm's task."""
    changed = ARMS[arm]
    if isinstance(changed, Boundary):
        return replace(Objective.named("span+sbo"), tasks=(changed,))
    return replace(Objective.named("span"), masking=changed)


def prepare(folder: Path, settings: Mapping, models: Path) -> tuple[dict, tuple]:
    """The almanac in a small vocabulary, and what is asked of the models."""
    text = core.small_tokens(folder, settings["vocabulary"])
    return text_facts(text), (
        core.questions(text, settings["start"].max_length - 2, settings["fit_documents"]),
        models,
    )


def one(arm: str, seed: int, settings: Mapping, asked: core.Asked, models: Path) -> dict:
    """A model, and what it knows without fine-tuning. It is not kept: to train it again is
    short."""
    objective = objective_of(arm)
    run = replace(settings["go_on"], objective="span+sbo" if objective.tasks else "span", seed=seed)
    begun, _ = core.trained("start", seed, settings, asked.text, models)
    model, history = go_on(begun, run, asked.text, objective)
    return rounded(core.measured(model.eval(), settings["start"], asked)) | {
        "curve": curve(history.losses["mlm"])
    }
