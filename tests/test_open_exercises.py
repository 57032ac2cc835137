"""The exercises without a solution: every chapter has one, with what a good answer contains; its
code fits the chapter, and its numbers are right."""

import ast
import builtins
import math
import re

import numpy as np
import pytest

from environment import ROOT
from notebooks import book_notebooks, read
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric

HEADING = "## Exercise without a solution"
CHAPTERS = [
    path
    for path in book_notebooks(ROOT)
    if path.parent.name not in ("book", "evidence", "workshop")
]


def exercise(path) -> str:
    """The section of a chapter."""
    text = "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    sections = re.findall(rf"^{HEADING}$(.*?)(?=^## )", text, flags=re.MULTILINE | re.DOTALL)
    assert len(sections) == 1, f"{path.stem} has {len(sections)} of them"
    return sections[0]


def names(source: str, kind: type) -> set[str]:
    """Names that are set (ast.Store) or read (ast.Load) in a source; imports and functions are set,
    too."""
    tree = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE))
    found = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, kind)
    }
    if kind is ast.Store:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg):
                found.add(node.arg if isinstance(node, ast.arg) else node.name)
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_it_asks_for_a_prediction_and_three_seeds_and_folds_what_a_good_answer_contains(path):
    asked, good = exercise(path).split("<details><summary>What a good answer contains</summary>")
    assert "**Predict**" in asked or "**predict**" in asked
    assert "three" in asked.lower() and "what you found" in asked
    assert len(good.split("</details>")[0].split()) >= 40
    prose = re.sub(r"```.*?```", "", asked, flags=re.DOTALL)
    assert len(prose.split()) + len(good.split()) <= 160


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_its_code_uses_what_the_chapter_has(path):
    code = "\n".join(re.findall(r"```python\n(.*?)```", exercise(path), flags=re.DOTALL))
    assert code or "python -m spanbert_tutorial" in exercise(path)
    assert max(map(len, code.splitlines()), default=0) <= 88
    above = []
    for cell in read(path).cells:
        if HEADING in cell.source:
            break
        above += [cell.source] if cell.cell_type == "code" else []
    known = set().union(
        *(names(source, ast.Store) for source in above), names(code, ast.Store), dir(builtins)
    )
    assert names(code, ast.Load) <= known | {"seed"}, names(code, ast.Load) - known


def test_the_numbers_of_the_folded_texts():
    """Those that can be computed beforehand."""
    texts = {path.stem: exercise(path) for path in CHAPTERS}
    lengths = [clipped_geometric(p) @ np.arange(1, 11) for p in (0.5, 0.2)]
    assert "about 2.0 instead of 3.8" in texts["span_masking"] and np.round(
        lengths, 1
    ).tolist() == [2.0, 3.8]
    assert "ln 3 = 1.10" in texts["boundary"] and round(math.log(3), 2) == 1.10
    assert "35 · (1 − (34/35)⁴⁰) = 24.0" in texts["roberta"] and math.comb(7, 3) == 35
    assert round(35 * (1 - (34 / 35) ** 40), 1) == 24.0
    assert "a factor of 1.65" in texts["masking"] and round(0.3 * 0.7 / (0.15 * 0.85), 2) == 1.65
    hidden = SpanMasking().budget(512)
    told = (
        f"of 512 tokens {hidden} are masked, so T5 reads {512 - hidden} + k and writes "
        f"{hidden + 1} + k"
    )
    assert told in texts["beyond"]
    assert "ends at 65,504" in texts["old_notes"] and np.finfo(np.float16).max == 65_504
