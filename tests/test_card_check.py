"""The check of all notebooks with a graphics card: rows, the stated rule, and the end of the time."""

import json
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import card_check
from card_check import NO_TIME, PASSED, Outcome, by_length, reaches_a_card
from environment import ROOT
from notebooks import book_notebooks


def notebook(folder, name, source):
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source)]), path)
    return path


def test_rows_errors_and_the_end_of_the_time(tmp_path, capsys):
    """Three notebooks at once: one passes, one fails, one never ends."""
    paths = [
        notebook(tmp_path, "good", "assert 1 + 1 == 2"),
        notebook(tmp_path, "bad", "x = {}\nx['missing']"),
        notebook(tmp_path, "endless", "import time\ntime.sleep(600)"),
    ]
    began = time.monotonic()
    output = tmp_path / "check.json"
    words = [*map(str, paths), "--minutes", "0.4", "--workers", "3", "--output", str(output)]
    assert card_check.main(words) == 1
    assert time.monotonic() - began < 60
    said = capsys.readouterr().out
    assert said.startswith(card_check.device()) or said.startswith("No graphics card: ")
    assert "1 of 3 notebooks passed" in said
    found = json.loads(output.read_text(encoding="utf-8"))
    errors = {row["notebook"]: row["error"] for row in found["notebooks"]}
    assert errors["good.ipynb"] == PASSED and not found["finished"]
    assert errors["bad.ipynb"].startswith("bad.ipynb, code cell 1 (`x = {}`): KeyError: 'missing'")
    assert errors["endless.ipynb"] == f"stopped: {NO_TIME}"


def test_a_notebook_that_was_not_reached_counts_as_failed(tmp_path, capsys):
    rows = []
    path = notebook(tmp_path, "late", "1")
    assert card_check.check([path], 1, -1, rows.extend) == 1
    assert rows == [Outcome("late.ipynb", 0, f"not run: {NO_TIME}")]
    card_check.write_rows(tmp_path / "rows.json", rows, 1)
    assert not json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["finished"]


@pytest.mark.parametrize(
    ("source", "reaches"),
    [
        ("runs.pretrain(run, text)", True),
        ("qa.fine_tune(encoder, questions)", True),
        ("history = train(model, batches, recipe)", True),
        ("model.to('cuda')", True),
        ("QuestionAnswerer.from_pretrained(path)", True),
        ("WordPiece.train(texts, 500)", False),
        ("untrained = BertEncoder(config)", False),
    ],
)
def test_the_rule_of_the_quick_mode(source, reaches, tmp_path):
    assert reaches_a_card(notebook(tmp_path, "one", source)) == reaches


def test_the_quick_mode_takes_the_notebooks_that_failed_on_a_card():
    quick = {path.stem for path in book_notebooks() if reaches_a_card(path)}
    assert {"old_notes", "pretraining", "one_page", "question_answering"} <= quick
    assert not {"wordpiece", "masking", "squad"} & quick
    longest = by_length(book_notebooks())
    assert longest[0].stem in ("pretraining_spanbert", "pretraining", "one_page")


def test_a_missing_notebook_is_named(capsys):
    assert card_check.main(["nothing.ipynb"]) == 2
    assert "nothing.ipynb" in capsys.readouterr().err
    assert card_check.place(ROOT / "book" / "one_page.ipynb") == "book/one_page.ipynb"
