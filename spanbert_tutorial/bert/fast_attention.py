"""Attention by the kernel that is fastest. Page: `book/workshop/engine`."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
) -> Tensor:
    """softmax(QKᵀ/√d)V, [B,A,n,d] each.

    PyTorch's fused kernel never stores the [B,A,n,n] probabilities."""
    if unfused_is_faster(value):
        probs = attention_probs(query, key, mask)
        return F.dropout(probs, dropout).to(value.dtype) @ value
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout
    )


def attention_probs(
    query: Tensor, key: Tensor, mask: Tensor | None
) -> Tensor:
    """softmax(QKᵀ/√d), [B,A,n,n], in float32 at least."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    exact = torch.promote_types(scores.dtype, torch.float32)
    return scores.softmax(-1, dtype=exact)


def unfused_is_faster(value: Tensor) -> bool:
    """On a CPU in bfloat16 the fused kernel's backward pass is slow;
    storing the probabilities of up to 256 positions is not
    (`data/results/speed_attention.json`)."""
    cpu = value.device.type == "cpu" and value.dtype == torch.bfloat16
    return cpu and value.requires_grad and value.shape[2] <= 256
