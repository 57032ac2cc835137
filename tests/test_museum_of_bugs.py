"""The museum of bugs: every exhibit follows one pattern, and its test tells the broken code from
the fixed one."""

import ast
import json
import re

import pytest

from environment import ROOT

CELLS = json.loads(
    (ROOT / "book" / "workshop" / "museum_of_bugs.ipynb").read_text(encoding="utf-8")
)["cells"]
HEADING = re.compile(r"^### (\d+)\. (.+)$", re.MULTILINE)
MOST_LINES = 8  # of a broken function


def exhibits() -> dict[str, list[dict]]:
    """Title → cells of each exhibit."""
    found = {}
    now = None
    for cell in CELLS:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("#"):
            heading = HEADING.match(text)
            now = found.setdefault(heading[2], []) if heading else None
        if now is not None:
            now.append(cell)
    return found


def code(cells: list[dict], tag: str) -> list[str]:
    """Sources of the code cells with this tag."""
    return ["".join(cell["source"]) for cell in cells if tag in cell["metadata"].get("tags", [])]


def test_there_are_enough_and_the_table_lists_them_in_order():
    titles = list(exhibits())
    table = next(
        "".join(cell["source"]) for cell in CELLS if "| exhibit |" in "".join(cell["source"])
    )
    assert (
        len(titles) >= 12
        and re.findall(r"^\| \d+ \| ([^|]+) \|", table, flags=re.MULTILINE) == titles
    )
    numbers = [
        int(number) for cell in CELLS for number, _ in HEADING.findall("".join(cell["source"]))
    ]
    assert numbers == list(range(1, len(titles) + 1))


@pytest.mark.parametrize("title", exhibits())
def test_an_exhibit_follows_the_pattern(title):
    cells = exhibits()[title]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    marks = [
        "*Seen in: ",
        "](https://",
        "**What you see.**",
        "<summary>Find the bug",
        "**The test.**",
        "**The fix.**",
    ]
    places = [text.find(mark) for mark in marks]
    assert min(places) >= 0 and places == sorted(places), list(zip(marks, places, strict=True))
    broken = ast.parse(code(cells, "teach")[0]).body
    functions = [node for node in broken if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert all(node.end_lineno - node.lineno < MOST_LINES for node in functions)
    printed = "".join(
        "".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", [])
    )
    assert ": caught: " in printed and ": passes" in printed
    checks = "\n".join(code(cells, "check"))
    assert checks.count("verdict(") >= 2 and '"passes"' in checks
