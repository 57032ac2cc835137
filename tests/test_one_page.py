"""SpanBERT on one page: its lines are counted, and the chapters name the right ones."""

import json
import re

from environment import ROOT
from notebooks import book_notebooks

PAGE = ROOT / "book" / "one_page.ipynb"
CELLS = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
# The page's own model ends where it is compared with the package's.
END = next(
    at for at, cell in enumerate(CELLS) if "".join(cell["source"]).startswith("That is all.")
)
RANGE = re.compile(r"[Ll]ines (\d+)–(\d+)")


def lines_of(cell):
    """The lines of a code cell that are not blank."""
    return [line for line in "".join(cell["source"]).splitlines() if line.strip()]


def model_cells():
    return [cell for cell in CELLS[:END] if "teach" in cell["metadata"].get("tags", [])]


def begins():
    """definition → its first line, counted over the page's visible cells."""
    found, number = {}, 0
    for cell in model_cells():
        for line in lines_of(cell):
            number += 1
            name = re.match(r"(?:def|class) (\w+)|(shares) =", line)
            if name:
                found[name[1] or name[2]] = number
    return found | {"end": number + 1}


def ranges(text):
    return [tuple(map(int, found)) for found in RANGE.findall(text)]


def test_the_page_has_as_many_lines_as_it_says_and_none_comes_from_the_package():
    lines = [line for cell in model_cells() for line in lines_of(cell)]
    opening = "".join(CELLS[0]["source"])
    assert int(re.search(r"in (\d+) lines", opening)[1]) == len(lines) <= 150
    assert not [line for line in lines if re.search(r"spanbert_tutorial|\bst\.", line)]


def test_each_part_says_which_lines_it_has():
    begin = begins()
    parts = {
        "## The encoder": ("attention", "shares"),
        "## What is masked": ("shares", "boundary_rows"),
        "## Who must answer": ("boundary_rows", "make_batch"),
        "## What stays in view": ("make_batch", "end"),
    }
    for heading, (first, after) in parts.items():
        text = next("".join(cell["source"]) for cell in CELLS if heading in "".join(cell["source"]))
        assert ranges(text.split(heading)[1])[0] == (begin[first], begin[after] - 1), heading


def test_a_chapter_that_names_lines_names_those_that_it_builds():
    begin = begins()
    tables = begin["Encoder"] + 3  # words, positions, segments
    expected = {
        "bert/wordpiece": (tables, tables + 2),
        "bert/bert": (begin["attention"], begin["shares"] - 1),
        "spanbert/span_masking": (begin["shares"], begin["boundary_rows"] - 1),
        "spanbert/boundary": (begin["boundary_rows"], begin["make_batch"] - 1),
        "spanbert/single_sequence": (begin["make_batch"], begin["losses"] - 1),
        "spanbert/pretraining_spanbert": (begin["losses"], begin["end"] - 1),
    }
    found = {}
    for path in book_notebooks(ROOT):
        if path == PAGE:
            continue
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and "one_page.ipynb" in text and ranges(text):
                name = path.relative_to(ROOT / "book").with_suffix("").as_posix()
                found[name] = ranges(text)[0]
    assert found == expected
