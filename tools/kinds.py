"""The kinds of code cells: what a reader of the page sees of each, the rules of each, and how far a
chapter is.

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
MOST_LINES = 25  # of a visible cell; `spine.py` has the limits of the package's own text
VISIBLE_COLUMNS = 72
FOLDED_COLUMNS = 88
MOST_ASSERTS = 0.03  # share of the visible code lines
OWN_TITLES = ("Check", "Code of the figure", "Code of the output", "Imports", "Preparation")
TITLE = re.compile(r"# @title (.+)")
MAGIC = re.compile(r"^(\s*)(?:%{1,2}\w|!(?!=)).*$", re.MULTILINE)  # not `!=` on a line of its own
ONLY_TRUE = re.compile(r"^(?:.*[:=]\s*)?(?:True|False)$", re.MULTILINE)


def title_of(source: str) -> str:
    """The cell's title, which Colab shows above a form and the page on a fold; "" where it has
    none."""
    found = TITLE.match(source)
    return found.group(1).strip() if found else ""


def code_of(source: str) -> str:
    return source.partition("\n")[2] if title_of(source) else source


def kinds_of(cell: nbformat.NotebookNode) -> list[str]:
    """The kinds that the cell has; the contract asks for one."""
    tags = cell.metadata.get("tags", [])
    kinds = [kind for kind in TAGGED if kind in tags]
    if "colab-setup" in tags:
        kinds.append("setup")
    elif "hide-input" in tags and title_of(cell.source).startswith("Solution"):
        kinds.append("solution")
    return kinds


def tree_of(source: str) -> ast.Module:
    """The cell's syntax tree; lines for IPython count as `pass`."""
    return ast.parse(MAGIC.sub(r"\1pass", source))


def asserts_in(source: str) -> list[ast.Assert]:
    return [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Assert)]


def has_output(cell: nbformat.NotebookNode, *mimes: str) -> bool:
    """Whether the cell shows something; with `mimes`, something whose type begins with one of
    them."""
    shown = [mime for output in cell.get("outputs", []) for mime in output.get("data", {})]
    return any(mime.startswith(mimes) for mime in shown) if mimes else bool(cell.get("outputs"))


def new_title(kind: str, cell: nbformat.NotebookNode) -> str:
    """The title of a folded cell whose author gave it none: one of OWN_TITLES."""
    if kind == "check":
        return "Check"
    if has_output(cell):
        figure = has_output(cell, "image/", "text/html")
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


def cell_problems(cell: nbformat.NotebookNode) -> list[str]:
    """What the cell's kind forbids, as ends of sentences that begin with the cell."""
    kinds = kinds_of(cell)
    if len(kinds) != 1:
        return [f"has {' and '.join(kinds) or 'no kind'}; tag it teach, check or plumbing."]
    (kind,), asserts, lines = kinds, asserts_in(cell.source), cell.source.splitlines()
    tall = kind == "teach" and len(lines) > MOST_LINES and "source" not in cell.metadata
    columns = VISIBLE_COLUMNS if kind == "teach" else FOLDED_COLUMNS
    long = [number for number, line in enumerate(lines, start=1) if len(line) > columns]
    streams = [output for output in cell.outputs if output.output_type == "stream"]
    printed = "".join(output.get("text", "") for output in streams)
    returned = "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    wrong = {
        f"is visible and has {len(lines)} lines; {MOST_LINES} is the most.": tall,
        "is a check without an assert.": kind == "check" and not asserts,
        "is a check with an output: print in a teach cell.": kind == "check" and has_output(cell),
        "is plumbing with an assert: give it a check cell.": kind == "plumbing" and asserts,
        f"has lines of more than {columns} columns: {long}.": kind != "setup" and long,
        "prints only True or False: say it in words, and assert it.": ONLY_TRUE.search(
            f"{printed}\n{returned}"
        ),
    }
    return [problem for problem, found in wrong.items() if found]


def visible_share(cells: list[nbformat.NotebookNode]) -> float:
    """Share of asserts in the lines of the visible code cells."""
    visible = [cell.source for cell in cells if kinds_of(cell) == ["teach"]]
    asserts = [node for source in visible for node in asserts_in(source)]
    lines = [line for source in visible for line in code_of(source).splitlines() if line.strip()]
    return sum(one.end_lineno - one.lineno + 1 for one in asserts) / max(len(lines), 1)
