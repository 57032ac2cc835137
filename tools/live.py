"""What a cell compares exactly although a live training made it: another processor computes other
digits, so such a number is compared with a range.

A value is live when it comes from a call that trains, or is computed from a live value. A line with
the comment `# exact: WHY` is left alone, such as two runs on one machine that must be equal.
"""

import ast
import re

import nbformat

from address import has_tag
from kinds import code_of

TRAINERS = re.compile(r"^(?:fit|pretrain|fine_tune\w*|train|trained|train_\w+)$")
VOCABULARIES = ("WordPiece", "ByteBPE")  # their training counts, exactly
COUNTS = ("len", "isinstance", "type")  # of what was trained: the same everywhere
FIXED = ("shape", "dtype", "steps")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Live(ast.NodeVisitor):
    """Goes through the cells of a notebook in order. names: what is live now; found: the source of
    each exact comparison with it."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.trainers: set[str] = set()
        self.found: list[ast.expr] = []

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
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in COUNTS:
            return False
        if isinstance(node, ast.Attribute) and node.attr in FIXED or isinstance(node, ast.Lambda):
            return False
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, COMPREHENSIONS):
            if any(self.live(part.iter) for part in node.generators):
                return True
            outside, targets = self.names, [part.target for part in node.generators]
            own = {n.id for one in targets for n in ast.walk(one) if isinstance(n, ast.Name)}
            self.names = outside - own
            found = any(map(self.live, ast.iter_child_nodes(node)))
            self.names = outside
            return found
        return self.trains(node) or any(map(self.live, ast.iter_child_nodes(node)))

    def store(self, target: ast.expr, live: bool) -> None:
        """A name becomes live, or no longer is; a part of an object only becomes so."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and live:
                self.names.add(node.id)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.names.discard(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(map(self.trains, ast.walk(node))):
            self.trainers.add(node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        pass

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.store(target, self.live(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self.live(node.value):
            self.store(node.target, True)

    def visit_For(self, node: ast.For) -> None:
        self.store(node.target, self.live(node.iter))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if self.trains(node) and node.args and isinstance(node.args[0], ast.Name):
            self.names.add(node.args[0].id)  # trained in place
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.found += [
            one
            for one in ast.walk(node.test)
            if isinstance(one, ast.Compare)
            and any(isinstance(operator, ast.Eq) for operator in one.ops)
            and self.live(one)
        ]


def exact_comparisons(notebook: nbformat.NotebookNode) -> list[tuple[nbformat.NotebookNode, str]]:
    """Cells with what they compare exactly although it is live."""
    state, found = Live(), []
    for cell in notebook.cells:
        if cell.cell_type != "code" or has_tag(cell, "colab-setup"):
            continue
        source = code_of(cell.source)
        state.found = []
        state.visit(ast.parse(source))
        lines = source.splitlines()
        found += [
            (cell, ast.unparse(one))
            for one in state.found
            if "# exact: " not in lines[(one.end_lineno or one.lineno) - 1]
        ]
    return found
