"""Cells of chapters by a mark in their text, run with other values than the chapter's: do their
asserts break?"""

import json
from itertools import takewhile

import matplotlib.pyplot as plt
import nbformat
import numpy as np

from spanbert_tutorial.engine.files import data_path

PAPERS = json.loads(data_path("papers.json").read_text(encoding="utf-8"))


def cells(chapter: str, *marks: str) -> str:
    """The sources of the code cells that hold the marks, one each, in the order of the marks, each
    with the check cells right behind it. chapter: such as "bert/masking"."""
    notebook = nbformat.read(
        data_path("papers.json").parents[1] / "book" / f"{chapter}.ipynb", as_version=4
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = [[place for place, cell in enumerate(code) if mark in cell.source] for mark in marks]
    assert all(len(places) == 1 for places in found), marks
    sources = []
    for (place,) in found:
        checks = takewhile(lambda cell: "check" in cell.metadata.get("tags", []), code[place + 1 :])
        sources += [cell.source for cell in (code[place], *checks)]
    return "\n".join(sources)


def breaks(source: str, given: dict) -> bool:
    """Whether an assert of the cells fails with these values; `np` and `json` are always there."""
    try:
        exec(source, {"np": np, "json": json, **given})
    except AssertionError:
        return True
    finally:
        plt.close("all")
    return False


def kept(name: str) -> dict:
    """A file of results."""
    return json.loads(data_path("results", name).read_text(encoding="utf-8"))


def swapped(values: dict, one, other) -> dict:
    """A copy in which two names have changed places."""
    return values | {one: values[other], other: values[one]}
