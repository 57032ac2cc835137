"""Write the pages of the API reference: python tools/api_page.py

`book/workshop/api.md` lists the public names and all modules; `book/workshop/api/` has a page for
each part of the package, its modules in the order of the floors.
"""

import ast
import re
import sys
from pathlib import Path

from myst_parser.mdit_to_docutils.base import default_slugify

import spanbert_tutorial
from environment import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from test_house import PACKAGE, dotted, floor, room

INDEX = ROOT / "book" / "workshop" / "api.md"
FOLDER = INDEX.with_suffix("")
# heading → the rooms on its page
PARTS = {
    "Engine and text": ("errors", "engine", "text"),
    "BERT": ("bert",),
    "SpanBERT and pre-training": ("spanbert", "pretraining"),
    "Tasks": ("tasks",),
    "Relatives": ("relatives",),
    "Almanac and figures": ("almanac", "figures"),
    "Exercises and commands": ("exercises", "commands"),
}


def slug(heading: str) -> str:
    """A heading as a file name: "Engine and text" → "engine_and_text"."""
    return re.sub(r"\W+", "_", heading.lower())


def part_of(name: str) -> str:
    """The heading of the page that has a module; name: dotted, inside the package."""
    (heading,) = [heading for heading, rooms in PARTS.items() if room(name) in rooms]
    return heading


def parts() -> dict[str, list[Path]]:
    """The modules of each part, in the order of the floors."""
    modules: dict[str, list[Path]] = {heading: [] for heading in PARTS}
    for path in sorted(PACKAGE.rglob("*.py"), key=dotted):
        if path.stem not in ("__init__", "__main__"):
            modules[part_of(dotted(path))].append(path)
    for paths in modules.values():
        paths.sort(key=lambda path: floor(dotted(path)))
    return modules


def docstring(path: Path) -> str:
    """The docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def summary(path: Path) -> str:
    """The first sentence of a module's docstring; the first two where the first is only a name."""
    match = re.match(r".{25,}?[.:](?=\s|$)", docstring(path), re.DOTALL)
    assert match, f"{dotted(path)}: the docstring must begin with a sentence"
    return " ".join(match.group().split()).rstrip(":.") + "."


def block(path: Path) -> str:
    """A module on its page: its name, links to its chapters, its docstrings."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    links = []
    for chapter in dict.fromkeys(re.findall(r"book/([\w/]+)", docstring(path))):
        files = [ROOT / "book" / f"{chapter}{suffix}" for suffix in (".ipynb", ".md")]
        links += [
            f"[{chapter.split('/')[-1]}](../../{chapter}{file.suffix})"
            for file in files
            if file.is_file()
        ]
    chapters = f"Chapter{'s' * (len(links) > 1)}: {', '.join(links)}.\n\n" if links else ""
    return f"## {dotted(path)}\n\n{chapters}```{{eval-rst}}\n.. automodule:: {module}\n```"


def link(name: str) -> str:
    """A link from the index to a module; name: dotted, inside the package."""
    return f"[{name}](api/{slug(part_of(name))}.md#{default_slugify(name)})"


def public_names() -> str:
    """The list of the names that `import spanbert_tutorial` gives, each with its module."""
    homes = spanbert_tutorial._HOMES | spanbert_tutorial._MODULES
    return "\n".join(f"- `{name}`: {link(homes[name])}" for name in spanbert_tutorial.__all__)


def pages(head: str) -> dict[Path, str]:
    """The text of every page; head: the introduction of the index."""
    index = [head.rstrip(), "## Public names", public_names()]
    written = {}
    for heading, modules in parts().items():
        page = FOLDER / f"{slug(heading)}.md"
        back = "A part of the [API reference](../api.md)."
        written[page] = "\n\n".join([f"# API: {heading}", back, *map(block, modules)]) + "\n"
        rows = [f"- {link(dotted(path))}: {summary(path)}" for path in modules]
        index += [f"## {heading}", "\n".join(rows)]
    return {INDEX: "\n\n".join(index) + "\n", **written}


if __name__ == "__main__":
    written = pages(INDEX.read_text(encoding="utf-8").split("\n## ")[0])
    for old in set(FOLDER.glob("*.md")) - set(written):
        old.unlink()
    for page, text in written.items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
