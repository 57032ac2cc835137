"""What is due on a graphics card, rehearsed on the CPU: the benchmark and the check of the notebooks."""

import json
import subprocess
import sys

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from benchmarks import card
from environment import ROOT
from spanbert_tutorial.pretraining import runs


def test_the_benchmark_writes_a_row_for_every_way(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "REHEARSAL", 0.01)
    card.main([str(tmp_path / "speed.json"), "--toy"])
    found = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert len(found["rows"]) == 4 and not any("failed" in row for row in found["rows"])
    assert all(0 < row["mfu"] < 2 and row["tokens_a_second"] > 0 for row in found["rows"])


def test_a_notebook_that_fails_and_a_cell_that_may_not_run_twice_are_named(tmp_path):
    cells = {"good": ["1"], "bad": ["{}['x']"], "once": ["left = [1]", "left.pop()"]}
    for name, sources in cells.items():
        notebook = new_notebook(cells=list(map(new_code_cell, sources)))
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    output = tmp_path / "check.json"
    words = ["--twice", *map(str, tmp_path.glob("*.ipynb")), "--output", str(output)]
    command = [sys.executable, str(ROOT / "tools/rerun.py"), *words]
    assert subprocess.run(command, capture_output=True, cwd=ROOT).returncode == 1
    found = json.loads(output.read_text(encoding="utf-8"))
    errors = {row["notebook"]: row["error"] for row in found["rows"]}
    assert errors["good.ipynb"] is None and "KeyError: 'x'" in errors["bad.ipynb"]
    assert "pop from empty list" in errors["once.ipynb"]
