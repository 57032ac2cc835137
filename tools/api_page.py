"""Write the list of modules on `book/workshop/api.md` anew, in the order of the floors: python tools/api_page.py"""

import ast
import re
import sys

from environment import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from test_house import FLOORS, PACKAGE, dotted, floor

PAGE = ROOT / "book" / "workshop" / "api.md"
# heading → the first room below it
HEADINGS = {
    "Ground floor": "errors", "Text, masks, encoder": "almanac", "Spans, segments, boundaries": "span_masking",
    "Training": "batches", "Checkpoints and runs": "checkpoints", "Figures, tasks, relatives": "figures",
    "Experiments": "experiments", "Exercises and commands": "exercises",
}  # fmt: skip


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
    parts, begins = [head.rstrip()], [*(floor(first) for first in HEADINGS.values()), len(FLOORS)]
    for heading, begin, end in zip(HEADINGS, begins, begins[1:], strict=False):
        here = sorted((path for path in modules if begin <= floor(dotted(path)) < end),
                      key=lambda path: (floor(dotted(path)), dotted(path)))
        parts += [f"## {heading}", *map(block, here)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(before.split("\n## ")[0]), encoding="utf-8")
