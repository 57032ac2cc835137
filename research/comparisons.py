"""All comparisons of the book's experiments: python -m research comparisons

`data/results/comparisons.csv` has one row a comparison. Its first columns declare it:

- `experiment` (a results file) and `family`: comparisons of one family answer one question, and are
  corrected together (Holm);
- `plan`: planned (before the scores were known), exploratory (after), or unrecorded;
- `first`, `second`, `measured`: as a sentence calls them; `unit`: points, nats or steps;
- `expected`: first or second, whichever was predicted to be better;
- `first_condition`, `first_measure`, `second_condition`, `second_measure`, `questions`: rows of the
  results file ("128/1024" where the numbers of questions differ, "1024/" where only the first has
  one); a condition without runs is a baseline; `scale`: 100 for shares;
- `test_to_train`: see `spanbert_tutorial.figures.intervals.paired_difference`.

The others follow from the results and are written here: `runs` and what they `count` (pre-training
runs, continuations of one checkpoint, or fine-tunings), `difference` (first − second), `low` and
`high` (95% interval), `p`, `p_holm`, `better` (first or second where p_holm < 0.05, empty otherwise).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.intervals import Difference, paired_difference

FILE = "comparisons.csv"
LOWER_IS_BETTER = ("nats", "steps")
SETTINGS = ("condition", "questions", "step", "measure")
RESULTS = ("runs", "count", "difference", "low", "high", "p", "p_holm", "better")


@cache
def read(name: str) -> pd.DataFrame:
    """A results file; what does not apply is empty text, or a missing number."""
    empty = dict.fromkeys(("run", "fine_tuning", "value"), "")
    file, texts = data_path("results", f"{name}.csv"), dict.fromkeys(SETTINGS, str)
    return pd.read_csv(file, dtype=texts, keep_default_na=False, na_values=empty)


@cache
def columns(name: str) -> dict[tuple[str, str, str], pd.Series]:
    """(condition, measure, questions) → the values by run, means of its fine-tunings, or without runs
    by fine-tuning; of a baseline one."""
    rows = read(name)
    rows = rows[rows.step == ""]
    return {
        key: found.value.groupby(found.run.fillna(found.fine_tuning), dropna=False).mean()
        for key, found in rows.groupby(["condition", "measure", "questions"])
    }


def column(name: str, condition: str, measure: str, questions: str) -> pd.Series:
    """The values of a condition. Raises InputError where the file has none."""
    found = columns(name).get((condition, measure, questions))
    if found is None:
        raise InputError(f'no results of "{condition}" for {measure}: check {FILE}.')
    return found


def difference_of(row: Any) -> tuple[int, Difference]:
    """Over how many runs, and first − second with its interval."""
    name = row.experiment
    few, *others = row.questions.split("/")
    first = column(name, row.first_condition, row.first_measure, few)
    second = column(name, row.second_condition, row.second_measure, *(others or [few]))
    if len(second) == 1:  # a baseline
        second = pd.Series(second.iloc[0], first.index)
    pair = pd.concat([first, second], axis=1, join="inner") * row.scale
    return len(pair), paired_difference(pair.iloc[:, 0], pair.iloc[:, 1], row.test_to_train)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of comparisons that answer one question, corrected: of k of them the
    smallest times k, the next times k − 1, …, but never below one before it (Holm, 1979)."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return corrected.tolist()


def computed(declared: pd.DataFrame) -> pd.DataFrame:
    """The table with its last columns worked out again."""
    rows = []
    for (name, _), family in declared.groupby(["experiment", "family"], sort=False):
        beside = data_path("results", f"{name}.settings.json").read_text(encoding="utf-8")
        runs_are = "continuations" if '"begun_from"' in beside else "pre-training runs"
        count = runs_are if read(name).run.notna().any() else "fine-tunings"
        found = [difference_of(row) for row in family.itertuples()]
        corrected = holm([difference.p for _, difference in found])
        for row, (runs, each), p_holm in zip(family.itertuples(), found, corrected, strict=True):
            values = (*each, p_holm)
            first = (each.mean < 0) == (row.unit in LOWER_IS_BETTER)
            better = ("first" if first else "second") if p_holm < 0.05 else ""
            rows.append([row.Index, runs, count, *(float(f"{v:.6g}") for v in values), better])
    again = pd.DataFrame(rows, columns=["", *RESULTS]).set_index("")
    return declared.assign(**again)


def table() -> pd.DataFrame:
    """The table as it stands in the file."""
    texts = ("questions", "expected", "better")
    return pd.read_csv(
        data_path("results", FILE), dtype=dict.fromkeys(texts, str)
    ).fillna(dict.fromkeys(texts, ""))  # fmt: skip


def write() -> None:
    """Works the table out again."""
    computed(table()).to_csv(data_path("results", FILE), index=False, lineterminator="\n")
