"""Attention maps as pictures, and the same in words. Chapter: `book/bert/bert.ipynb`."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor


def draw_heads(maps: Tensor, tokens: Sequence[str], names: Sequence[str] = ()) -> Figure:
    """One heat map for each of the A heads in `maps` [A,n,n]: a row is a token that looks, a column a token that
    is looked at; the darker the cell, the larger the weight. All heads share one scale, from 0 to 1.
    """
    rows = math.ceil(len(maps) / 2)  # two beside each other: a page shrinks a wider picture until it is unreadable
    side = max(2.6, 0.3 * len(tokens))  # inches: enough for a label of each token
    figure, axes = plt.subplots(
        rows, 2, figsize=(2 * side + 1, rows * (side + 0.7)), squeeze=False, layout="constrained"
    )
    for head, axis in enumerate(axes.flat):
        if head >= len(maps):
            axis.set_visible(False)
            continue
        image = axis.imshow(maps[head].detach().cpu().numpy(), vmin=0, vmax=1, cmap="Blues")
        axis.set_title(names[head] if names else f"head {head + 1}", fontsize=11)
        axis.set_xticks(range(len(tokens)), tokens, rotation=60, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(tokens)), tokens)
        axis.set_xlabel("looked at")
        axis.set_ylabel("looks")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.8)
    return figure


def describe_heads(maps: Tensor, tokens: Sequence[str]) -> str:
    """The figure in words: for each head and each token, the token that it looks at most. Where no weight passes
    twice the even share 1/n, it says "all alike" instead.
    """
    lines = []
    for head, weights in enumerate(maps, start=1):
        best, place = weights.max(-1)
        looked_at = [
            tokens[j] if weight > 2 / len(tokens) else "all alike"
            for weight, j in zip(best.tolist(), place.tolist(), strict=True)
        ]
        if set(looked_at) == {"all alike"}:
            lines.append(f"head {head}: every token looks at all alike")
        else:
            pairs = ", ".join(f"{token} → {other}" for token, other in zip(tokens, looked_at, strict=True))
            lines.append(f"head {head}: {pairs}")
    return "\n".join(lines)
