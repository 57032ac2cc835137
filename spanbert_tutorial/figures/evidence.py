"""Stored results as tables and figures: one row a measured value (`data/results/NAME.csv`), and
`comparisons.csv` with every difference and its interval. Chapters: the pages of evidence."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.curves import draw_intervals

# words of the stored tables → the book's
WORDS = {"new weights": "random"}
HEADS = {"difference": "first − second", "low": "from", "high": "to", "count": "over"}
HEADS |= {"p_holm": "p (Holm)"}


def results(name: str) -> pd.DataFrame:
    """The results of an experiment: `condition, run, fine_tuning, questions, step, measure, value`."""
    return pd.read_csv(data_path("results", f"{name}.csv"))


def runs(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The values of a measure: one row a pre-training run, one column a condition."""
    rows = table[(table.measure == measure) & table.run.notna()]
    rows = rows.astype({"run": int, "value": float})
    return rows.pivot(index="run", columns="condition", values="value")


def scores(name: str, measures: Mapping[str, str], digits: int = 1) -> pd.DataFrame:
    """Means over the runs: one row a condition, one column a measure. measures: measure → the
    column's name."""
    rows = results(name).dropna(subset=["condition"])
    rows = rows[rows.measure.isin(measures)].replace(WORDS, regex=True).astype({"value": float})
    table = rows.pivot_table("value", "condition", "measure", sort=False)
    return table[list(measures)].rename(columns=measures).round(digits)


def comparisons(experiment: str, measured: str = "") -> pd.DataFrame:
    """The comparisons of an experiment, as stored, of what was measured those that contain a
    text."""
    rows = pd.read_csv(data_path("results", "comparisons.csv"))
    rows = rows[rows.experiment == experiment].replace(WORDS, regex=True)
    return rows[rows.measured.str.contains(measured, regex=False)]


def differences(experiment: str, measured: str = "", digits: int = 1) -> pd.DataFrame:
    """The comparisons of an experiment as a table: first − second, the ends of the 95% interval, what
    it counts, whether it was planned, and p after Holm's correction (0.000 is below 0.0005)."""
    rows = comparisons(experiment, measured)
    rows = rows.round({"difference": digits, "low": digits, "high": digits, "p_holm": 3})
    rows["difference"] += 0.0  # −0.0 is 0.0
    columns = ["second", "measured", "difference", "low", "high", "unit", "count", "plan", "p_holm"]
    return rows.set_index("first")[columns].rename(columns=HEADS)


def draw_differences(rows: pd.DataFrame, across: str, label: str = "{first} − {second}") -> Figure:
    """Rows of `comparisons` as points with 95% intervals and p. label: names a row, by its
    columns."""
    bars = {}
    for row in rows.to_dict("records"):
        p = "p < 0.001" if row["p_holm"] < 5e-4 else f"p = {row['p_holm']:.3f}"
        bars[f"{label.format(**row)}  ({p})"] = row["difference"], row["low"], row["high"]
    return draw_intervals(bars, across)
