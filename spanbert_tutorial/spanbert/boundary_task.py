"""The span boundary objective as the auxiliary objective of a run.
Chapter: `book/spanbert/pretraining_spanbert`."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.spanbert.boundary import (
    BoundaryTargets,
    SpanBoundaryObjective,
    boundary_loss,
    boundary_targets,
)


class Boundary(AuxiliaryObjective):
    """A masked token is trained by both losses, so the trained sum is
    divided by the number of masked tokens; the mean that is shown is
    over the targets."""

    name = "boundary"
    loss_name = "sbo"
    explained = "a target is a token of a span with a neighbor on each side"
    per_masked_token = True
    weight_names = (("boundary.", "boundary."),)

    def head(self, hidden_size: int, embedding_weight: Tensor) -> nn.Module:
        return SpanBoundaryObjective(hidden_size, embedding_weight)

    def targets(
        self, segments: Sequence[MaskedBlocks], labels: np.ndarray | None
    ) -> dict[str, Tensor]:
        found = []
        # tokens and [SEP]s in front of a segment
        before = torch.zeros(len(segments[0].lengths), dtype=torch.long)
        for one in segments:
            rows = boundary_targets(one.masked, one.ids, one.lengths)
            shift = before[rows.batch]
            found.append(rows._replace(left=rows.left + shift, right=rows.right + shift))
            before = before + torch.from_numpy(one.lengths) + 1
        columns = zip(BoundaryTargets._fields, zip(*found, strict=True), strict=True)
        return {f"{self.name}_{name}": torch.cat(parts) for name, parts in columns}

    def rows(self, batch: dict[str, Tensor]) -> BoundaryTargets:
        """The rows of a batch."""
        return BoundaryTargets(*(batch[f"{self.name}_{k}"] for k in BoundaryTargets._fields))

    def loss(self, head: nn.Module, hidden_states: Tensor, batch: dict[str, Tensor]) -> Tensor:
        rows = self.rows(batch)
        return boundary_loss(head(hidden_states, rows), rows, masked_tokens=1)

    def predicted_tokens(self, batch: dict[str, Tensor]) -> tuple[np.ndarray, np.ndarray] | None:
        rows = self.rows(batch)
        positions = rows.left + 1 + rows.offset
        return positions.cpu().numpy(), rows.labels.cpu().numpy()

    def predictions(
        self, head: nn.Module, hidden_states: Tensor, masked: np.ndarray, ids: np.ndarray
    ) -> dict[int, Tensor]:
        rows = boundary_targets(masked[None], ids[None], np.array([len(ids)]))
        here = BoundaryTargets(*(x.to(hidden_states.device) for x in rows))
        # positions of the block: without [CLS]
        positions = (rows.left + rows.offset).tolist()
        return dict(zip(positions, head(hidden_states, here), strict=True))
