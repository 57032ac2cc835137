"""The span boundary objective: predict each token of a span from its two neighbors outside.
Chapter: `book/spanbert/boundary`.

Source: SpanBERT §3.2 and the released code, whose edge rules are kept: a span at a block's edge has
no row, touching spans are one, and tokens after the `max_targets`-th of a span get no target.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.masking import MaskedBlocks, booleans, check_lengths, whole_numbers
from spanbert_tutorial.errors import InputError, is_whole, shown
from spanbert_tutorial.spanbert.span_masking import spans_of

MOST_TARGETS = 100_000  # of a span; each has its column


@dataclass(frozen=True)
class BoundaryTargets:
    """One row a span. batch: int64 [k], the block it stands in. pairs: int64 [k,2], the left and
    the right boundary token as indices into the model's input, [CLS] in front. targets: int64
    [k,max_targets], original ids, −100 where there is none. real: int64 [t,2], row and column of
    each real target, if they were looked up before: on a graphics card that makes the computer
    wait."""

    batch: Tensor
    pairs: Tensor
    targets: Tensor
    real: Tensor | None = None

    def places(self) -> Tensor:
        """Row and column of each real target, int64 [t,2], row by row."""
        return (self.targets != NO_TARGET).nonzero() if self.real is None else self.real

    def count(self) -> int:
        """t, the number of real targets."""
        return len(self.places())

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """(positions in the model's input, original ids) of the real targets, int [t] each, in the
        order of the rows."""
        targets = self.targets.cpu().numpy()
        left = self.pairs[:, 0].cpu().numpy()
        row, offset = (targets != NO_TARGET).nonzero()
        return left[row] + 1 + offset, targets[row, offset]

    def to(self, device: torch.device | str) -> "BoundaryTargets":
        parts = (self.batch, self.pairs, self.targets, self.places())
        return BoundaryTargets(*(part.to(device) for part in parts))


def boundary_targets(
    selected: np.ndarray, ids: np.ndarray, lengths: np.ndarray, max_targets: int = 15
) -> BoundaryTargets:
    """Rows of the span boundary objective for a batch of blocks (without [CLS] and [SEP]).

    selected: bool [B,n]; ids: int [B,n], the original ids, also where the input keeps or replaces
    the token; lengths: int [B], real lengths. A span that touches its block's first or last token
    gives no row. Raises InputError for shapes that do not fit together, arrays that hold something
    else, lengths beyond n, or a max_targets that is no whole number from 1 to MOST_TARGETS.
    """
    selected = booleans("selected", selected, "a token is chosen")
    ids = whole_numbers("ids", ids)
    lengths = whole_numbers("lengths", lengths)
    _check(selected, ids, lengths)
    max_targets = checked_max_targets(max_targets)
    n = selected.shape[1]
    # blocks one after the other, a free place behind each, so that no run crosses into the next
    # block
    real = np.pad(selected & (np.arange(n) < lengths[:, None]), ((0, 0), (0, 1)))  # [B, n + 1]
    spans = spans_of(real.ravel())  # [k, 2]
    batch, (first, last) = spans[:, 0] // (n + 1), spans.T % (n + 1)  # [k] each
    inner = (first > 0) & (last < lengths[batch] - 1)
    batch = batch[inner]
    first = first[inner]
    last = last[inner]
    places = first[:, None] + np.arange(max_targets)  # [k, max_targets]
    originals = ids[batch[:, None], np.minimum(places, last[:, None])].astype(np.int64)  # for −100
    targets = np.where(places <= last[:, None], originals, NO_TARGET)
    pairs = np.stack([first - 1, last + 1], axis=1) + 1  # the neighbors outside, then + 1 for [CLS]
    return BoundaryTargets(
        *(torch.from_numpy(part.astype(np.int64)) for part in (batch, pairs, targets))
    )


def with_places(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """A batch with the places of its boundary targets, if it has such targets."""
    if "boundary_targets" not in batch:
        return batch
    return batch | {"boundary_real": (batch["boundary_targets"] != NO_TARGET).nonzero()}


def _check(selected: np.ndarray, ids: np.ndarray, lengths: np.ndarray) -> None:
    if selected.ndim != 2 or ids.shape != selected.shape or lengths.shape != selected.shape[:1]:
        raise InputError(
            f"selected has shape {selected.shape}, ids {ids.shape} and lengths {lengths.shape}: "
            "give [B,n], [B,n] and [B]."
        )
    check_lengths(lengths, selected.shape[1])


def checked_max_targets(max_targets: int) -> int:
    """The number. Raises InputError unless it is a whole one from 1 to MOST_TARGETS."""
    if not is_whole(max_targets) or not 1 <= max_targets <= MOST_TARGETS:
        raise InputError(
            f"max_targets is {shown(max_targets)}: give a whole number of at least 1, such as "
            f"15, and at "
            f"most {MOST_TARGETS:,}."
        )
    return int(max_targets)


class SpanBoundaryObjective(nn.Module):
    """y_i = f(x_{s−1}, x_{e+1}, p_{i−s+1}): twice linear, GELU, LayerNorm; then the tied vocabulary
    layer.

    The paper's positions p count from 1; row j of `positions` is p_{j+1}. The decoder's weight is
    `embedding_weight` itself ([V,H], shared with the input embedding); its bias is the head's own.
    SpanBERT §3.2; biases and the 200-dimensional positions as in the released code.
    """

    def __init__(
        self,
        hidden_size: int,
        embedding_weight: Tensor,
        max_targets: int = 15,
        position_dim: int = 200,
    ) -> None:
        super().__init__()
        if embedding_weight.ndim != 2 or embedding_weight.shape[1] != hidden_size:
            raise InputError(
                f"the embedding weight has shape {tuple(embedding_weight.shape)}: "
                f"its second size must be hidden_size {hidden_size}."
            )
        self.positions = nn.Embedding(checked_max_targets(max_targets), position_dim)
        self.linear1 = nn.Linear(2 * hidden_size + position_dim, hidden_size)
        self.norm1 = nn.LayerNorm(hidden_size, eps=1e-12)
        self.linear2 = nn.Linear(hidden_size, hidden_size)
        self.norm2 = nn.LayerNorm(hidden_size, eps=1e-12)
        self.embedding_weight = embedding_weight
        self.bias = nn.Parameter(torch.zeros(embedding_weight.shape[0]))
        for linear in (self.linear1, self.linear2):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
        nn.init.normal_(self.positions.weight, std=0.02)

    def represent(self, hidden: Tensor, targets: BoundaryTargets) -> Tensor:
        """The vectors y [t,H] of the t real targets, row by row. hidden: [B,n,H], [CLS] at place 0.

        Raises InputError when the targets have more columns than the head has positions.
        """
        columns = targets.targets.shape[1]
        known = self.positions.num_embeddings
        if columns > known:
            raise InputError(
                f"the targets have {columns} columns, but the head knows {known} positions: "
                "give both the same max_targets."
            )
        row, offset = targets.places().unbind(1)  # [t], [t]; offset j is p_{j+1}
        ends = hidden[targets.batch[row, None], targets.pairs[row]].flatten(
            1
        )  # [t, 2H], left then right
        together = torch.cat([ends, self.positions(offset)], dim=1)  # [t, 2H + position_dim]
        inner = self.norm1(F.gelu(self.linear1(together)))
        return self.norm2(F.gelu(self.linear2(inner)))

    def forward(self, hidden: Tensor, targets: BoundaryTargets) -> Tensor:
        """Logits [t,V] of the t real targets, row by row. hidden: [B,n,H], the encoder's output."""
        return F.linear(self.represent(hidden, targets), self.embedding_weight, self.bias)


def boundary_loss(
    logits: Tensor,
    targets: BoundaryTargets,
    masked_tokens: int | Tensor,
    normalization: str = "paper",
) -> Tensor:
    """Cross-entropy of the span boundary objective in nats, a scalar; 0 when there is no target.

    "paper": the sum over targets divided by the number of masked tokens, so that together with the
    mean masked language model loss each masked token counts once in each part (SpanBERT §3.2, its
    loss summed per token). "released": divided by the number of targets plus one, as the released
    code does. Raises InputError for another normalization.
    """
    if normalization not in ("paper", "released"):
        raise InputError(f'normalization "{normalization}" is unknown: use "paper" or "released".')
    real = targets.targets[targets.places().unbind(1)]  # [t]
    total = F.cross_entropy(logits.float(), real, reduction="sum")
    if normalization == "released":
        return total / (len(real) + 1)
    # a tensor is a share of the count of several processes, and may be below 1
    return total / (masked_tokens if isinstance(masked_tokens, Tensor) else max(masked_tokens, 1))


class Boundary(AuxiliaryObjective):
    """The span boundary objective as a second task. A masked token is trained by both losses, so
    the sum is divided by the number of masked tokens; the mean that is shown is over the
    targets."""

    name = "boundary"
    loss_name = "sbo"
    explained = "a target is a token of a span with a neighbor on each side"
    per_masked_token = True
    weight_names = (("boundary.", "boundary."),)

    def head(self, hidden_size: int, embedding_weight: Tensor) -> SpanBoundaryObjective:
        return SpanBoundaryObjective(hidden_size, embedding_weight)

    def targets(
        self, segments: Sequence[MaskedBlocks], labels: np.ndarray | None
    ) -> dict[str, Tensor]:
        parts = []
        before = np.zeros(len(segments[0].lengths), dtype=np.int64)  # tokens and [SEP]s in front
        for one in segments:
            rows = boundary_targets(one.selected, one.ids, one.lengths)
            shift = torch.from_numpy(before)[rows.batch, None]
            parts.append((rows.batch, rows.pairs + shift, rows.targets))
            before = before + one.lengths + 1
        return self.named(BoundaryTargets(*map(torch.cat, zip(*parts, strict=True))))

    def named(self, rows: BoundaryTargets) -> dict[str, Tensor]:
        """The rows as tensors of a batch."""
        parts = {"batch": rows.batch, "pairs": rows.pairs, "targets": rows.targets}
        return {f"{self.name}_{field}": tensor for field, tensor in parts.items()}

    def rows(self, batch: dict[str, Tensor]) -> BoundaryTargets:
        """The rows that a batch holds."""
        return BoundaryTargets(
            batch["boundary_batch"],
            batch["boundary_pairs"],
            batch["boundary_targets"],
            batch.get("boundary_real"),
        )

    def count(self, batch: dict[str, Tensor]) -> int:
        return self.rows(batch).count()

    def loss(self, head: nn.Module, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        rows = self.rows(batch)
        return boundary_loss(head(hidden, rows), rows, masked_tokens=1)

    def predicted_tokens(self, batch: dict[str, Tensor]) -> tuple[np.ndarray, np.ndarray] | None:
        return self.rows(batch).tokens()

    def predictions(
        self, head: nn.Module, hidden: Tensor, selected: np.ndarray, ids: np.ndarray
    ) -> dict[int, Tensor]:
        rows = boundary_targets(selected[None], ids[None], np.array([len(ids)]))
        positions, _ = rows.tokens()
        logits = head(hidden, rows.to(hidden.device))
        # places of the block: without [CLS]
        return dict(zip((positions - 1).tolist(), logits, strict=True))


class Placebo(Boundary):
    """A control for the objective: each row has the targets of its span, and reads the neighbors
    of the next span of the batch, which often stands in the same block. As many targets and
    computations, but not its own boundary."""

    def targets(
        self, segments: Sequence[MaskedBlocks], labels: np.ndarray | None
    ) -> dict[str, Tensor]:
        batch = super().targets(segments, labels)
        places = ("boundary_batch", "boundary_pairs")
        return batch | {name: batch[name].roll(-1, dims=0) for name in places}

    def predicted_tokens(self, batch: dict[str, Tensor]) -> None:
        """None: its rows do not say where the targets stand."""
        return None

    def predictions(
        self, head: nn.Module, hidden: Tensor, selected: np.ndarray, ids: np.ndarray
    ) -> dict[int, Tensor]:
        return {}
