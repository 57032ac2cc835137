"""The tools that hold the book together: address, execution, environment, requirements."""

import json
import re
import sys
import tomllib
import types

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sample_book import build, good_notebook, make_book, set_address

import address
import notebooks
import pages
from environment import ROOT

URL = "https://github.com/someone/spanbert-book"


# The public address.


def sources(path) -> str:
    return "\n".join(cell.source for cell in notebooks.read(path).cells)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    """The workflow on GitHub has an address; a test pretends one."""
    for name in ("GITHUB_REPOSITORY", "GITHUB_SHA"):
        monkeypatch.delenv(name, raising=False)


def test_the_address_appears_and_disappears(tmp_path):
    chapter = make_book(tmp_path)
    before = {path: path.read_text() for path in (chapter, tmp_path / "_config.yml")}
    assert "http" not in sources(chapter).replace("https://arxiv.org", "")

    set_address(tmp_path, URL + ".git")
    assert notebooks.write_address(tmp_path) == ["_config.yml", "book/bert/chapter.ipynb"]
    badge, setup = notebooks.read(chapter).cells[1:3]
    assert f'%pip install -q "spanbert-tutorial @ git+{URL}@colab"' in setup.source
    assert (
        "colab.research.google.com/github/someone/spanbert-book/blob/colab/book/bert/chapter.ipynb"
        in badge.source
    )
    assert "remove-cell" in badge.metadata.tags and "hide-input" in setup.metadata.tags
    assert notebooks.write_address(tmp_path) == []  # a second time changes nothing

    set_address(tmp_path, "")
    notebooks.write_address(tmp_path)
    assert {path: path.read_text() for path in before} == before


def test_a_rehearsal_of_publishing(tmp_path, monkeypatch):
    """What the workflow does, at a pretended address: no setting, no edit; pages with buttons, and
    notebooks that install the commit that they belong to."""
    chapter = make_book(tmp_path)
    page = tmp_path / "_build" / "html" / "book" / "bert" / "chapter.html"
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/spanbert-book")
    monkeypatch.setenv("GITHUB_SHA", "1234abc")
    notebooks.write_address(tmp_path)
    assert f'%pip install -q "spanbert-tutorial @ git+{URL}@1234abc"' in sources(chapter)
    assert notebooks.check(chapter, tmp_path) == []
    result = build(tmp_path)
    assert result.returncode == 0, result.stderr
    published = page.read_text()
    for wanted in (
        "colab.research.google.com/github/someone/spanbert-book/blob/colab/book/bert/chapter.ipynb",
        f"{URL}/issues",
        'rel="canonical" href="https://someone.github.io/spanbert-book/book/bert/chapter.html"',
        'content="https://someone.github.io/spanbert-book/_static/card.png"',
    ):
        assert wanted in published
    assert "colab-badge" not in published  # the badge is for readers on GitHub
    assert pages.page_problems(page.parents[2], tmp_path) == []


def run_setup(source: str, root) -> list[str]:
    """Run a setup cell whose /content is `root`; what it installs."""
    installed: list[str] = []
    line = re.search(r"(?m)^    %pip install -q (.*)$", source)[1]
    source = source.replace(f"%pip install -q {line}", f"install(f'{line}')")
    exec(source.replace("/content", str(root)), {"install": installed.append})
    return installed


@pytest.mark.parametrize("place", ["book", "folder/book", "drive/MyDrive/Lessons/book"])
def test_without_an_address_the_setup_cell_finds_the_folder(place, tmp_path, monkeypatch):
    """In Colab, or in a Drive that is there only when it is mounted."""

    def put(path=None):
        package = tmp_path / place / "spanbert_tutorial"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()

    drive = types.SimpleNamespace(mount=put)
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(drive=drive))
    if "drive" not in place:
        put()
    assert run_setup(address.setup_source(address.Address()), tmp_path) == [f'"{tmp_path / place}"']


def test_the_real_book_is_in_line_with_its_address():
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert address.write_settings(text, address.read_address(ROOT / "_config.yml")) == text


# Execution and the normal form.


def test_execution_stores_outputs_in_the_normal_form(tmp_path):
    cells = [
        new_markdown_cell("# T"),
        new_code_cell("print('a')\nprint('b')"),
        new_code_cell("1 + 1"),
    ]
    chapter = make_book(tmp_path, new_notebook(cells=cells, metadata={"colab": {}, "widgets": {}}))
    assert notebooks.check(chapter, tmp_path) != []
    notebooks.execute(chapter, tmp_path)
    assert notebooks.check(chapter, tmp_path) == []
    notebook = json.loads(chapter.read_text())
    setup, two, three = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert [cell["execution_count"] for cell in (setup, two, three)] == [1, 2, 3]
    assert two["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["a\n", "b\n"]}]
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}


def test_a_failing_cell_is_named_and_the_file_left_alone(tmp_path):
    bad = good_notebook()
    bad.cells.append(new_code_cell("x = {}\nx['missing']"))
    chapter = make_book(tmp_path, bad)
    before = chapter.read_text()
    with pytest.raises(
        notebooks.NotebookError, match=r"code cell 3 \(`x = \{\}`\): KeyError: 'missing'"
    ):
        notebooks.execute(chapter, tmp_path)
    assert chapter.read_text() == before
    assert [path.name for path in chapter.parent.iterdir()] == ["chapter.ipynb"]


# Requirements.

# Requirements that no module imports: the file that uses them, and by which words.
COMMANDS = {
    "jupyterlab": ("README.md", "jupyter lab"),
    "jupyter-book": ("Makefile", "jupyter_book"),
    "sphinx-reredirects": ("_config.yml", "- sphinx_reredirects"),
    "ruff": ("Makefile", "-m ruff"),
    "mypy": ("Makefile", "-m mypy"),
    "pytest-xdist": ("Makefile", "--dist loadfile"),
    "nbval": ("Makefile", "--nbval"),
    "hatchling": ("pyproject.toml", "hatchling.build"),
}
MODULES = {"pyyaml": "yaml", "scikit-learn": "sklearn"}


def requirements() -> dict[str, str]:
    """Direct requirements: name → exact version."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    return dict(pin.split("==") for pin in pins)


def test_every_requirement_is_pinned_with_a_reason_and_constrained_to_the_same_version():
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+ +# \S.*", line) for line in lines)
    tested = {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(
            r"(?m)^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text()
        )
    }
    assert {
        name.lower(): version for name, version in requirements().items()
    }.items() <= tested.items()
    assert all("+" not in version for version in tested.values())


def test_no_requirement_is_idle():
    python = [
        path
        for folder in ("spanbert_tutorial", "tools", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    code = "\n".join(path.read_text(encoding="utf-8") for path in python)
    for name in requirements():
        if name in COMMANDS:
            file, words = COMMANDS[name]
            assert words in (ROOT / file).read_text(encoding="utf-8"), (
                f"{name}: {file} does not say {words!r}"
            )
        else:
            module = MODULES.get(name.lower(), name.replace("-", "_"))
            assert re.search(rf"(?m)^\s*(?:import|from) {module}\b", code), (
                f"{name} is not used anywhere"
            )


def test_the_package_asks_only_for_what_the_requirements_pin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[\w-]+", dependency).group() for dependency in project["dependencies"]}
    assert names <= set(requirements())
    assert all(
        ">=" in dependency and "==" not in dependency for dependency in project["dependencies"]
    )
