"""What the comparisons with transformers share: encoders in which a swapped pair of names would
show, and a batch with padding."""

import torch
from torch import nn

LIMIT = {torch.float32: 1e-5, torch.float64: 1e-10}


def sizes(hidden: int, intermediate: int, layers: int = 2, heads: int = 2, **more: int) -> dict:
    """What the config of a small encoder says, here and in transformers."""
    return {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **more,
    }


def random_weights(kind, config, seed: int = 0) -> nn.Module:
    """An encoder with every weight random, biases and LayerNorm too, in evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    encoder = kind(config, generator)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 1:
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return encoder.eval()


def random_batch(rows: int = 3, length: int = 16) -> dict[str, torch.Tensor]:
    """ids, segments (two in each row) and a mask with another length in each row."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 101, (rows, length), generator=generator)
    lengths = torch.tensor([length - 5 * row for row in range(rows)])
    place = torch.arange(length)
    return {
        "input_ids": ids,
        "token_type_ids": (place >= length // 3).long().expand(rows, -1).contiguous(),
        "attention_mask": (place < lengths[:, None]).long(),
    }


def difference(here: torch.Tensor, there: torch.Tensor) -> float:
    """The greatest one of two numbers at the same place."""
    return (here - there).abs().max().item()
