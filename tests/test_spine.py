"""The code that chapters show is the code that runs: cells are the package's own text, and who edits
one sees the next result change."""

import nbformat
import pytest

import notebooks
import spine
from environment import ROOT
from kinds import kinds_of

CHAPTERS = [ROOT / "book/one_page.ipynb"] + sorted(
    path
    for part in ("bert", "spanbert", "tasks", "relatives")
    for path in (ROOT / "book" / part).glob("*.ipynb")
)


def shown_cells(path):
    """The cells of a chapter whose code a reader sees."""
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code" and kinds_of(cell) == ["teach"]]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_shown_definitions_are_the_packages_text(path):
    assert spine.update(nbformat.read(path, as_version=4)) == []


def test_a_cell_that_differs_on_purpose_says_what_it_varies():
    for path in CHAPTERS:
        for cell in shown_cells(path):
            assert ("variant" in cell.metadata.tags) == ("varies" in cell.metadata), cell.source
            assert not ("variant" in cell.metadata.tags and "source" in cell.metadata)


def test_a_docstring_is_cut_to_its_first_line(tmp_path, monkeypatch):
    module = 'def f(x):\n    """Twice x.\n\n    x: a number."""\n    # why\n    return 2 * x\n\n\nN = 3\n'
    (tmp_path / "m.py").write_text(module)
    monkeypatch.setattr(spine, "PACKAGE", tmp_path)
    assert spine.text_of("m.py:f") == 'def f(x):\n    """Twice x."""\n    # why\n    return 2 * x'
    assert spine.text_of("m.py:N") == "N = 3"
    with pytest.raises(spine.SpineError, match="defines no g"):
        spine.text_of("m.py:g")


def test_who_edits_a_shown_cell_sees_the_next_result_change():
    path = ROOT / "book/spanbert/span_masking.ipynb"
    notebook = notebooks.read(path)
    cells = notebook.cells
    edited = next(
        number
        for number, cell in enumerate(cells)
        if spine.sources_of(cell) == ["spanbert/span_masking.py:mask_words"]
    )
    draw = "length = 1 + rng.choice(len(length_probs), p=length_probs)"
    assert draw in cells[edited].source
    cells[edited].source = cells[edited].source.replace(draw, "length = 1")
    after = range(edited, len(cells))
    result = next(number for number in after if cells[number].get("outputs"))
    stored = cells[result].outputs[0].text
    del cells[result + 1 :]
    notebooks.run_cells(notebook, path.parent, path.name)
    assert "Den ##ver Bron ##cos" in stored
    assert cells[result].outputs[0].text.count("|") > stored.count("|")
