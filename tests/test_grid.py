"""The harness of the experiments: what is run, what is kept, what goes on and what is refused; and
the frozen results."""

import json
from dataclasses import replace
from types import ModuleType

import pandas as pd
import pytest

from research import comparisons, grid, table
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.presets import Run

RUN = Run(objective="mlm", steps=9)
RESULTS = data_path("results")
TABLES = sorted(
    path for path in RESULTS.glob("*.csv") if path.with_suffix(".settings.json").exists()
)


@pytest.fixture
def toy():
    """An experiment whose rows tell how they were asked; `asked` holds all calls."""
    made = ModuleType("research.toy")
    made.ARMS = {"plain": 0, "twice": 1}
    made.SEEDS = 2
    made.asked = []
    made.SETTINGS = {"run": RUN, "pairs": ((1, 2),)}
    made.prepare = lambda folder, settings: ({"tokens": 7}, ("text",))
    made.beside = lambda settings, text: {"chance": 0.5}

    def one(arm, seed, settings, text):
        made.asked.append((arm, seed))
        return {
            "scores": {"f1": seed + made.ARMS[arm], "questions, 300": {"f1": 2.0}},
            "curve": {"mlm": [3.0, 2.0]},
            "run": settings["run"],
            "left_after": None,
        }

    made.one = one
    return made


def test_one_row_a_value(toy, tmp_path):
    output = tmp_path / "toy.csv"
    grid.run(toy, output)
    rows = output.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "condition,run,fine_tuning,questions,step,measure,value"
    assert rows[1:7] == [
        ",,,,,chance,0.5",
        "plain,0,,,,f1,0",
        "plain,0,,300,,questions/f1,2.0",
        "plain,0,,,25,curve/mlm,3.0",
        "plain,0,,,50,curve/mlm,2.0",
        "plain,0,,,,left_after,",
    ]
    assert len(rows) == 2 + 4 * 5 and rows[-5] == "twice,1,,,,f1,2"
    kept = json.loads((tmp_path / "toy.settings.json").read_text(encoding="utf-8"))
    assert kept["run"]["steps"] == 9 and kept["tokens"] == 7 and "torch" in kept["surroundings"]
    assert len(list(tmp_path.iterdir())) == 2  # nothing half written is left


def test_a_stop_loses_at_most_one_run(toy, tmp_path):
    output = tmp_path / "toy.csv"
    whole = tmp_path / "whole.csv"
    grid.run(toy, whole)

    def stopped(arm, seed, settings, text, one=toy.one):
        if (arm, seed) == ("plain", 1):
            raise KeyboardInterrupt
        return one(arm, seed, settings, text)

    one, toy.one = toy.one, stopped
    with pytest.raises(KeyboardInterrupt):
        grid.run(toy, output)
    toy.one = one
    toy.asked.clear()
    grid.run(toy, output)
    assert toy.asked == [("plain", 1), ("twice", 1)] and output.read_bytes() == whole.read_bytes()


def test_rows_of_other_settings_are_refused(toy, tmp_path):
    output = tmp_path / "toy.csv"
    grid.run(toy, output, seeds=1)
    before = output.read_bytes()
    toy.SETTINGS = toy.SETTINGS | {"run": replace(RUN, max_length=32)}
    with pytest.raises(InputError, match="rows of another run: give another --output"):
        grid.run(toy, output)
    assert output.read_bytes() == before
    for wrong in ({"seeds": 0}, {"steps": -1}):
        with pytest.raises(InputError, match="leave it out"):
            grid.run(toy, tmp_path / "new.csv", **wrong)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_results_file_is_tidy(path):
    results = comparisons.read(path.stem)
    assert tuple(results.columns) == grid.COLUMNS and len(results)
    assert not results.duplicated(list(grid.COLUMNS[:-1])).any()
    tuned = results[results.run.notna() & results.fine_tuning.notna()]  # several times a run
    alike = tuned.groupby(["condition", "questions", "measure", "run"]).fine_tuning.apply(tuple)
    assert alike.nunique() <= 1 and len(tuned) in (0, (results.questions != "").sum())


def test_the_comparisons_are_those_of_the_results():
    """Worked out again, the table is the same."""
    kept = comparisons.table()
    again = comparisons.computed(kept)
    numbers = ["difference", "low", "high", "p", "p_holm"]
    pd.testing.assert_frame_equal(kept, again, check_dtype=False, rtol=1e-4, atol=1e-7)
    assert (kept[numbers].notna()).all().all()
    assert set(kept.plan) == {"planned", "exploratory", "unrecorded"}


def test_holm_corrects_from_the_smallest_on():
    assert comparisons.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert comparisons.holm([0.7]) == [0.7] and comparisons.holm([0.9, 0.8]) == [1, 1]


def test_each_experiment_has_a_report_and_a_module():
    reports = pd.read_csv(RESULTS / "reports.csv")
    assert set(reports.experiment) == {path.stem for path in TABLES}
    assert set(table.EXPERIMENTS) <= set(reports.experiment)
    modules = {
        path.stem for path in (data_path().parent / "research" / "experiments").glob("[a-z]*.py")
    }
    assert modules == set(table.EXPERIMENTS)
