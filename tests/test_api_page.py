"""The API reference: every public module stands on it, every public class and function of a module has a docstring."""

import ast
import importlib.util
import re

import pytest
from test_house import FLOORS, PACKAGE, floor

import api_page
from environment import ROOT

PAGE = (ROOT / "book" / "workshop" / "api.md").read_text(encoding="utf-8")
ON_THE_PAGE = re.findall(r"^\.\. automodule:: (\S+)$", PAGE, re.MULTILINE)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem not in ("__init__", "__main__")
}


def test_the_page_is_the_one_that_the_tool_writes():
    """So every public module stands on it once, in the order of the floors, with links to the chapters it names."""
    assert PAGE == api_page.page(PAGE.split("\n## ")[0]), "run python tools/api_page.py"


def test_every_public_module_is_on_the_page_in_the_order_of_the_floors():
    assert sorted(ON_THE_PAGE) == sorted(MODULES)
    floors = [floor(name.split(".", 1)[1]) for name in ON_THE_PAGE]
    assert floors == sorted(floors) and len(FLOORS) > 10


def test_links_to_chapters_lead_to_the_ones_that_the_modules_name():
    for title, rest in re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        docstring = ast.get_docstring(ast.parse(MODULES[f"spanbert_tutorial.{title}"].read_text(encoding="utf-8")))
        links = set(re.findall(r"\]\(\.\./([\w/]+)\.(?:ipynb|md)\)", rest))
        assert links <= set(re.findall(r"book/([\w/]+)", docstring)), f"{title} links to {links}"
        assert links or "book/" not in docstring, f"{title} has no link to its chapter"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name):
    """Sphinx leaves out what has none. Of the exercises only the checks are public, of a command its `main` is not."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    bare = [node.name for node in tree.body
            if isinstance(node, kinds) and not node.name.startswith("_") and not ast.get_docstring(node)]
    public = "check" if ".exercises." in name else ""
    bare = [each for each in bare if each.startswith(public) and each != "main"]
    assert not bare, f"{name}: {', '.join(bare)} would not be on the API page: say what it does in one line"


def test_the_settings_load_autodoc():
    settings = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "sphinx.ext.autodoc" in settings and "default_role: code" in settings
    assert importlib.util.find_spec("sphinx.ext.autodoc")
