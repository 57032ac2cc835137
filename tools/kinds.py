"""The kinds of code cells: what a reader of the page sees of each. (`contract.py` has their rules.)

A code cell has one kind. Three are told by a tag of their name:

- teach: the idea's code, visible; about 12 lines. An assert stands here only where it is the
  lesson.
- check: asserts, and what they need; folded under one line that counts them. It has no output.
- plumbing: imports, panels, figures, tables; its code is folded, its output stays visible. No
  asserts.

The other two are the setup cell (`colab-setup`) and solutions (`hide-input`, titled "Solution").
What is folded in the page is a form on Colab, so it begins with `# @title`; `notebooks.py
normalize` writes that line where it is missing.
"""

import ast
import re

import nbformat

TAGGED = ("teach", "check", "plumbing")
FOLDED = ("check", "plumbing", "solution")
OWN_TITLES = ("Check", "Code of the figure", "Code of the output", "Imports", "Preparation")
TITLE = re.compile(r"# @title (.+)")
MAGIC = re.compile(r"^(\s*)(?:%{1,2}\w|!(?!=)).*$", re.MULTILINE)  # not `!=` on a line of its own


def has_tag(cell: nbformat.NotebookNode, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def title_of(source: str) -> str:
    """The cell's title, which Colab shows above a form and the page on a fold, or ""."""
    found = TITLE.match(source)
    return found.group(1).strip() if found else ""


def code_of(source: str) -> str:
    return source.partition("\n")[2] if title_of(source) else source


def kinds_of(cell: nbformat.NotebookNode) -> list[str]:
    """The kinds that the cell has; the contract asks for one."""
    kinds = [kind for kind in TAGGED if has_tag(cell, kind)]
    if has_tag(cell, "colab-setup"):
        kinds.append("setup")
    elif has_tag(cell, "hide-input") and title_of(cell.source).startswith("Solution"):
        kinds.append("solution")
    return kinds


def tree_of(source: str) -> ast.Module:
    """The cell's syntax tree; lines for IPython count as `pass`."""
    return ast.parse(MAGIC.sub(r"\1pass", source))


def asserts_in(source: str) -> list[ast.Assert]:
    return [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Assert)]


def new_title(kind: str, cell: nbformat.NotebookNode) -> str:
    """The title of a folded cell whose author gave it none: one of OWN_TITLES."""
    if kind == "check":
        return "Check"
    if cell.get("outputs"):
        shown = [mime for output in cell.outputs for mime in output.get("data", {})]
        figure = any(mime.startswith(("image/", "text/html")) for mime in shown)
        return "Code of the figure" if figure else "Code of the output"
    statements = {type(node) for node in tree_of(cell.source).body}
    imports = statements & {ast.Import, ast.ImportFrom}
    return "Imports" if imports and statements <= imports | {ast.Assign} else "Preparation"


def write_form(cell: nbformat.NotebookNode) -> None:
    """Make a folded cell a form on Colab, with a title; a visible cell is none. Other cells stay as
    they are."""
    kinds = kinds_of(cell)
    if kinds == ["teach"]:
        cell.metadata.pop("cellView", None)
        cell.source = code_of(cell.source)
    elif len(kinds) == 1 and kinds[0] in FOLDED:
        cell.metadata["cellView"] = "form"
        if title_of(cell.source) in ("", *OWN_TITLES):  # a run may have given the cell an output
            cell.source = f"# @title {new_title(kinds[0], cell)}\n{code_of(cell.source)}"
