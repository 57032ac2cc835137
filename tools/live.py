"""What a cell compares exactly although a live training made it: another processor computes other
digits, so such a number is compared with a range.

A value is live when it comes from a call that trains, or is computed from a live value. A line with
the comment `# exact: WHY` is left alone, such as two runs on one machine that must be equal.
"""

import ast
import re
from collections.abc import Iterator

import nbformat

from address import has_tag
from kinds import code_of

TRAINERS = re.compile(r"^(?:fit|pretrain|fine_tune\w*|train|trained|train_\w+)$")
VOCABULARIES = ("WordPiece",)  # their training counts, exactly
COUNTS = ("len", "isinstance", "type")  # of what was trained: the same everywhere
FIXED = ("shape", "dtype", "steps")


class Live:
    """Goes through the cells of a notebook in order. names: what is live now; trainers: functions
    of the notebook that train."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.trainers: set[str] = set()

    def trains(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        called = node.func
        if isinstance(called, ast.Attribute):
            vocabulary = getattr(called.value, "id", "") in VOCABULARIES
            fits = called.attr == "fit"  # of sklearn: the same solution everywhere
            return not (vocabulary or fits) and bool(TRAINERS.match(called.attr))
        name = getattr(called, "id", "")
        return bool(TRAINERS.match(name)) or name in self.trainers

    def live(self, node: ast.AST) -> bool:
        """Whether a value depends on a training."""
        counted = isinstance(node, ast.Call) and getattr(node.func, "id", "") in COUNTS
        fixed = isinstance(node, ast.Attribute) and node.attr in FIXED
        if counted or fixed or isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Name):
            return node.id in self.names
        return self.trains(node) or any(map(self.live, ast.iter_child_nodes(node)))

    def store(self, target: ast.expr, live: bool) -> None:
        """A name becomes live, or no longer is; a part of an object only becomes so."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and live:
                self.names.add(node.id)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names.discard(node.id)

    def exact(self, node: ast.AST) -> Iterator[ast.expr]:
        """The exact comparisons with live values in the asserts of a piece of code."""
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if any(map(self.trains, ast.walk(node))):
                self.trainers.add(node.name)
            return
        if isinstance(node, ast.For | ast.comprehension):
            self.store(node.target, self.live(node.iter))
        if isinstance(node, ast.Assert):
            for one in ast.walk(node.test):
                equal = isinstance(one, ast.Compare) and ast.Eq in map(type, one.ops)
                if equal and self.live(one):
                    yield one
        for child in ast.iter_child_nodes(node):
            yield from self.exact(child)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self.store(target, self.live(node.value))
        if isinstance(node, ast.AugAssign) and self.live(node.value):
            self.store(node.target, True)
        if self.trains(node) and node.args and isinstance(node.args[0], ast.Name):
            self.names.add(node.args[0].id)  # trained in place


def exact_comparisons(notebook: nbformat.NotebookNode) -> list[tuple[nbformat.NotebookNode, str]]:
    """Cells with what they compare exactly although it is live."""
    state, found = Live(), []
    for cell in notebook.cells:
        if cell.cell_type == "code" and not has_tag(cell, "colab-setup"):
            source = code_of(cell.source)
            lines = source.splitlines()
            found += [
                (cell, ast.unparse(one))
                for one in state.exact(ast.parse(source))
                if "# exact: " not in lines[(one.end_lineno or one.lineno) - 1]
            ]
    return found
