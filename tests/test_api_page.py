"""The API reference: every public module stands on it, every public class and function of a module
has a docstring."""

import re

from test_house import PACKAGE, floor

import api_page
import spanbert_tutorial
from environment import ROOT

INDEX = api_page.INDEX.read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in sorted(api_page.FOLDER.glob("*.md"))}
NAMES = INDEX.split("\n## ")[1]
AUTOMODULE = re.compile(r"^\.\. automodule:: (\S+)$", re.MULTILINE)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem not in ("__init__", "__main__")
}


def test_the_pages_are_those_that_the_tool_writes():
    """So every public module stands there once, in the order of the floors, with links to the
    chapters it names."""
    written = api_page.pages(INDEX.split("\n## ")[0])
    contents = api_page.CONTENTS.read_text(encoding="utf-8")
    assert written == {api_page.CONTENTS: contents, api_page.INDEX: INDEX, **PAGES}, (
        "run python tools/api_page.py"
    )


def test_every_public_module_is_on_one_page_in_the_order_of_the_floors():
    found = [AUTOMODULE.findall(text) for text in PAGES.values()]
    assert sorted(sum(found, [])) == sorted(MODULES)
    for names in found:
        lines = [MODULES[name].read_text(encoding="utf-8").count("\n") for name in names]
        assert sum(lines[:-1]) <= api_page.MOST
        floors = [floor(name.split(".", 1)[1]) for name in names]
        assert floors == sorted(floors)


def test_the_index_lists_the_public_names_with_their_modules():
    assert NAMES.startswith("Public names\n")
    listed = re.findall(r"^- `(\w+)`: \[(\S+)\]", NAMES, re.MULTILINE)
    assert [name for name, _ in listed] == spanbert_tutorial.__all__
    for name, module in listed:
        public = getattr(spanbert_tutorial, name)
        home = getattr(public, "__module__", public.__name__)
        assert home == f"spanbert_tutorial.{module}"
