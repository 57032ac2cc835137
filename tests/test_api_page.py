"""The API reference: every public module stands on it, every public class and function of a module
has a docstring."""

import re

import api_page
import spanbert_tutorial

INDEX = api_page.INDEX.read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in sorted(api_page.FOLDER.glob("*.md"))}
NAMES = INDEX.split("\n## ")[1]


def test_the_pages_are_those_that_the_tool_writes():
    """So every public module stands there once, in the order of the floors, with links to the
    chapters it names."""
    written = api_page.pages(INDEX.split("\n## ")[0])
    contents = api_page.CONTENTS.read_text(encoding="utf-8")
    assert written == {api_page.CONTENTS: contents, api_page.INDEX: INDEX, **PAGES}, (
        "run python tools/api_page.py"
    )


def test_the_index_lists_the_public_names_with_their_modules():
    assert NAMES.startswith("Public names\n")
    listed = re.findall(r"^- `(\w+)`: \[(\S+)\]", NAMES, re.MULTILINE)
    assert [name for name, _ in listed] == spanbert_tutorial.__all__
    for name, module in listed:
        public = getattr(spanbert_tutorial, name)
        home = getattr(public, "__module__", public.__name__)
        assert home == f"spanbert_tutorial.{module}"
