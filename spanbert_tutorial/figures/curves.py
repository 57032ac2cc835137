"""Plots of losses and of differences; each says its numbers in its text alternative. Chapters:
`book/spanbert/pretraining_spanbert`, the pages of evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

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
    line."""
    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (name, (places, values)) in enumerate(curves.items()):
        axis.plot(places, values, STYLES[number % len(STYLES)], linewidth=2, label=name)
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
    ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}  # across a curve
    for name, value in landmarks.items():
        axis.axhline(value, color="0.5", linewidth=1)
        axis.annotate(f"{name} {value:.2f}", (0.995, value), bbox=ground, **place)
    axis.set_xlabel(across)
    axis.set_ylabel("loss (nats)")
    # above: it hides no landmark
    figure.legend(loc="outside upper left", ncols=min(2, len(curves)))
    told = [f"{name} {y[0]:.2f} to {y[-1]:.2f}" for name, (_, y) in curves.items()]
    told += [f"level line {name} {value:.2f}" for name, value in landmarks.items()]
    figure.set_label(f"Loss in nats, from first to last of {across}: {'; '.join(told)}.")
    return figure


def draw_intervals(rows: Mapping[str, tuple[float, float, float]], across: str) -> Figure:
    """Means with their intervals, one row each, and a line at 0. rows: name → (mean, low, high)."""
    figure, axis = plt.subplots(figsize=(7, 0.6 * len(rows) + 1.2), layout="constrained")
    told = []
    for row, (name, (mean, low, high)) in enumerate(rows.items()):
        width = [[mean - low], [high - mean]]
        axis.errorbar(mean, -row, xerr=width, fmt="o", capsize=4, color="C0")
        told.append(f"{name} {mean:.3g} ({low:.3g} to {high:.3g})")
    axis.axvline(0, color="0.5", linewidth=1)
    # each line of a name is a text of its own, so that it ends at the axis in every font
    axis.set_yticks(-np.arange(len(rows)), [""] * len(rows))
    beside: dict[str, Any] = {"xycoords": axis.get_yaxis_transform(), "ha": "right"}
    beside |= {"textcoords": "offset points", "va": "center_baseline"}
    for row, name in enumerate(rows):
        lines = name.split("\n")
        for place, line in enumerate(lines):
            above = 12 * ((len(lines) - 1) / 2 - place)
            axis.annotate(line, (0, -row), xytext=(-7, above), **beside)
    axis.set_ylim(0.4 - len(rows), 0.6)
    # in the middle of the figure: long names leave the axis little room
    figure.supxlabel(across, fontsize="medium")
    figure.set_label(f"Means and intervals, {across}: {'; '.join(told)}.")
    return figure
