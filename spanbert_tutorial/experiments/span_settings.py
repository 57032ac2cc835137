"""Settings of span masking and of the span boundary objective (SBO), one changed at a time. Chapter:
`book/spanbert/boundary`.

All go on from the starts of `spans_and_boundaries`, for as many tokens and with the same seeds; what a row has to be
compared with, "span" or "span+sbo", stands in the file of that experiment (give the same `--models`). No task is
trained: these are miniatures.

No sign was expected, with two exceptions that stood here before the first run: `CLAIMS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from spanbert_tutorial.boundary import Boundary, boundary_loss
from spanbert_tutorial.experiments import spans_and_boundaries as core
from spanbert_tutorial.experiments.boundary_probe import go_on
from spanbert_tutorial.experiments.grid import as_json, text_facts
from spanbert_tutorial.experiments.results import CURVES, rounded
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.span_masking import SpanMasking


@dataclass(frozen=True)
class Weighted(Boundary):
    """SBO, its part of the loss multiplied."""

    weight: float

    def loss(self, head: nn.Module, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        return self.weight * super().loss(head, hidden, batch)


@dataclass(frozen=True)
class BoundariesOnly(Boundary):
    """SBO without positions: all pieces of a span are predicted from the same vector."""

    def loss(self, head: nn.Module, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        rows, none = self.rows(batch), {"positions.weight": torch.zeros_like(head.positions.weight)}
        return boundary_loss(torch.func.functional_call(head, none, (hidden, rows)), rows, masked_tokens=1)


ARM, SEEDS = "arm", 3
ARMS = {
    "p 0.1": SpanMasking(p=0.1),
    "p 0.4": SpanMasking(p=0.4),
    "at most 3 words": SpanMasking(max_words=3),
    "at most 20 words": SpanMasking(max_words=20),
    "10 % hidden": SpanMasking(mask_ratio=0.1),
    "25 % hidden": SpanMasking(mask_ratio=0.25),
    "40 % hidden": SpanMasking(mask_ratio=0.4),
    "released mode": SpanMasking(complete_words=False),
    "SBO × 0.3": Weighted(0.3),
    "SBO × 3": Weighted(3.0),
    "boundaries only": BoundariesOnly(),
}
CLAIMS = {
    "boundaries only": "kind of a hidden name from the tokens right outside, %: as good as span+sbo, none shown better",
    "SBO × 3": "names that must be inferred, true name ranked first, %: below span+sbo, since SBO takes room",
}
SETTINGS = {"vocabulary": core.PIECES, "start": core.START, "go_on": core.GO_ON, "claims": CLAIMS, **CURVES,
            "fit_documents": core.FIT_DOCUMENTS}  # fmt: skip


def objective_of(arm: str) -> Objective:
    """The row "span" with the arm's scheme, or the row "span+sbo" with the arm's task."""
    changed = ARMS[arm]
    if isinstance(changed, Boundary):
        return replace(Objective.named("span+sbo"), tasks=(changed,))
    return replace(Objective.named("span"), masking=changed)


def prepare(folder: Path, settings: Mapping, models: Path) -> tuple[dict, tuple]:
    """The almanac in a small vocabulary, and what is asked of the models."""
    text = core.small_pieces(folder, settings["vocabulary"])
    return text_facts(text), (core.questions(text, settings["start"].length - 2, settings["fit_documents"]), models)


def one(arm: str, seed: int, settings: Mapping, asked: core.Asked, models: Path) -> dict:
    """A model, trained or kept, and what it knows without fine-tuning."""
    objective = objective_of(arm)
    run = replace(settings["go_on"], objective="span+sbo" if objective.tasks else "span", seed=seed)
    facts = as_json({"run": run, "changed": ARMS[arm], **text_facts(asked.text)})
    begun, _ = core.trained("start", seed, settings, asked.text, models)
    model, losses = core.kept_or_trained(models / f"{arm}-{seed}", facts,
                                         lambda: go_on(begun, run, asked.text, objective), asked.text.wordpiece,
                                         run.objective)  # fmt: skip
    return rounded(core.measured(model, settings["start"], asked)) | {"curve": losses}
