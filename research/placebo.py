"""A control for the span boundary objective. Page: `book/evidence/spans_and_boundaries`."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor, nn

from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking


class Placebo(Boundary):
    """Each row has the targets of its span, and reads the neighbors of the next span of the batch,
    which often lies in the same block. As many targets and computations, but not its own
    boundary."""

    def targets(
        self, segments: Sequence[MaskedBlocks], labels: np.ndarray | None
    ) -> dict[str, Tensor]:
        rows = self.rows(super().targets(segments, labels))
        starts = (rows.offset == 0).nonzero()[:, 0]  # of the spans
        span = (rows.offset == 0).cumsum(0) - 1  # of each row
        other = starts.roll(-1)[span]
        moved = rows._replace(
            batch=rows.batch[other], left=rows.left[other], right=rows.right[other]
        )
        return {f"{self.name}_{name}": column for name, column in moved._asdict().items()}

    def predicted_tokens(self, batch: dict[str, Tensor]) -> None:
        """None: its rows do not tell the positions of the targets."""
        return None

    def predictions(
        self, head: nn.Module, hidden_states: Tensor, masked: np.ndarray, ids: np.ndarray
    ) -> dict[int, Tensor]:
        return {}


# a run asks for its objective by name
OBJECTIVES["span+placebo"] = Objective(SpanMasking(), "span", (Placebo(),))
