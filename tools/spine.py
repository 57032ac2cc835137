"""Write into the chapters the package's own text: python tools/spine.py [--check] [PATHS].

A visible cell whose metadata name a `source`, such as `spanbert/span_masking.py:mask_words` (or a
list of them), holds these definitions as they stand in the package: comments included, docstrings
cut to their first line. The cell is written from the module, never the other way. A cell that
changes loses its outputs, so it has to be executed again. `--check` only says what would change.
"""

import argparse
import ast
import sys
from pathlib import Path

import nbformat

from environment import ROOT

PACKAGE = ROOT / "spanbert_tutorial"
COLUMNS = 72
LINES = {"function": 60, "class": 40}  # the training loop is the longest function


class SpineError(ValueError):
    """A cell names a source that a chapter cannot show."""


def names_of(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(node.target)]
    if isinstance(node, ast.Assign):
        return [ast.unparse(target) for target in node.targets]
    return []


def documented(node: ast.stmt) -> list[ast.Expr]:
    """The docstrings in a definition, its own and those of its methods."""
    inner = [one for one in ast.walk(node) if isinstance(one, (ast.FunctionDef, ast.ClassDef))]
    return [one.body[0] for one in inner if ast.get_docstring(one)]


def text_of(source: str) -> str:
    """The text of `FILE.py:NAME`, for a cell. Raises SpineError where there is none, or one that is
    too long or too wide to show."""
    place, _, name = source.partition(":")
    path = PACKAGE / place
    if not path.is_file():
        raise SpineError(f"{source}: the package has no file {place}.")
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    node = next((node for node in ast.parse(text).body if name in names_of(node)), None)
    if node is None:
        raise SpineError(f"{source}: {place} defines no {name} at its top level.")
    decorators = getattr(node, "decorator_list", [])
    begin = min([node.lineno, *(one.lineno for one in decorators)])
    shown = dict(enumerate(lines[begin - 1 : node.end_lineno], start=begin))
    for docstring in documented(node):
        first, last = docstring.lineno, docstring.end_lineno or docstring.lineno
        if last > first:
            summary, _, rest = ast.get_source_segment(text, docstring).partition("\n\n")
            if "\n" in summary.rstrip('"').rstrip():
                raise SpineError(f"{source}: the summary of a docstring takes more than one line.")
            closing = '"""' if rest or '"""' not in shown[first][6:] else ""
            shown[first] = shown[first].rstrip() + closing
            for number in range(first + 1, last + 1):
                del shown[number]
    result = list(shown.values())
    most = LINES["class" if isinstance(node, ast.ClassDef) else "function"]
    if len(result) > most:
        raise SpineError(f"{source} has {len(result)} lines; a chapter shows {most} at most.")
    if wide := [line for line in result if len(line) > COLUMNS]:
        raise SpineError(f"{source} has lines of more than {COLUMNS} columns: {wide[0].strip()}")
    return "\n".join(result)


def sources_of(cell: nbformat.NotebookNode) -> list[str]:
    source = cell.metadata.get("source", [])
    return [source] if isinstance(source, str) else list(source)


def update(notebook: nbformat.NotebookNode) -> list[str]:
    """Writes the cells of a notebook from the package; the sources of those that changed."""
    changed = []
    for cell in notebook.cells:
        if sources := sources_of(cell):
            text = "\n\n\n".join(map(text_of, sources))
            if text != cell.source:
                cell.source, cell.outputs, cell.execution_count = text, [], None
                changed += sources
    return changed


def main() -> int:
    """The command line; 1 where `--check` finds a cell that is not its source's text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; all when none is given")
    arguments = parser.parse_args()
    found = 0
    for path in arguments.paths or sorted((ROOT / "book").rglob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        try:
            changed = update(notebook)
        except SpineError as problem:
            print(f"{path.name}: {problem}", file=sys.stderr)
            return 1
        for source in changed:
            print(f"{path.name}: {source}")
        found += len(changed)
        if changed and not arguments.check:
            text = nbformat.writes(notebook, version=4) + "\n"
            path.write_text(text, encoding="utf-8", newline="\n")
    return 1 if arguments.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
