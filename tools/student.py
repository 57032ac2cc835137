"""`make student`: the book for students, in the folder `student/`: notebooks and pages without the
solutions.

A solution's cell becomes an empty one, with a comment that says what belongs there. The checks stay
as they are; what they said to the solution is taken away. The pages of questions lose their
answers. Everything else is the book's.
"""

import ast
import re
import shutil
import sys
from pathlib import Path

import nbformat

from environment import ROOT
from kinds import kinds_of, tree_of
from notebooks import book_notebooks, read, write

EMPTY = "# Your solution: write it here, run this cell, then the next one."
ANSWER = re.compile(r"<details><summary>Answer</summary>.*?</details>\n*", re.DOTALL)


def functions_in(source: str) -> set[str]:
    return {node.name for node in tree_of(source).body if isinstance(node, ast.FunctionDef)}


def used_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(tree_of(source)) if isinstance(node, ast.Name)}


def without_solutions(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy with an empty cell for each solution, and without the outputs of the cells that call
    one."""
    notebook = nbformat.from_dict(notebook)
    solved = set()
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        solution = kinds_of(cell) == ["solution"]
        if solution:
            solved |= functions_in(cell.source)
            cell.source = EMPTY
            cell.metadata = nbformat.NotebookNode()
        if solution or solved & used_in(cell.source):
            cell.outputs = []
            cell.execution_count = None
    return notebook


def write_student(folder: Path, root: Path = ROOT) -> int:
    """Write the students' book into `folder`, which must not be there yet; how many solutions were
    taken out."""
    shutil.copytree(root / "book", folder, ignore=shutil.ignore_patterns(".*", "ruff.toml"))
    taken = 0
    for path in book_notebooks(root):
        notebook = without_solutions(read(path))
        taken += sum(cell.source == EMPTY for cell in notebook.cells)
        write(notebook, folder / path.relative_to(root / "book"))
    for page in folder.rglob("questions.md"):
        text = ANSWER.sub("", page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8", newline="\n")
    return taken


def main(folder: Path = ROOT / "student") -> int:
    """Write the folder and say so; the exit code."""
    if folder.exists():
        told = f"{folder.name}/ is there, perhaps with somebody's work: move or remove it first."
        print(told, file=sys.stderr)
        return 2
    taken = write_student(folder)
    print(f"{folder.name}/ holds the book without its {taken} solutions and without the answers.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
