"""Write the pages of the API reference: python tools/api_page.py

`book/workshop/api.md` lists the public names and all modules; `book/workshop/api/` has a page for
each room of the package, several for a large one, in the order of the floors; `_toc.yml` gets them.
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

from myst_parser.mdit_to_docutils.base import default_slugify

import spanbert_tutorial
from environment import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from test_house import PACKAGE, dotted, floor, room

INDEX = ROOT / "book" / "workshop" / "api.md"
FOLDER = INDEX.with_suffix("")
CONTENTS = ROOT / "_toc.yml"
SECTIONS = re.compile(r"(?<=  - file: book/workshop/api\n)        sections:\n(?: {10}- .*\n)+")
MOST = 1_600  # lines of code that one page documents, about; a longer page opens slowly


@cache
def parts() -> dict[str, list[Path]]:
    """The modules of each page, by the page's name: a room, or "room_2" for what a full page
    leaves."""
    modules = [path for path in PACKAGE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    modules.sort(key=lambda path: (floor(dotted(path)), dotted(path)))
    size = {path: path.read_text(encoding="utf-8").count("\n") for path in modules}
    pages: dict[str, list[Path]] = {}
    for home in dict.fromkeys(room(dotted(path)) for path in modules):
        own = [path for path in modules if room(dotted(path)) == home]
        whole, before = sum(map(size.get, own)), 0
        share = whole / -(-whole // MOST)
        for path in own:
            number = 1 + int(before // share)
            pages.setdefault(home if number == 1 else f"{home}_{number}", []).append(path)
            before += size[path]
    return pages


def page_of(name: str) -> str:
    """The page that has a module; name: dotted, inside the package."""
    return next(page for page, paths in parts().items() if name in map(dotted, paths))


def heading(page: str, paths: list[Path]) -> str:
    """The title of a page: its room, and what it has of a room with several pages."""
    home = room(dotted(paths[0]))
    several = page != home or f"{page}_2" in parts()
    names = [dotted(path).removeprefix(f"{home}.") for path in (paths[0], paths[-1])]
    return home + (f" ({names[0]} to {names[1]})" if several else "")


def docstring(path: Path) -> str:
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
    return f"[{name}](api/{page_of(name)}.md#{default_slugify(name)})"


def pages(head: str) -> dict[Path, str]:
    """The text of every page; head: the introduction of the index."""
    homes = spanbert_tutorial._HOMES
    public = "\n".join(f"- `{name}`: {link(homes[name])}" for name in spanbert_tutorial.__all__)
    index = [head.rstrip(), "## Public names", public]
    written = {}
    for name, modules in parts().items():
        title = heading(name, modules)
        back = "A part of the [API reference](../api.md)."
        written[FOLDER / f"{name}.md"] = (
            "\n\n".join([f"# API: {title}", back, *map(block, modules)]) + "\n"
        )
        rows = [f"- {link(dotted(path))}: {summary(path)}" for path in modules]
        index += [f"## {title}", "\n".join(rows)]
    sections = "".join(f"          - file: book/workshop/api/{path.stem}\n" for path in written)
    contents = SECTIONS.sub(f"        sections:\n{sections}", CONTENTS.read_text(encoding="utf-8"))
    return {CONTENTS: contents, INDEX: "\n\n".join(index) + "\n", **written}


if __name__ == "__main__":
    written = pages(INDEX.read_text(encoding="utf-8").split("\n## ")[0])
    for old in set(FOLDER.glob("*.md")) - set(written):
        old.unlink()
    for page, text in written.items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
