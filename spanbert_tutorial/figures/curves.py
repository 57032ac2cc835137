"""Loss curves beside the landmarks that they are read against. Chapter:
`book/spanbert/pretraining_spanbert`."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from spanbert_tutorial.errors import check_text

STYLES = ("-", "--", ":", "-.")  # curves differ by line as well as by color


def smoothed(values: Sequence[float], window: int) -> np.ndarray:
    """Means of each full window of `window` neighboring values: single batches are noisy."""
    return np.convolve(values, np.ones(window) / window, mode="valid")


def draw_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    landmarks: Mapping[str, float],
    across: str,
) -> Figure:
    """Losses in nats. curves: name → (places, values); landmarks: name → a loss drawn as a level
    line. Raises InputError for half a character."""
    check_text("a name", across, *curves, *landmarks)
    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (name, (places, values)) in enumerate(curves.items()):
        axis.plot(places, values, STYLES[number % len(STYLES)], linewidth=2, label=name)
    for name, value in landmarks.items():
        axis.axhline(value, color="0.5", linewidth=1)
        place: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "ha": "right",
            "va": "bottom",
        }
        ground = {
            "facecolor": "white",
            "edgecolor": "none",
            "alpha": 0.8,
            "pad": 1,
        }  # readable across a curve
        axis.annotate(f"{name} {value:.2f}", (0.995, value), bbox=ground, **place)
    axis.set_xlabel(across)
    axis.set_ylabel("loss (nats)")
    figure.legend(
        loc="outside upper left", ncols=min(2, len(curves))
    )  # above: it hides no landmark
    return figure


def draw_intervals(
    rows: Mapping[str, tuple[float, float | tuple[float, float]]], across: str
) -> Figure:
    """Means with their intervals, one row each, and a line at 0. rows: name → (mean, half width),
    or (mean, (width below, width above)) for an interval that is not symmetric, as a bootstrap
    interval. Raises InputError for half a character."""
    check_text("a name", across, *rows)
    figure, axis = plt.subplots(figsize=(7, 0.6 * len(rows) + 1.2), layout="constrained")
    for height, (mean, half) in enumerate(list(rows.values())[::-1]):
        widths = np.broadcast_to(half, 2)[:, None]  # [2, 1]: below, above
        axis.errorbar(mean, height, xerr=widths, fmt="o", capsize=4, color="C0")
    axis.axvline(0, color="0.5", linewidth=1)
    axis.set_yticks(range(len(rows)), list(rows)[::-1])
    axis.set_ylim(-0.6, len(rows) - 0.4)
    figure.supxlabel(
        across, fontsize="medium"
    )  # in the middle of the figure: long names leave the axis little room
    return figure
