"""A tiny book to try the tools on: one welcome page, one notebook, the real book's settings."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from environment import ROOT

REFERENCES = "# References\n\n- Joshi and others. SpanBERT. <https://arxiv.org/abs/1907.10529>\n"
ROAD = """
[chapters]
"bert/chapter" = {name = "A chapter", needs = [], shows = "a sum"}
"references" = {name = "References", needs = ["bert/chapter"], shows = "papers"}
"""
BUILD = "import sys; from jupyter_book.cli.main import main; sys.argv[0] = 'jupyter-book'; main()"


def executed(source: str, count: int, outputs: list | None = None, tags: list[str] | None = None):
    """A code cell as it looks after a run."""
    cell = new_code_cell(source, execution_count=count, outputs=outputs or [])
    cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
    return cell


def printed(text: str, name: str = "stdout"):
    """What a cell printed."""
    return new_output("stream", name=name, text=text)


def good_notebook():
    """A notebook that keeps the contract, but for its metadata, which `normalize` brings in
    order."""
    return new_notebook(
        cells=[
            new_markdown_cell(
                "# A chapter\n\nSee [SpanBERT](https://arxiv.org/abs/1907.10529v3) and $x^2$."
            ),
            executed("# setup", 1, tags=["colab-setup", "hide-input", "nbval-ignore-output"]),
            executed("print(1 + 1)", 2, [printed("2\n")], ["teach"]),
            new_markdown_cell(
                "```python\nfill(me)  # ```{note} is code here\n```\nand `{role}` in code."
            ),
        ]
    )


def make_book(root: Path, notebook=None) -> Path:
    """Write the sample book into `root`, its notebook in the normal form; the notebook's path."""
    from notebooks import normalize, serialize

    chapter = root / "book" / "bert" / "chapter.ipynb"
    chapter.parent.mkdir(parents=True)
    shutil.copy(ROOT / "_config.yml", root)
    set_address(root, "")
    shutil.copytree(ROOT / "book_assets", root / "book_assets")
    (root / "tools").mkdir()
    for name in ("book_extension.py", "kinds.py", "road.py", "polish.py"):
        shutil.copy(ROOT / "tools" / name, root / "tools")
    (root / "book" / "welcome.md").write_text(
        "# Welcome\n\nTo the [chapter](bert/chapter.ipynb).\n"
    )
    (root / "book" / "references.md").write_text(REFERENCES)
    (root / "book" / "road.toml").write_text(ROAD)
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/welcome\nparts:\n- caption: One part\n  chapters:\n"
        "  - file: book/bert/chapter\n  - file: book/references\n"
    )
    chapter.write_text(
        serialize(normalize(notebook or good_notebook(), chapter, root)), encoding="utf-8"
    )
    return chapter


def set_address(root: Path, url: str) -> None:
    """Write the repository's address into the sample's settings, and nothing else."""
    config = root / "_config.yml"
    lines = config.read_text(encoding="utf-8").splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("  url:"))
    lines[place] = f'  url: "{url}"'
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")


def build(root: Path) -> subprocess.CompletedProcess:
    """Build the sample as `make book` builds the book."""
    command = [sys.executable, "-c", BUILD, "build", ".", "-W", "--keep-going", "--quiet"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)
