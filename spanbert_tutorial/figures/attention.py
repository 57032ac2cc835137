"""Attention maps as pictures, and the same in words. Chapter: `book/bert/bert.ipynb`."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from torch import Tensor

from spanbert_tutorial.errors import check_text


def draw_heads(maps: Tensor, tokens: Sequence[str], names: Sequence[str] = ()) -> Figure:
    """One heat map for each of the A heads in `maps` [A,n,n]: a row is a token that looks, a column
    a token that is looked at; the darker the cell, the larger the weight. All heads share one
    scale, from 0 to 1. Raises InputError for half a character.
    """
    check_text("a token or a name", *tokens, *names)
    rows = math.ceil(
        len(maps) / 2
    )  # two beside each other, and few inches: letters stay readable on a phone
    side = max(1.9, 0.24 * len(tokens))
    figure, axes = plt.subplots(
        rows,
        2,
        figsize=(2 * side + 0.9, rows * (side + 0.6) + 0.6),
        squeeze=False,
        layout="constrained",
    )
    turn = (
        {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        if max(map(len, tokens)) > 1
        else {}
    )
    for head, axis in enumerate(axes.flat):
        if head >= len(maps):
            axis.set_visible(False)
            continue
        image = axis.imshow(maps[head].detach().cpu().numpy(), vmin=0, vmax=1, cmap="Blues")
        axis.set_title(names[head] if names else f"head {head + 1}", fontsize=10)
        axis.set_xticks(range(len(tokens)), tokens, fontsize=9, **turn)
        axis.set_yticks(range(len(tokens)), [""] * len(tokens) if head % 2 else tokens, fontsize=9)
        axis.set_xlabel("looked at", fontsize=9)
        axis.set_ylabel("" if head % 2 else "looks", fontsize=9)
    scale = figure.colorbar(image, ax=axes, location="bottom", shrink=0.6, aspect=30)
    scale.set_label("weight", fontsize=9)
    scale.ax.tick_params(labelsize=9)
    return figure


def describe_heads(maps: Tensor, tokens: Sequence[str]) -> str:
    """The figure in words: for each head and each token, the token that it looks at most. Where no
    weight passes twice the even share 1/n, it says "all alike" instead.
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
            pairs = ", ".join(
                f"{token} → {other}" for token, other in zip(tokens, looked_at, strict=True)
            )
            lines.append(f"head {head}: {pairs}")
    return "\n".join(lines)
