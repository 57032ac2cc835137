"""`make student`: no solution is left, all else is there, and a student can work in it."""

import nbformat
import pytest

import student
from environment import ROOT
from kinds import kinds_of
from notebooks import book_notebooks, read

BOOK = ROOT / "book"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("students") / "student"
    return folder, student.write_student(folder)


def code(path) -> list:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def test_every_solution_has_gone_and_is_counted(written):
    folder, taken = written
    solutions = [
        cell for path in book_notebooks() for cell in code(path) if kinds_of(cell) == ["solution"]
    ]
    assert taken == len(solutions) > 15
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.ipynb"))
    assert "# @title Solution" not in text and text.count(student.EMPTY) == taken


@pytest.mark.parametrize("path", book_notebooks(), ids=lambda path: path.stem)
def test_only_the_solutions_and_what_was_said_to_them_differ(path, written):
    theirs = read(written[0] / path.relative_to(BOOK))
    nbformat.validate(theirs)
    solved = set()
    for ours, cell in zip(read(path).cells, theirs.cells, strict=True):
        if ours.cell_type == "code" and kinds_of(ours) == ["solution"]:
            solved |= student.functions_in(ours.source)
            assert (cell.source, cell.outputs, cell.execution_count) == (student.EMPTY, [], None)
            assert not cell.metadata  # visible, no form
        else:
            assert cell.source == ours.source and cell.metadata == ours.metadata
            if ours.cell_type == "code" and cell.outputs != ours.outputs:
                assert cell.outputs == [] and solved & student.used_in(ours.source)


def test_the_checks_are_there_and_have_said_nothing_yet(written):
    for path in book_notebooks():
        cells = code(path)
        theirs = {cell.source: cell for cell in code(written[0] / path.relative_to(BOOK))}
        for cell, after in zip(cells, [*cells[1:], None], strict=True):
            if kinds_of(cell) != ["solution"] or "check_" in cell.source:
                continue
            assert "check_" in after.source, "a check follows the solution"
            assert theirs[after.source].outputs == [] != after.outputs


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("work")
    assert student.main(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert "move or remove it" in capsys.readouterr().err
