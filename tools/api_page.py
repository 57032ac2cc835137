"""Write the pages of the API reference anew: python tools/api_page.py

`book/workshop/api.md` lists the modules; `book/workshop/api/` has one page a part, its modules in
the order of the floors.
"""

import ast
import re
import sys
from pathlib import Path

from myst_parser.mdit_to_docutils.base import default_slugify

from environment import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from test_house import PACKAGE, dotted, floor, room

INDEX = ROOT / "book" / "workshop" / "api.md"
FOLDER = INDEX.with_suffix("")
# heading → the first room of its part; the part ends where the next one begins
PARTS = {
    "Ground floor": "errors",
    "Text, masks, encoder": "almanac",
    "Spans, segments, boundaries": "span_masking",
    "Training": "batches",
    "Checkpoints and runs": "checkpoints",
    "Inside a run, and after it": "figures",
    "Experiments": "experiments",
    "Exercises and commands": "exercises",
}
ROOMS = {
    "figures": "Figures",
    "tasks": "Tasks",
    "relatives": "Relatives",
}  # large rooms have a part of their own


def slug(heading: str) -> str:
    """A heading as a file name has it: "Text, masks, encoder" → "text_masks_encoder"."""
    return re.sub(r"\W+", "_", heading.lower())


def part_of(name: str) -> str:
    """The heading under which a module stands; name: dotted, inside the package."""
    begun = [heading for heading, first in PARTS.items() if floor(first) <= floor(name)]
    return ROOMS.get(room(name), begun[-1])


def parts() -> dict[str, list[Path]]:
    """The modules of each part, in the order of the floors."""
    modules = [path for path in PACKAGE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    found: dict[str, list[Path]] = {}
    for path in sorted(modules, key=lambda path: (floor(dotted(path)), dotted(path))):
        found.setdefault(part_of(dotted(path)), []).append(path)
    return found


def docstring(path: Path) -> str:
    """The docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def says(path: Path) -> str:
    """How a module's docstring begins: its first sentence, and the second where the first is a name
    only."""
    found = re.match(r".{25,}?[.:](?=\s|$)", docstring(path), re.DOTALL)
    return " ".join(found.group().split()).rstrip(":.") + "."


def block(path: Path) -> str:
    """What a page says of a module: its name, the links to its chapters, its docstrings."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    links = []
    for place in dict.fromkeys(re.findall(r"book/([\w/]+)", docstring(path))):
        found = [ROOT / "book" / f"{place}{suffix}" for suffix in (".ipynb", ".md")]
        links += [
            f"[{place.split('/')[-1]}](../../{place}{file.suffix})"
            for file in found
            if file.is_file()
        ]
    chapters = f"Chapter{'s' * (len(links) > 1)}: {', '.join(links)}.\n\n" if links else ""
    return f"## {dotted(path)}\n\n{chapters}```{{eval-rst}}\n.. automodule:: {module}\n```"


def pages(head: str) -> dict[Path, str]:
    """The text of every page; head: the introduction of the index."""
    index = [head.rstrip()]
    found = {}
    for heading, modules in parts().items():
        page = FOLDER / f"{slug(heading)}.md"
        back = "A part of the [API reference](../api.md)."
        found[page] = "\n\n".join([f"# API: {heading}", back, *map(block, modules)]) + "\n"
        names = [(dotted(path), says(path)) for path in modules]
        listed = [
            f"- [{name}](api/{page.name}#{default_slugify(name)}): {told}" for name, told in names
        ]
        index += [f"## {heading}", "\n".join(listed)]
    return {INDEX: "\n\n".join(index) + "\n", **found}


if __name__ == "__main__":
    written = pages(INDEX.read_text(encoding="utf-8").split("\n## ")[0])
    for old in set(FOLDER.glob("*.md")) - set(written):
        old.unlink()
    for page, text in written.items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
