"""Write the list of modules on `book/workshop/api.md` anew, in the order of the floors: python tools/api_page.py"""

import ast
import re
import sys

from environment import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from test_house import FLOORS, PACKAGE, room

PAGE = ROOT / "book" / "workshop" / "api.md"
# heading → the last room below it
HEADINGS = {
    "Ground floor": "config", "Text, masks, encoder": "bert", "Spans, segments, boundaries": "boundary",
    "Training": "pretraining", "Checkpoints and runs": "runs", "Comparisons, figures, tasks, relatives": "tasks",
    "Experiments": "experiments", "Exercises and commands": "commands",
}  # fmt: skip


def storey(name: str) -> int:
    """Number of the floor of a room."""
    return next(number for number, names in enumerate(FLOORS) if name in names)


def block(path) -> str:
    """What the page says of a module: its name, the links to its chapters, its docstrings."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    links = []
    for place in dict.fromkeys(re.findall(r"book/([\w/]+)", docstring)):
        found = [ROOT / "book" / f"{place}{suffix}" for suffix in (".ipynb", ".md")]
        links += [f"[{place.split('/')[-1]}](../{place}{file.suffix})" for file in found if file.is_file()]
    chapters = f"Chapter{'s' * (len(links) > 1)}: {', '.join(links)}.\n\n" if links else ""
    title = module.removeprefix("spanbert_tutorial.")
    return f"### {title}\n\n{chapters}```{{eval-rst}}\n.. automodule:: {module}\n```"


def page(head: str) -> str:
    """The whole page below its introduction."""
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if path.stem not in ("__init__", "__main__")]
    parts, begin = [head.rstrip()], 0
    for heading, last in HEADINGS.items():
        floors = range(begin, storey(last) + 1)
        begin = floors.stop
        here = sorted((path for path in modules if storey(room(path)) in floors),
                      key=lambda path: (storey(room(path)), path.relative_to(PACKAGE).as_posix()))
        parts += [f"## {heading}", *map(block, here)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(before.split("\n## ")[0]), encoding="utf-8")
