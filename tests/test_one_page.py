"""SpanBERT on one page: its lines are counted, and the chapters name the right ones."""

import json
import re

from environment import ROOT

PAGE = ROOT / "book" / "one_page.ipynb"
CELLS = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
# The page's own model ends where it is compared with the package's.
END = next(
    at for at, cell in enumerate(CELLS) if "".join(cell["source"]).startswith("That is all.")
)


def lines_of(cell):
    """The lines of a code cell that are not blank."""
    return [line for line in "".join(cell["source"]).splitlines() if line.strip()]


def model_cells():
    return [cell for cell in CELLS[:END] if "teach" in cell["metadata"].get("tags", [])]


def test_the_page_has_as_many_lines_as_it_says_and_none_comes_from_the_package():
    lines = [line for cell in model_cells() for line in lines_of(cell)]
    opening = "".join(CELLS[0]["source"])
    assert int(re.search(r"in (\d+) lines", opening)[1]) == len(lines) <= 150
    assert not [line for line in lines if re.search(r"spanbert_tutorial|\bst\.", line)]
