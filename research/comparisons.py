"""All comparisons of the book's experiments: python -m research comparisons

`data/results/comparisons.csv` has one row a comparison. Its first columns declare it:

- `experiment` (a results file) and `family`: comparisons of one family answer one question, and are
  corrected together (Holm);
- `plan`: planned (before the scores were known), exploratory (after), or unrecorded;
- `first`, `second`, `measured`: as a sentence calls them; `unit`: points, nats or steps;
- `expected`: first or second, whichever was predicted to be better;
- `first_condition`, `first_measure`, `second_condition`, `second_measure`, `questions`: rows of the
  results file; a condition without runs is a baseline; `scale`: 100 for shares;
- `test_to_train`: see `spanbert_tutorial.figures.intervals.paired_difference`.

The others follow from the results and are written here: `runs` and what they `count` (pre-training
runs or fine-tunings), `difference` (first − second), `low` and `high` (95% interval), `p`, `p_holm`,
`better` (first or second where p_holm < 0.05, empty otherwise).
"""

import pandas as pd

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.intervals import Difference, holm, paired_difference

FILE = "comparisons.csv"
LOWER_IS_BETTER = ("nats", "steps")
SETTINGS = ("condition", "questions", "step", "measure")


def read(name: str) -> pd.DataFrame:
    """A results file; what does not apply is empty text, or a missing number."""
    texts = {name: str for name in SETTINGS}
    return pd.read_csv(
        data_path("results", f"{name}.csv"), dtype=texts, keep_default_na=False, na_values={
            "run": "", "fine_tuning": "", "value": ""
        }
    )  # fmt: skip


def column(results: pd.DataFrame, condition: str, measure: str, questions: str) -> pd.Series:
    """The values of a condition by run or fine-tuning; of a baseline one value. Raises InputError
    where the file has none."""
    rows = results[
        (results.condition == condition)
        & (results.measure == measure)
        & (results.questions == questions)
        & (results.step == "")
    ]
    if rows.empty:
        raise InputError(f'no results of "{condition}" for {measure}: check {FILE}.')
    return rows.set_index(rows.run.fillna(rows.fine_tuning)).value.sort_index()


def difference_of(row: pd.Series, results: pd.DataFrame) -> tuple[int, Difference]:
    """Over how many runs, and first − second with its interval."""
    first = column(results, row.first_condition, row.first_measure, row.questions)
    second = column(results, row.second_condition, row.second_measure, row.questions)
    if len(second) == 1:  # a baseline
        second = pd.Series(second.iloc[0], first.index)
    pair = pd.concat([first, second], axis=1, join="inner") * row.scale
    return len(pair), paired_difference(pair.iloc[:, 0], pair.iloc[:, 1], row.test_to_train)


def computed(declared: pd.DataFrame) -> pd.DataFrame:
    """The table with its last columns worked out again."""
    table = declared.copy()
    for (name, _), family in table.groupby(["experiment", "family"], sort=False):
        results = read(name)
        count = "pre-training runs" if results.run.notna().any() else "fine-tunings"
        found = [difference_of(row, results) for _, row in family.iterrows()]
        corrected = holm([difference.p for _, difference in found])
        for index, (runs, each), p_holm in zip(family.index, found, corrected, strict=True):
            low_is_good = table.loc[index, "unit"] in LOWER_IS_BETTER
            better = "first" if (each.mean < 0) == low_is_good else "second"
            values = (each.mean, each.low, each.high, each.p, p_holm)
            table.loc[index, ["runs", "count"]] = runs, count
            table.loc[index, ["difference", "low", "high", "p", "p_holm"]] = [
                float(f"{value:.6g}") for value in values
            ]
            table.loc[index, "better"] = better if p_holm < 0.05 else ""
    return table


def table() -> pd.DataFrame:
    """The table as it stands in the file."""
    texts = ("questions", "expected", "better")
    return pd.read_csv(
        data_path("results", FILE), dtype=dict.fromkeys(texts, str)
    ).fillna(dict.fromkeys(texts, ""))  # fmt: skip


def write() -> None:
    """Works the table out again."""
    computed(table()).to_csv(data_path("results", FILE), index=False, lineterminator="\n")
