"""The house: floors, sizes, names. A chapter names its module, a module its chapter."""

import ast
import json
import re

import pytest

from environment import ROOT

PACKAGE = ROOT / "spanbert_tutorial"
# The README tells the floors: a module imports only from smaller ones, so never from its neighbours.
ROWS = re.findall(r"^\| \d+ \| (`.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M)
FLOORS = [set(re.findall(r"`([\w.]+)`", row)) for row in ROWS]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
CHAPTERS = sorted(path for path in (ROOT / "book").glob("*/*.ipynb") if path.parent.name != "workshop")
# chapter → module, where the names differ
OTHER_NAME = {"pretraining_spanbert": "pretraining", "name_ranks": "experiments.name_ranks"}


def room(name: str) -> str:
    """The module, or the room it stands in, as the README's table has it; name: dotted, inside the package."""
    return name if any(name in names for names in FLOORS) else name.split(".")[0]


def dotted(path) -> str:
    """A module's name inside the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def floor(name: str) -> int:
    """Number of the floor that holds the module."""
    found = [number for number, names in enumerate(FLOORS) if room(name) in names]
    assert found, f"{name} stands on no floor: give it one in README.md, under \"How the house is built\"."
    return found[0]


def imported(path) -> set[str]:
    """Modules of the package that a module imports anywhere, dotted."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import: name the package"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    inside = {name.removeprefix(PACKAGE.name + ".") for name in names if name.startswith(PACKAGE.name + ".")}
    return inside - {"__version__"}


def test_every_floor_of_the_readme_has_modules_that_are_there():
    assert len(FLOORS) > 10
    listed = [name for names in FLOORS for name in names]
    assert len(listed) == len(set(listed))
    for name in listed:
        place = PACKAGE.joinpath(*name.split("."))
        assert place.is_dir() or place.with_suffix(".py").is_file(), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_smaller_floors(path):
    own = room(dotted(path))
    upwards = {name for name in imported(path) if room(name) != own and floor(name) >= floor(own)}
    assert not upwards, f"{own} must not import {sorted(upwards)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_says_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert docstring
    if room(dotted(path)) not in ("errors", "engine", "__main__"):
        assert "book/" in docstring, "the docstring must name the module's chapter, like book/bert/masking"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_and_its_module_name_each_other(path):
    module = OTHER_NAME.get(path.stem, path.stem)
    folder = PACKAGE / path.parent.name  # of the part, where there is one
    source = (folder if folder.is_dir() else PACKAGE).joinpath(*module.split(".")).with_suffix(".py")
    assert source.is_file(), f"the chapter {path.stem} has no module"
    assert f"book/{path.parent.name}/{path.stem}" in ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    head = "".join("".join(cell["source"]) for cell in cells[:6] if cell["cell_type"] == "markdown")
    part = rf"(?:{path.parent.name}[./])?"
    named = re.search(rf"`(?:spanbert_tutorial[./])?{part}{module}(?:\.py)?`", head)
    assert named, f"the first cells must name the module, like `{source.relative_to(ROOT).as_posix()}`"


def test_every_chapter_of_the_contents_is_there_and_no_other():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = {line.split(":")[1].strip() for line in contents.splitlines() if "file:" in line or "root:" in line}
    there = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "book").rglob("*")
        if path.suffix in (".md", ".ipynb")
    }
    assert listed == there


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_readme_states_the_seconds_of_the_chapter(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    head = "".join("".join(cell["source"]) for cell in cells[:6] if cell["cell_type"] == "markdown")
    (seconds,) = re.findall(r"about (\d+)\s+seconds", head)
    (line,) = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
               if line.startswith("|") and f"/{path.stem}.ipynb)" in line]
    assert line.endswith(f"| {seconds} |")
