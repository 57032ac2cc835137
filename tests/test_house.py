"""The house: floors, rooms, names. A chapter names its module, a module its chapter."""

import ast
import json
import re

import pytest

from environment import ROOT

PACKAGE = ROOT / "spanbert_tutorial"
# The README gives the floors: a room imports only from smaller ones, never from its neighbors.
ROWS = re.findall(r"^\| \d+ \| (`.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
FLOORS = [re.findall(r"`(\w+)`", row) for row in ROWS]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
CHAPTERS = sorted(
    path
    for path in (ROOT / "book").glob("*/*.ipynb")
    if path.parent.name not in ("workshop", "evidence")
)
# chapter → module, where the names differ
OTHER_NAME = {
    "bert": "bert.encoder",
    "directions": "pretraining.directions",
    "pretraining": "pretraining.train",
    "pretraining_spanbert": "pretraining.model",
    "name_ranks": "spanbert.name_ranks",
    "released_spanbert": "tasks.few_questions",
    "real_questions": "pretraining.checkpoints",
}


def room(name: str) -> str:
    """The room of a module; name: dotted, inside the package."""
    return name.split(".")[0]


def dotted(path) -> str:
    """A module's name inside the package."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def floor(name: str) -> int:
    """Number of the floor that holds the module."""
    found = [number for number, names in enumerate(FLOORS) if room(name) in names]
    assert found, f'{name} is on no floor: give it one in README.md, "How the house is built".'
    return found[0]


def imported(path) -> set[str]:
    """What a module imports from the package anywhere, dotted: "bert.masking.corrupt"."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import: name the package"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    inside = {name for name in names if name.startswith(PACKAGE.name + ".")}
    return {name.removeprefix(PACKAGE.name + ".") for name in inside} - {"__version__"}


def module_of(name: str) -> str:
    """The module that an imported name belongs to: "bert.masking.corrupt" → "bert.masking"."""
    parts = name.split(".")
    while parts and not PACKAGE.joinpath(*parts).with_suffix(".py").is_file():
        parts.pop()
    return ".".join(parts)


def test_every_room_of_the_package_is_on_one_floor_of_the_readme():
    listed = [name for names in FLOORS for name in names]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    rooms |= {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert len(listed) == len(set(listed)) and set(listed) == rooms


def test_a_module_imports_only_from_smaller_floors():
    for path in MODULES:
        own = room(dotted(path))
        others = {name for name in imported(path) if room(name) != own}
        upwards = {name for name in others if floor(name) >= floor(own)}
        assert not upwards, f"{dotted(path)} must not import {sorted(upwards)}"


def test_no_two_modules_import_each_other():
    """Not even inside a room, and not even inside a function."""
    imports = {dotted(path): {module_of(name) for name in imported(path)} for path in MODULES}

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            new = imports.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        return found

    assert [name for name in imports if name in reached(name)] == []


def test_package_and_teaching_chapters_import_nothing_of_research():
    """They run where only the package is installed."""
    for path in [*MODULES, *CHAPTERS]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
            text = "\n".join("".join(cell["source"]) for cell in cells)
        assert not re.search(r"^\s*(?:from|import) research\b", text, re.M), path


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_and_its_module_name_each_other(path):
    module = OTHER_NAME.get(path.stem, f"{path.parent.name}.{path.stem}")
    source = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    assert source.is_file(), f"the chapter {path.stem} has no module"
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8")))
    assert f"book/{path.parent.name}/{path.stem}" in docstring
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells[:6] if cell["cell_type"] == "markdown"]
    names = {
        module,
        f"spanbert_tutorial.{module}",
        f"spanbert_tutorial/{module.replace('.', '/')}.py",
    }
    names |= {module.split(".")[-1]}
    assert any(f"`{name}`" in text for text in texts for name in names), (
        f"the first cells must name the module, like `spanbert_tutorial.{module}`"
    )


def test_every_chapter_of_the_contents_is_there_and_no_other():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    listed = {
        line.split(":")[1].strip()
        for line in contents.splitlines()
        if "file:" in line or "root:" in line
    }
    there = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "book").rglob("*")
        if path.suffix in (".md", ".ipynb")
    }
    assert listed == there
