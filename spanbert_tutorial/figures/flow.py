"""From a document to a loss, and what must be there before the loss can fall. Chapters:
`book/spanbert/pretraining_spanbert`, `book/bert/pretraining`.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from spanbert_tutorial.figures.diagram import SMALL, WIDTH, Diagram
from spanbert_tutorial.figures.encoder import shape
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.boundary import SpanBoundaryObjective
from spanbert_tutorial.spanbert.boundary_task import Boundary

BATCH = (
    "input_ids",
    "attention_mask",
    "labels",
    "masked_positions",
    "boundary_batch",
    "boundary_left",
    "boundary_right",
    "boundary_labels",
)


@torch.no_grad()
def shapes_of(model: PretrainingModel, batch: dict[str, Tensor]) -> dict[str, str]:
    """What one real call holds: name → shape as text; batch and model of an objective with span
    boundary objective."""
    hidden = model.encode(batch)
    rows = Boundary().rows(batch)
    head = cast("SpanBoundaryObjective", model.boundary)
    tensors = {
        **{name: batch[name] for name in BATCH},
        "hidden": hidden,
        "mlm_states": hidden[batch["labels"] != -100],
        "mlm_logits": model.masked_logits(hidden, batch),
        "sbo_logits": head(hidden, rows),
    }
    shapes = {name: shape(*tensor.shape) for name, tensor in tensors.items()}
    return {**shapes, "sbo_states": shape(len(rows.labels), head.linear1.in_features)}


def pretraining_flow(
    model: PretrainingModel, batch: dict[str, Tensor], mask_ratio: float
) -> Diagram:
    """SpanBERT's pre-training: the steps as boxes, the tensors of a real call with their shapes
    between them.

    mask_ratio: the share of a block's tokens that is chosen.
    """
    shapes = shapes_of(model, batch)
    t = len(batch["masked_positions"])
    told = {name: f"{name} {size}" for name, size in shapes.items()}
    picture = Diagram(
        WIDTH,
        560,
        "From a document to the loss",
        "Documents are cut into blocks of whole sentences. Spans of a block are selected, and the "
        "input is corrupted. "
        f"The encoder reads {told['input_ids']} and gives {told['hidden']}. The MLM head reads the "
        f"hidden states at the masked positions, {shapes['mlm_states']}, and gives logits "
        f"{shapes['mlm_logits']} for "
        f"the {t} labels. The SBO "
        f"head reads, for each target, the two states of {told['boundary_left']} and {told['boundary_right']} and "
        f"a vector p, "
        f"{shapes['sbo_states']}, and gives logits {shapes['sbo_logits']} for "
        f"{told['boundary_labels']}. Each head has a sum of losses; both sums together, divided "
        f"by the {t} masked "
        "tokens, are the training loss.",
    )
    for place, name in enumerate(("document", "block", "spans", "corrupt")):
        picture.box(8, 8 + 54 * place, 96, 30, [name])
        picture.arrow(56, 38 + 54 * place, 56, 61 + 54 * place)
    notes = ("whole sentences", f"{mask_ratio:.0%} of tokens", "80/10/10 per span")
    for place, note in enumerate(notes):
        picture.text(64, 54 + 54 * place, note, size=SMALL, anchor="start", soft=True)
    _tensors(picture, 190, 24, "the batch", [told[name] for name in BATCH])
    picture.arrow(104, 185, 178, 185).line((182, 12), (182, 194))
    picture.box(8, 226, 344, 34, [f"encoder: {shapes['input_ids']} → {shapes['hidden']}"])
    _branch(
        picture,
        8,
        "masked",
        "MLM",
        ("hidden at the", "masked_positions"),
        shapes,
        f"labels {shape(t)}",
    )
    _branch(
        picture,
        188,
        "boundary",
        "SBO",
        ("hidden at boundary_left and", "boundary_right, and p"),
        shapes,
        told["boundary_labels"],
    )
    return picture.loss(70, 526, 220, f"(sum MLM + sum SBO) / {t}")


def _tensors(picture: Diagram, x: float, y: float, name: str, lines: Sequence[str]) -> None:
    """A list of tensors."""
    picture.text(x, y, name, anchor="start", bold=True, size=12)
    for place, line in enumerate(lines, start=1):
        picture.text(x, y + 19 * place, line, anchor="start", size=12)


def _branch(
    picture: Diagram,
    x: float,
    kind: str,
    name: str,
    reads: tuple[str, str],
    shapes: dict[str, str],
    targets: str,
) -> None:
    """One head: what it reads, what it gives, and its loss."""
    middle = x + 82
    picture.arrow(middle, 262, middle, 276, kind)
    for y, line in zip((292, 307, 322), (*reads, shapes[f"{name.lower()}_states"]), strict=True):
        picture.text(middle, y, line, size=SMALL, soft=True)
    picture.arrow(middle, 328, middle, 346, kind)
    picture.head(x + 22, 346, 120, 27, [f"{name} head"], kind, down=True)
    picture.arrow(middle, 374, middle, 392)
    picture.text(middle, 406, f"logits {shapes[f'{name.lower()}_logits']}", size=12)
    picture.text(middle, 424, "against", size=SMALL, soft=True).text(
        middle, 439, targets, size=SMALL
    )
    picture.arrow(middle, 445, middle, 462)
    picture.loss(x + 12, 464, 140, f"{name}: sum of −ln P")
    picture.arrow(middle, 491, 180 + (middle - 180) * 0.45, 524, bend="v")


def find_carry_decode(words: Sequence[str] = ("in", "Thornby"), hidden: str = "Castle") -> Diagram:
    """What a model needs to profit from a neighbor, for one gap behind two visible words: three
    parts, each worthless alone."""
    other, neighbor = words
    picture = Diagram(
        WIDTH,
        300,
        "To use a neighbor, a model must find, carry and decode",
        f"A gap, [MASK], follows “{other} {neighbor}”. 1, find: the query of the gap meets "
        f"the key of "
        f"“{neighbor}”, so the gap looks there. 2, carry: the value of “{neighbor}” flows into "
        f"the state of the gap. "
        f"3, decode: the head turns this state into the prediction “{hidden}”. Each of the three "
        f"is worthless without "
        "the other two.",
    )
    left = 132
    middle = 204
    right = 300
    for token, x in ((other, left), (neighbor, middle), ("[MASK]", right)):
        wide = round(len(token) * 7.4 + 16)
        kind = "masked" if token == "[MASK]" else ""
        picture.token(x - wide / 2, 276, token, kind, wide)
        picture.arrow(x, 274, x, 250).vector(x - 17, 241, kind)
    picture.line((right - 21, 235), (right - 21, 215), (middle + 10, 215), dashed=True)
    picture.arrow(middle + 10, 215, middle + 10, 236)
    picture.path(
        f"M{middle - 10} 236V160H{right - 28}", 'fill="none" stroke="currentColor" stroke-width="3"'
    )
    picture.path(f"M{right - 19} 160L{right - 29} 154V166Z", 'fill="currentColor"')
    picture.arrow(right, 237, right, 172, "masked")
    picture.vector(right - 17, 163, "masked").vector(right - 17, 154)
    picture.arrow(right, 150, right, 116, "masked")
    picture.head(right - 50, 84, 100, 32, ["head"], "masked").arrow(right, 83, right, 60)
    wide = round(len(hidden) * 7.4 + 16)
    picture.token(right - wide / 2, 36, hidden, "prediction", wide)
    parts = {
        72: ("3  decode", "a head makes a", "prediction of it"),
        146: ("2  carry", "a value carries", "what is there"),
        216: ("1  find", "a query meets", "a key"),
    }
    for y, (name, *lines) in parts.items():
        picture.text(0, y, name, anchor="start", bold=True)
        for place, line in enumerate(lines, start=1):
            picture.text(0, y + 15 * place, line, anchor="start", size=12, soft=True)
    return picture.text(WIDTH / 2, 16, "each is worthless without the other two", soft=True)
