"""Attention forward and backward: the fused kernel against the maps written out, on the CPU.

`python -m benchmarks.attention [OUTPUT.json]`. Why `fast_attention.unfused_is_faster` asks what it asks.
"""

import torch

from benchmarks.race import keep, race
from spanbert_tutorial.bert import encoder, fast_attention
from spanbert_tutorial.bert.config import EncoderConfig

SHAPES = ((64, 64), (32, 128), (16, 256), (8, 512))  # (B, n): 4,096 tokens each


def step(fused: bool, rows: int, length: int, dtype: torch.dtype):
    """Forward and backward of the attention of one mini layer."""
    torch.manual_seed(0)
    attention = encoder.SelfAttention(
        EncoderConfig.mini(vocab_size=50, attention_probs_dropout_prob=0.0)
    )
    hidden = torch.randn(rows, length, 256, requires_grad=True)
    mask = torch.ones(rows, 1, 1, length, dtype=torch.bool)

    def call():
        fast_attention.unfused_is_faster = lambda value: not fused
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            output = attention(hidden, mask)
        output.float().sum().backward()

    return call


def main() -> None:
    results = {"threads": torch.get_num_threads()}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        results[name] = {
            f"{rows} x {n}": race(step(False, rows, n, dtype), step(True, rows, n, dtype))
            for rows, n in SHAPES
        }
    keep("speed_attention", results)  # a ratio above 1: the maps written out are faster


if __name__ == "__main__":
    main()
