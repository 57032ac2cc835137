"""Arms of an experiment, a dot for each seed. Chapter: `book/evidence/masking_and_copying`."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from spanbert_tutorial.errors import check_text

Panel = Mapping[str, Sequence[float]]  # arm → a figure of each seed


def draw_arms(panels: Mapping[str, Panel], controls: Mapping[str, tuple[str, float]]) -> Figure:
    """One panel below the other, an arm a row: dots are seeds, the stroke is their mean. controls:
    panel → the name of what needs no model, or the simplest one, and its figure, drawn as a line.
    Raises InputError for half a character.
    """
    names = [name for arms in panels.values() for name in arms]
    check_text("a name", *panels, *names, *(name for name, _ in controls.values()))
    rows = [len(arms) + 1 for arms in panels.values()]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(6, 0.3 * sum(rows) + 0.5 * len(panels)),
        layout="constrained",
        height_ratios=rows,
        squeeze=False,
    )
    for axis, (title, arms) in zip(axes[:, 0], panels.items(), strict=True):
        for place, values in enumerate(arms.values()):
            axis.plot(values, np.full(len(values), place), "o", color="C0", alpha=0.5)
            axis.plot([np.mean(values)] * 2, [place - 0.35, place + 0.35], color="C1", linewidth=3)
        if title in controls:
            name, value = controls[title]
            axis.axvline(value, color="0.5", linestyle="--", linewidth=1)
            axis.annotate(
                name,
                (value, -0.9),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        axis.set_ylim(len(arms) - 0.4, -1.3)  # the first arm above
        axis.set_yticks(range(len(arms)), list(arms))
        axis.set_title(title, loc="left", fontsize="medium")
    return figure
