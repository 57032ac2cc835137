"""The API reference: every public module stands on it, every public class and function of a module
has a docstring."""

import ast
import importlib.util
import re

import pytest
from test_house import PACKAGE, floor

import api_page
import spanbert_tutorial
from environment import ROOT

INDEX = api_page.INDEX.read_text(encoding="utf-8")
PAGES = {path: path.read_text(encoding="utf-8") for path in sorted(api_page.FOLDER.glob("*.md"))}
NAMES = INDEX.split("\n## ")[1]
LISTED = re.findall(r"^- \[\S+\]\(api/(\S+\.md)#", INDEX, re.MULTILINE)
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


def test_the_index_leads_to_every_module():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert len(LISTED) == len(MODULES)
    assert list(dict.fromkeys(LISTED)) == [
        f"{name}.md" for name in re.findall(r"workshop/api/(\w+)", contents)
    ]


def test_the_index_lists_the_public_names_with_their_modules():
    assert NAMES.startswith("Public names\n")
    listed = re.findall(r"^- `(\w+)`: \[(\S+)\]", NAMES, re.MULTILINE)
    assert [name for name, _ in listed] == spanbert_tutorial.__all__
    for name, module in listed:
        public = getattr(spanbert_tutorial, name)
        home = getattr(public, "__module__", public.__name__)
        assert home == f"spanbert_tutorial.{module}"


def test_links_to_chapters_lead_to_the_ones_that_the_modules_name():
    blocks = re.findall(
        r"^## (\S+)\n(.*?)(?=^##|\Z)", "\n".join(PAGES.values()), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == len(MODULES)
    for title, rest in blocks:
        docstring = api_page.docstring(MODULES[f"spanbert_tutorial.{title}"])
        links = set(re.findall(r"\]\(\.\./\.\./([\w/]+)\.(?:ipynb|md)\)", rest))
        assert links <= set(re.findall(r"book/([\w/]+)", docstring)), f"{title} links to {links}"
        assert links or "book/" not in docstring, f"{title} has no link to its chapter"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name):
    """Sphinx leaves out what has none. Of the exercises only the checks are public, of a command
    its `main` is not."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    bare = [
        node.name
        for node in tree.body
        if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    public = "check" if ".exercises." in name else ""
    bare = [each for each in bare if each.startswith(public) and each != "main"]
    assert not bare, (
        f"{name}: {', '.join(bare)} would not be on the API page: say what it does in one line"
    )


def test_the_settings_load_autodoc():
    settings = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "sphinx.ext.autodoc" in settings and "default_role: code" in settings
    assert importlib.util.find_spec("sphinx.ext.autodoc")
