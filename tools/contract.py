"""The truth contract's guards over the book's sources: notebooks and Markdown. (`pages.py` guards
the built pages.)

Each guard returns the problems it found, one sentence each; `make test` runs them through
`tests/test_contract.py`.
"""

import re
import sys
from pathlib import Path

import nbformat

from address import has_tag
from environment import ROOT
from kinds import MOST_ASSERTS, cell_problems, visible_share
from live import exact_comparisons
from notebooks import book_notebooks, check, describe, read

MACHINE_PATH = re.compile(
    r"/home/|/root/|/tmp/|/work/|/Users/|site-packages/|\b[A-Za-z]:\\\\?(?:Users|Windows)"
)
DIRECTIVE = re.compile(r"^\s*(?:(?:`{3,}|~{3,}|:{3,})\s*\{[\w:.-]+\}|\.\. [\w-]+::)", re.MULTILINE)
ROLE = re.compile(r"\{[a-z][\w:.-]*\}`[^`]+`")
LABEL = re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE)
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
ASSERT = re.compile(r"^\s*assert\b", re.MULTILINE)
WORDED = re.compile(
    r"<title>[^<]*\w[^<]*</title><desc>[^<]*\w[^<]*</desc>|^<svg class=\"plot\"[^>]* aria-label=\"[^\"]*\w"
)
ARXIV = re.compile(r"arxiv\.org/(?:abs|pdf|html)/(\d{4}\.\d{4,5})")
ACL = re.compile(r"aclanthology\.org/([\w.-]+?)(?:\.pdf)?(?=[/\s)>\]\"']|$)")


def code_cells(notebook: nbformat.NotebookNode) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell_guards(cell: nbformat.NotebookNode) -> list[str]:
    """What the contract refuses in one code cell and what it stores, as ends of sentences that
    begin with the cell. Numbers typed into a text alternative would stay when the figure changes."""
    kinds = {(output.output_type, output.get("name")) for output in cell.outputs}
    shown = [item for output in cell.outputs for item in output.get("data", {}).items()]
    picture = any(mime.startswith("image/") and not has_words(mime, data) for mime, data in shown)
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()
    tables = [data for mime, data in shown if mime == "text/markdown" and data.startswith("|")]
    wrong = {
        "was never executed.": cell.execution_count is None,  # nbval would pass it
        "is skipped by the tests; every cell must run.": has_tag(cell, "nbval-skip")
        or "NBVAL_SKIP" in cell.source,
        "wrote to stderr.": ("stream", "stderr") in kinds,
        "stores an error.": ("error", None) in kinds,
        "stores a Markdown table; use figures.table, which the built page can show.": tables,
        "stores a widget view.": any("widget-view" in mime for mime, _ in shown),
        "shows a picture without mystnb.image.alt.": picture and not alt,
        "has numbers in mystnb.image.alt: give the figure a label made from what it plots, "
        'figure.set_label(f"…{value:.1f}…").': re.search(r"\d", alt),
    }
    return [sentence for sentence, found in wrong.items() if found]


def unasserted(notebook: nbformat.NotebookNode) -> list[str]:
    """Cells whose output is ignored, with no `assert` in them or after them in their section."""
    problems, open_cells = [], []
    end = nbformat.v4.new_markdown_cell("## End")
    told = "ignores its output and no assert follows it in its section."
    for cell in [*notebook.cells, end]:
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.MULTILINE):
            problems += [f"{describe(one, notebook.cells)} {told}" for one in open_cells]
            open_cells = []
        elif cell.cell_type == "code" and not has_tag(cell, "colab-setup"):
            if has_tag(cell, "nbval-ignore-output") or "NBVAL_IGNORE_OUTPUT" in cell.source:
                open_cells.append(cell)
            if ASSERT.search(cell.source):
                open_cells = []
    return problems


def exact(notebook: nbformat.NotebookNode) -> list[str]:
    """Numbers of a live training that an `assert` compares exactly."""
    return [
        f"{describe(cell, notebook.cells)} asserts `{comparison}`, which another processor need not "
        "compute: give a range."
        for cell, comparison in exact_comparisons(notebook)
    ]


def has_words(mime: str, data: str) -> bool:
    """Whether the picture is an SVG with a title and a description, or a label, in it."""
    return mime == "image/svg+xml" and bool(WORDED.search(data))


def directives(text: str) -> list[str]:
    """MyST directives, roles and labels, which Colab and GitHub would show as raw text."""
    outside = CODE.sub(
        lambda match: "" if not DIRECTIVE.match(match.group()) else match.group(), text
    )
    found = [match.group().strip() for match in DIRECTIVE.finditer(outside)]
    found += [match.group() for match in ROLE.finditer(text)]
    found += [match.group().strip() for match in LABEL.finditer(outside)]
    return [f"MyST syntax `{item}` reads as raw text on Colab and GitHub." for item in found]


def machine_paths(text: str) -> list[str]:
    starts = [found.start() for found in MACHINE_PATH.finditer(text)]
    return [f"machine path near `{text[at : at + 40]!r}`." for at in starts]


def cited(text: str) -> set[str]:
    """Papers that the text links to, e.g. "arXiv 1907.10529"; versions and forms of one paper count
    once."""
    acl = {f"ACL {key.rstrip('.')}" for key in ACL.findall(text)}
    return acl | {f"arXiv {key}" for key in ARXIV.findall(text)}


def uncited(text: str, references: str) -> list[str]:
    missing = sorted(cited(text) - cited(references))
    return [f"{paper} is cited without an entry in references.md." for paper in missing]


def all_text(notebook: nbformat.NotebookNode) -> str:
    """Everything a reader can see of the notebook: sources and textual outputs."""
    parts = []
    for cell in notebook.cells:
        parts.append(cell.source)
        for output in cell.get("outputs", []):
            shown = output.get("data", {}).items()
            parts.append(output.get("text", ""))
            parts += [data for mime, data in shown if mime.startswith("text/")]
    return "\n".join(parts)


def wrong_kinds(notebook: nbformat.NotebookNode) -> list[str]:
    """Cells without a kind or against the rules of theirs, and too many visible asserts."""
    cells = code_cells(notebook)
    problems = [f"{describe(c, notebook.cells)} {told}" for c in cells for told in cell_problems(c)]
    if (share := visible_share(cells)) > MOST_ASSERTS:
        problems.append(
            f"{share:.1%} of the visible code lines are asserts; {MOST_ASSERTS:.0%} is the most."
        )
    return problems


def notebook_problems(notebook: nbformat.NotebookNode, references: str) -> list[str]:
    """All that the contract refuses in one notebook, but for the kinds of its cells
    (`wrong_kinds`)."""
    cells = code_cells(notebook)
    problems = [f"{describe(c, notebook.cells)} {told}" for c in cells for told in cell_guards(c)]
    problems += unasserted(notebook) + exact(notebook)
    if not cells or not has_tag(cells[0], "colab-setup"):
        problems.append("the first code cell is not the Colab setup.")
    markdown = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    problems += directives(markdown) + uncited(markdown, references)
    return problems + machine_paths(all_text(notebook))


def book_problems(root: Path = ROOT) -> list[str]:
    """All that the contract refuses in the book's sources."""
    references = (root / "book" / "references.md").read_text(encoding="utf-8")
    problems = []
    for path in book_notebooks(root):
        notebook = read(path)
        found = notebook_problems(notebook, references) + wrong_kinds(notebook)
        problems += [f"{path.name}: {problem}" for problem in found] + check(path, root)
    for path in [root / "README.md", *sorted((root / "book").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        found = machine_paths(text) + uncited(text, references)
        problems += [f"{path.name}: {problem}" for problem in found]
    return problems


if __name__ == "__main__":
    found = book_problems()
    print("\n".join(found) or "The book keeps the contract.")
    sys.exit(1 if found else 0)
