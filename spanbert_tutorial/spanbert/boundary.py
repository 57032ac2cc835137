"""The span boundary objective: predict each token of a span from its
two neighbors outside. Chapter: `book/spanbert/boundary`.

Source: SpanBERT §3.2 and the released code, whose rules at the edges
are kept. As an auxiliary objective of a run: `boundary_task`.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import initialize
from spanbert_tutorial.bert.masking import check_lengths, check_masked
from spanbert_tutorial.errors import require
from spanbert_tutorial.spanbert.span_masking import spans_of


class BoundaryTargets(NamedTuple):
    """One row per predicted token, int64 [t] each.

    left and right index the model's input, where [CLS] is in front;
    offset j belongs to p_{j+1}; labels: the original ids."""

    batch: Tensor
    left: Tensor
    right: Tensor
    offset: Tensor
    labels: Tensor


def boundary_targets(
    masked: np.ndarray,
    ids: np.ndarray,
    lengths: np.ndarray,
    max_offset: int = 15,
) -> BoundaryTargets:
    """One row for each token of a span that has both neighbors.

    Blocks come without [CLS] and [SEP]: masked bool [B,n], ids int
    [B,n] (the original ones), lengths int [B]. Tokens after the
    max_offset-th of a span have no row."""
    masked, ids, lengths = map(np.asarray, (masked, ids, lengths))
    check_blocks(masked, ids, lengths, max_offset)
    n = masked.shape[1]
    inside = masked & (np.arange(n) < lengths[:, None])
    # a free column keeps runs of two blocks apart
    apart = np.pad(inside, ((0, 0), (0, 1))).ravel()
    block, spans = np.divmod(spans_of(apart), n + 1)
    block, (first, last) = block[:, 0], spans.T
    inner = (first > 0) & (last < lengths[block] - 1)
    block, first, last = block[inner], first[inner], last[inner]

    sizes = np.minimum(last - first + 1, max_offset)
    span = np.repeat(np.arange(len(sizes)), sizes)  # [t]
    before = np.cumsum(sizes) - sizes  # rows of the spans before
    offset = np.arange(len(span)) - before[span]
    batch, left, right = block[span], first[span] - 1, last[span] + 1
    labels = ids[batch, first[span] + offset]
    rows = batch, left + 1, right + 1, offset, labels  # + 1: [CLS]
    return BoundaryTargets(*map(as_int64, rows))


def as_int64(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.int64))


class SpanBoundaryObjective(nn.Module):
    """y_i = f(x_{s−1}, x_{e+1}, p_{i−s+1}), then the vocabulary.

    The vocabulary layer's weight is the input embedding [V,H] itself.
    SpanBERT §3.2; sizes and biases as in the released code."""

    def __init__(
        self,
        hidden_size: int,
        embedding_weight: Tensor,
        max_offset: int = 15,
        position_dim: int = 200,
    ) -> None:
        super().__init__()
        check_head(hidden_size, embedding_weight, max_offset)
        H = hidden_size
        self.positions = nn.Embedding(max_offset, position_dim)
        self.linear1 = nn.Linear(2 * H + position_dim, H)
        self.norm1 = nn.LayerNorm(H, eps=1e-12)
        self.linear2 = nn.Linear(H, H)
        self.norm2 = nn.LayerNorm(H, eps=1e-12)
        self.embedding_weight = embedding_weight
        self.bias = nn.Parameter(torch.zeros(len(embedding_weight)))
        initialize(self)

    def forward(
        self, hidden_states: Tensor, targets: BoundaryTargets
    ) -> Tensor:
        """Logits [t,V]. hidden_states: [B,n,H]."""
        left = hidden_states[targets.batch, targets.left]  # [t,H]
        right = hidden_states[targets.batch, targets.right]  # [t,H]
        position = self.positions(targets.offset)  # [t,200]
        y = torch.cat([left, right, position], dim=1)
        y = self.norm1(F.gelu(self.linear1(y)))
        y = self.norm2(F.gelu(self.linear2(y)))  # [t,H]
        return F.linear(y, self.embedding_weight, self.bias)


def boundary_loss(
    logits: Tensor, targets: BoundaryTargets, masked_tokens: int
) -> Tensor:
    """Cross-entropy in nats, summed over rows, per masked token.

    So a masked token counts once here and once in the MLM loss
    (SpanBERT §3.2)."""
    total = F.cross_entropy(
        logits.float(), targets.labels, reduction="sum"
    )
    return total / max(masked_tokens, 1)


def check_blocks(
    masked: np.ndarray,
    ids: np.ndarray,
    lengths: np.ndarray,
    max_offset: int,
) -> None:
    """Raises InputError unless `boundary_targets` takes them."""
    told = f"masked has shape {masked.shape}, max_offset is {max_offset}: give bool [B,n] and 1 or more."
    require(masked.ndim == 2 and max_offset >= 1, told)
    check_masked(masked, ids)
    check_lengths(lengths, masked.shape)


def check_head(
    hidden_size: int, embedding_weight: Tensor, max_offset: int
) -> None:
    """Raises InputError for sizes that do not fit together."""
    shape = tuple(embedding_weight.shape)
    told = f"embedding_weight has shape {shape}: give [V,{hidden_size}], and max_offset 1 or more."
    require(shape[1:] == (hidden_size,) and max_offset >= 1, told)
