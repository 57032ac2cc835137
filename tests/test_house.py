"""The house: floors, sizes, names. A chapter names its module, a module its chapter."""

import ast
import json
import re

import pytest

from environment import ROOT

PACKAGE = ROOT / "spanbert_tutorial"
MOST_LINES = 300
# A module imports only from the groups above its own, so never from its neighbours.
FLOORS = [
    {"errors", "data_files"},
    {"weights", "almanac_world"},
    {"almanac_text", "config"},
    {"corpora", "almanac", "wordpiece", "masking"},
    {"inputs"},
    {"bert"},
    {"span_masking", "sentence_pairs", "single_sequence"},
    {"boundary"},
    {"snapshots", "metrics"},
    {"training"},
    {"batches"},
    {"context_free"},
    {"pretraining"},
    {"checkpoints"},
    {"runs"},
    {"ablation", "figures", "directions", "tasks", "relatives"},
    {"plateau", "experiments"},
    {"exercises", "commands"},
    {"__main__"},
]
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
CHAPTERS = sorted(path for path in (ROOT / "book").glob("*/*.ipynb") if path.parent.name != "workshop")
OTHER_NAME = {"pretraining_spanbert": "pretraining"}  # chapter → module, where the names differ


def room(path) -> str:
    """Name of the module, or of the folder that it stands in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    """Number of the group that holds the module."""
    found = [number for number, names in enumerate(FLOORS) if name in names]
    assert found, f"{name} stands on no floor: give it one in tests/test_house.py."
    return found[0]


def imported(path) -> set[str]:
    """Modules of the package that a module imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith(PACKAGE.name + ".")}
        elif isinstance(node, ast.ImportFrom):
            inside = node.level > 0 or (node.module or "").split(".")[0] == PACKAGE.name
            module = (node.module or "").removeprefix(PACKAGE.name).strip(".") if inside else ""
            if module:
                names.add(module.split(".")[0])
            elif inside and node.level < 2:
                names |= {alias.name for alias in node.names}
    return names - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_smaller_floors(path):
    own = room(path)
    upwards = {name for name in imported(path) - {own} if floor(name) >= floor(own)}
    assert not upwards, f"{own} must not import {sorted(upwards)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_is_short_and_says_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert docstring
    if room(path) not in ("errors", "data_files", "__main__"):
        assert "book/" in docstring, "the docstring must name the module's chapter, like book/bert/masking"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_and_its_module_name_each_other(path):
    module = OTHER_NAME.get(path.stem, path.stem)
    folder = PACKAGE / path.parent.name  # of the part, where there is one
    source = (folder if folder.is_dir() else PACKAGE) / f"{module}.py"
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
