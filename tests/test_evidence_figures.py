"""The evidence pages draw their differences with intervals, and name the untrained control as the
field does."""

import json

import matplotlib.pyplot as plt
import pytest

from environment import ROOT
from research.findings import REPORTS
from spanbert_tutorial.figures.curves import draw_intervals

PAGES = [
    "input_formats",
    "paper_tables",
    "people_and_relations",
    "plateau",
    "questions",
    "relatives",
    "spans_and_boundaries",
    "states_and_sentences",
]
EACH = pytest.mark.parametrize("page", PAGES)


def cells_of(page: str) -> list[dict]:
    """The cells of a page."""
    file = ROOT / "book" / "evidence" / f"{page}.ipynb"
    cells: list[dict] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return cells


def reach(bars) -> list[float]:
    """The two ends of the only bar of a figure."""
    (segment,) = bars.get_segments()
    return segment[:, 0].tolist()


@pytest.mark.parametrize(
    "half, ends", [(0.5, [0.5, 1.5]), ((0.25, 1.0), [0.75, 2.0])], ids=["symmetric", "bootstrap"]
)
def test_a_bar_reaches_as_far_as_its_interval(half, ends):
    figure = draw_intervals({"first − second": (1.0, half)}, "points")
    assert reach(figure.axes[0].collections[0]) == ends
    plt.close(figure)


@EACH
def test_there_is_a_picture_with_intervals_for_each_experiment_of_a_page(page):
    """A call in a cell that stores a picture; a page's own `draw` and `drawn` call it, too."""
    sources = [
        "".join(cell["source"])
        for cell in cells_of(page)
        if any("image/svg+xml" in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    drawn = [
        source
        for source in sources
        if any(f"{call}(" in source for call in ("draw_intervals", "drawn", "draw"))
    ]
    reports = [report for report in REPORTS if report.page == f"evidence/{page}"]
    assert len(drawn) >= max(len(reports), 1)


@EACH
def test_no_reader_meets_a_key_of_the_results_files(page):
    for cell in cells_of(page):
        seen = cell.get("outputs", []) + [cell["metadata"]]
        seen += [cell["source"]] if cell["cell_type"] == "markdown" else []
        shown = json.dumps(seen).lower()
        assert "new weights" not in shown and "random start" not in shown
