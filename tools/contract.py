"""The truth contract's guards over the book's sources: notebooks and Markdown. (`pages.py` guards
the built pages.)

Each guard returns the problems it found, one sentence each; `make test` runs them through
`tests/test_contract.py`.
"""

import re
import sys
from pathlib import Path

import nbformat

from environment import ROOT
from kinds import asserts_in, code_of, has_tag, kinds_of
from notebooks import book_notebooks, check, describe, read

MOST_LINES = 25  # of a visible cell; `spine.py` has the limits of the package's own text
VISIBLE_COLUMNS, FOLDED_COLUMNS = 72, 88
MOST_ASSERTS = 0.03  # share of the visible code lines
MACHINE_PATH = re.compile(
    rf"{re.escape(str(ROOT))}/|/home/|/root/|/tmp/|/Users/|site-packages/"
    r"|\b[A-Za-z]:\\\\?(?:Users|Windows)"
)
DIRECTIVE = re.compile(r"^\s*(?:(?:`{3,}|~{3,}|:{3,})\s*\{[\w:.-]+\}|\.\. [\w-]+::)", re.MULTILINE)
ROLE = re.compile(r"\{[a-z][\w:.-]*\}`[^`]+`")
LABEL = re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE)
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
WORDED = re.compile(  # an SVG with a title and a description, or with a label
    r"<title>[^<]*\w[^<]*</title><desc>[^<]*\w[^<]*</desc>|^<svg class=\"plot\"[^>]* aria-label=\"[^\"]*\w"
)
ONLY_TRUE = re.compile(r"^(?:.*[:=]\s*)?(?:True|False)$", re.MULTILINE)
ARXIV = re.compile(r"arxiv\.org/(?:abs|pdf|html)/(\d{4}\.\d{4,5})")
ACL = re.compile(r"aclanthology\.org/([\w.-]+?)(?:\.pdf)?(?=[/\s)>\]\"']|$)")


def cell_problems(cell: nbformat.NotebookNode) -> list[str]:
    """What the contract refuses in one code cell and what it stores, as ends of sentences that
    begin with the cell."""
    kinds = kinds_of(cell)
    kind = kinds[0] if kinds else ""
    asserts, lines = asserts_in(cell.source), cell.source.splitlines()
    columns = VISIBLE_COLUMNS if kind == "teach" else FOLDED_COLUMNS
    long = [number for number, line in enumerate(lines, start=1) if len(line) > columns]
    tall = kind == "teach" and len(lines) > MOST_LINES and "source" not in cell.metadata
    streams = {(output.output_type, output.get("name")) for output in cell.outputs}
    shown = [item for output in cell.outputs for item in output.get("data", {}).items()]
    texts = [output.get("text", "") for output in cell.outputs]
    texts += [data for mime, data in shown if mime == "text/plain"]
    pictures = [(mime, data) for mime, data in shown if mime.startswith("image/")]
    told = all(mime == "image/svg+xml" and WORDED.search(data) for mime, data in pictures)
    alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip()
    wrong = {
        f"has {' and '.join(kinds) or 'no kind'}; tag it teach, check or plumbing.": len(kinds)
        != 1,
        f"is visible and has {len(lines)} lines; {MOST_LINES} is the most.": tall,
        f"has lines of more than {columns} columns: {long}.": kind != "setup" and long,
        "is a check without an assert.": kind == "check" and not asserts,
        "is a check with an output: print in a teach cell.": kind == "check" and cell.outputs,
        "is plumbing with an assert: give it a check cell.": kind == "plumbing" and asserts,
        "prints only True or False: say it in words, and assert it.": any(
            map(ONLY_TRUE.search, texts)
        ),
        "was never executed.": cell.execution_count is None,  # nbval would pass it
        "is skipped by the tests; every cell must run.": has_tag(cell, "nbval-skip")
        or "NBVAL_SKIP" in cell.source,
        "wrote to stderr.": ("stream", "stderr") in streams,
        "stores an error.": ("error", None) in streams,
        "stores a Markdown table; use figures.table, which the built page can show.": any(
            mime == "text/markdown" and data.startswith("|") for mime, data in shown
        ),
        "stores a widget view.": any("widget-view" in mime for mime, _ in shown),
        "shows a picture without mystnb.image.alt.": not told and not alt,
        # they would stay when the figure changes
        "has numbers in mystnb.image.alt: give the figure a label made from what it plots, "
        'figure.set_label(f"…{value:.1f}…").': re.search(r"\d", alt),
    }
    return [sentence for sentence, found in wrong.items() if found]


def assert_share(cells: list[nbformat.NotebookNode]) -> list[str]:
    """Too many asserts in the visible code."""
    visible = [cell.source for cell in cells if kinds_of(cell) == ["teach"]]
    asserts = [node for source in visible for node in asserts_in(source)]
    lines = [line for source in visible for line in code_of(source).splitlines() if line.strip()]
    share = sum(one.end_lineno - one.lineno + 1 for one in asserts) / max(len(lines), 1)
    told = f"{share:.1%} of the visible code lines are asserts; {MOST_ASSERTS:.0%} is the most."
    return [told] if share > MOST_ASSERTS else []


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
            if asserts_in(cell.source):
                open_cells = []
    return problems


def directives(text: str) -> list[str]:
    """MyST directives, roles and labels, which Colab and GitHub would show as raw text."""
    outside = CODE.sub(lambda code: code[0] if DIRECTIVE.match(code[0]) else "", text)
    found = [item.strip() for item in DIRECTIVE.findall(outside) + LABEL.findall(outside)]
    return [
        f"MyST syntax `{item}` reads as raw text on Colab and GitHub."
        for item in found + ROLE.findall(text)
    ]


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


def notebook_problems(notebook: nbformat.NotebookNode, references: str) -> list[str]:
    """All that the contract refuses in one notebook."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    problems = [f"{describe(c, notebook.cells)} {told}" for c in cells for told in cell_problems(c)]
    problems += assert_share(cells) + unasserted(notebook)
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
        found = notebook_problems(read(path), references)
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
