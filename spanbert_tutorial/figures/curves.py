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


def draw_intervals(
    rows: Mapping[str, tuple[float, float | tuple[float, float]]], across: str
) -> Figure:
    """Means with their intervals, one row each, and a line at 0. rows: name → (mean, half width),
    or (mean, (width below, width above)) for an interval that is not symmetric, as a bootstrap
    interval."""
    figure, axis = plt.subplots(figsize=(7, 0.6 * len(rows) + 1.2), layout="constrained")
    told = []
    for row, (name, (mean, half)) in enumerate(rows.items()):
        below, above = np.broadcast_to(half, 2)
        axis.errorbar(mean, -row, xerr=[[below], [above]], fmt="o", capsize=4, color="C0")
        told.append(f"{name} {mean:.3g} ({mean - below:.3g} to {mean + above:.3g})")
    axis.axvline(0, color="0.5", linewidth=1)
    # each line of a name is a text of its own, so that it ends at the axis in every font
    axis.set_yticks(-np.arange(len(rows)), [""] * len(rows))
    for row, name in enumerate(rows):
        lines = name.split("\n")
        for place, line in enumerate(lines):
            axis.annotate(
                line,
                (0, -row),
                xycoords=axis.get_yaxis_transform(),
                xytext=(-7, 12 * ((len(lines) - 1) / 2 - place)),
                textcoords="offset points",
                ha="right",
                va="center_baseline",
            )
    axis.set_ylim(0.4 - len(rows), 0.6)
    # in the middle of the figure: long names leave the axis little room
    figure.supxlabel(across, fontsize="medium")
    figure.set_label(f"Means and intervals, {across}: {'; '.join(told)}.")
    return figure


def draw_arms(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    controls: Mapping[str, tuple[str, float]],
) -> Figure:
    """One panel below the other, an arm a row: dots are seeds, the stroke is their mean. panels:
    title → arm → a figure of each seed; controls: title → the name of what needs no model, or the
    simplest one, and its figure, drawn as a line."""
    rows = [len(arms) + 1 for arms in panels.values()]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(6, 0.3 * sum(rows) + 0.5 * len(panels)),
        layout="constrained",
        height_ratios=rows,
        squeeze=False,
    )
    told = []
    beside: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    for axis, (title, arms) in zip(axes[:, 0], panels.items(), strict=True):
        for row, values in enumerate(arms.values()):
            axis.plot(values, np.full(len(values), row), "o", color="C0", fillstyle="none")
            axis.plot([np.mean(values)] * 2, [row - 0.35, row + 0.35], color="C1", linewidth=3)
        told.append(f"{title}: " + ", ".join(f"{k} {np.mean(v):.3g}" for k, v in arms.items()))
        if title in controls:
            name, value = controls[title]
            axis.axvline(value, color="0.5", linestyle="--", linewidth=1)
            axis.annotate(name, (value, -0.9), fontsize="small", **beside)
            told[-1] += f", and without training {name} {value:.3g}"
        axis.set_ylim(len(arms) - 0.4, -1.3)  # the first arm above
        axis.set_yticks(range(len(arms)), list(arms))
        axis.set_title(title, loc="left", fontsize="medium")
    figure.set_label(f"Means over seeds. {'. '.join(told)}.")
    return figure


def draw_grid(values: np.ndarray, trained: Sequence[str], evaluated: Sequence[str]) -> Figure:
    """A heat map of losses in nats. values: [trained, evaluated]; the smallest of each column is
    bold: the model that practiced it should have it."""
    figure, axis = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
    # never so dark that black numbers could not be read, nor as white as the page
    axis.imshow(values, cmap="Blues", vmin=-values.max() / 2, vmax=2 * values.max(), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        weight = "bold" if value == values[:, column].min() else "normal"
        axis.text(column, row, f"{value:.1f}", ha="center", va="center", weight=weight, size=14)
    axis.set_xticks(range(len(evaluated)), evaluated)
    axis.set_yticks(range(len(trained)), trained)
    axis.set_xlabel("evaluated on")
    axis.set_ylabel("trained on")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    cells = [
        f"trained on {row} and evaluated on {column} {values[i, j]:.1f}"
        for i, row in enumerate(trained)
        for j, column in enumerate(evaluated)
    ]
    figure.set_label(f"Loss in nats: {'; '.join(cells)}.")
    return figure
