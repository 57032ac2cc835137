"""The tools that hold the book together: address, execution, environment, requirements."""

import json
import os
import re
import subprocess
import sys
import tomllib
import types

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sample_book import build, executed, good_notebook, make_book, printed, set_address

import address
import colab_check
import environment
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
    assert address.apply(tmp_path) == ["_config.yml", "book/bert/chapter.ipynb"]
    badge, setup = notebooks.read(chapter).cells[1:3]
    assert f'%pip install -q "spanbert-tutorial @ git+{URL}@colab"' in setup.source
    assert (
        "colab.research.google.com/github/someone/spanbert-book/blob/colab/book/bert/chapter.ipynb"
        in badge.source
    )
    assert "remove-cell" in badge.metadata.tags and "hide-input" in setup.metadata.tags
    assert address.apply(tmp_path) == []  # a second time changes nothing

    set_address(tmp_path, "")
    address.apply(tmp_path)
    assert {path: path.read_text() for path in before} == before


def test_a_rehearsal_of_publishing(tmp_path, monkeypatch, capsys):
    """What the workflow does, at a pretended address: no setting, no edit; pages with buttons, and
    notebooks that install the commit that they belong to."""
    chapter = make_book(tmp_path)
    page = tmp_path / "_build" / "html" / "book" / "bert" / "chapter.html"
    assert build(tmp_path).returncode == 0
    without = page.read_text()
    assert "github" not in without and 'rel="canonical"' not in without

    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/spanbert-book")
    monkeypatch.setenv("GITHUB_SHA", "1234abc")
    assert address.main(tmp_path) == 0
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

    notebook = notebooks.read(chapter)
    setup = next(cell for cell in notebook.cells if address.has_tag(cell, "colab-setup"))
    setup.source = address.setup_source(address.Address())
    notebooks.write(notebook, chapter)
    assert address.not_installing(tmp_path) == ["book/bert/chapter.ipynb"]


def test_the_workflow_publishes_what_the_rehearsal_tries():
    text = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    steps = [
        "make address",
        f"push --force origin HEAD:{address.PUBLISHED}",
        "make html",
        "upload-",
    ]
    places = [text.index(step) for step in steps]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "url", ["github.com/a/b", "https://example.org/a/b", "https://github.com/a"]
)
def test_an_address_that_colab_cannot_open_is_refused(url, tmp_path):
    make_book(tmp_path)
    set_address(tmp_path, url)
    with pytest.raises(address.AddressError, match="https://github.com/OWNER/NAME"):
        address.apply(tmp_path)


def run_setup(source: str, root) -> list[str]:
    """Run a setup cell whose /content is `root`; what it installs."""
    installed: list[str] = []
    line = re.search(r"(?m)^    %pip install -q (.*)$", source)[1]
    source = source.replace(f"%pip install -q {line}", f"install(f'{line}')")
    exec(source.replace("/content", str(root)), {"install": installed.append})
    return installed


def test_the_setup_cell_does_nothing_outside_colab(tmp_path):
    for where in (address.Address(), address.Address(URL)):
        assert run_setup(address.setup_source(where), tmp_path) == []


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


def test_a_folder_that_is_nowhere_is_asked_for(tmp_path, monkeypatch):
    drive = types.SimpleNamespace(mount=lambda path: None)
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(drive=drive))
    with pytest.raises(SystemExit, match="Copy the book's folder"):
        run_setup(address.setup_source(address.Address()), tmp_path)


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
    stored = chapter.read_text()
    notebooks.execute(chapter, tmp_path)
    assert chapter.read_text() == stored  # the same bytes every time


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


def normalized(cell, root):
    """The cell in the normal form of a converted chapter."""
    notebook = new_notebook(cells=[new_markdown_cell("# T"), cell])
    return notebooks.normalize(notebook, root / "book" / "a" / "b.ipynb", root).cells[2]


@pytest.mark.parametrize(
    ("tag", "source", "output", "title"),
    [
        ("check", "assert 1", None, "Check"),
        ("plumbing", "import os\n\nNAME = 1", None, "Imports"),
        ("plumbing", "NAME = 1", None, "Preparation"),
        ("plumbing", "x", {"text/html": "<b>x</b>"}, "Code of the figure"),
        ("plumbing", "x", {"text/plain": "x"}, "Code of the output"),
        (
            "plumbing",
            "# @title Preparation\nx",
            {"image/png": "="},
            "Code of the figure",
        ),  # it has been run since
        (
            "plumbing",
            "# @title Code of the three clubs\nx",
            {"image/png": "="},
            "Code of the three clubs",
        ),
    ],
)
def test_what_the_page_folds_is_a_form_with_a_title(tag, source, output, title, tmp_path):
    make_book(tmp_path)
    cell = executed(source, 1, [new_output("display_data", data=output)] if output else [], [tag])
    once = normalized(cell, tmp_path)
    assert once.source.startswith(f"# @title {title}\n") and once.source.count("@title") == 1
    assert once.metadata.cellView == "form"
    assert normalized(once, tmp_path).source == once.source
    once.metadata.tags = ["teach"]
    shown = normalized(once, tmp_path)
    assert "@title" not in shown.source and "cellView" not in shown.metadata


def test_code_is_formatted_on_72_columns(tmp_path):
    make_book(tmp_path)
    source = "values = call(\n    1, 'two',\n)\n%matplotlib inline"
    assert (
        normalized(new_code_cell(source), tmp_path).source
        == 'values = call(1, "two")\n%matplotlib inline'
    )
    no_python = new_code_cell("1 +")
    assert normalized(no_python, tmp_path).source == "1 +"  # execution will tell
    long = new_code_cell(f"x = call('{'a' * 32}', '{'b' * 32}')")
    assert max(map(len, normalized(long, tmp_path).source.splitlines())) <= 72


def test_the_kinds_are_proposed(tmp_path, capsys):
    cells = [
        executed("import os", 1),
        executed("x = 1\nprint(x)\nassert x == 1", 2, [printed("1\n")]),
        executed("assert x > 0\nassert x < 2", 3),
        executed("\n".join(f"x = {i}" for i in range(30)), 4),
        executed("draw()", 5, [new_output("display_data", data={"image/png": "="})]),
        executed("assert x", 6, tags=["plumbing"]),
    ]
    chapter = make_book(tmp_path, new_notebook(cells=[new_markdown_cell("# T"), *cells]))
    assert notebooks.show_kinds([chapter]) == 0
    rows = capsys.readouterr().out.splitlines()[3:]
    wanted = [
        "plumbing?",
        "teach?; move 1 assert(s) to a check",
        "check",
        "teach?; too long",
        "plumbing?",
        "plumbing; is plumbing with an assert",
    ]
    assert all(want in row for want, row in zip(wanted, rows, strict=False))
    assert rows[6] == "visible: 5 of 7 cells, 37 lines, 8.1% asserts; longest [30, 3, 2, 1, 1]"


def test_ids_follow_the_source_and_are_unique():
    cells = [new_markdown_cell("same"), new_markdown_cell("same"), new_code_cell("same")]
    notebooks.name_cells(cells)
    first = [cell.id for cell in cells]
    notebooks.name_cells(cells[::-1])
    assert len(set(first)) == 3 and first[1].startswith(first[0])
    assert cells[2].id == first[2]


def test_neighboring_streams_are_joined():
    cell = executed("x", 1)
    tokens = [
        {"output_type": "stream", "name": name, "text": text}
        for name, text in ("oa", "ob", "ec", "od")
    ]
    cell.outputs = [notebooks.nbformat.from_dict(token) for token in tokens]
    assert [output.text for output in notebooks.merge_streams(cell.outputs)] == ["ab", "c", "d"]


def test_colab_check_notices_a_package_that_is_not_the_wheels(tmp_path):
    chapter = make_book(tmp_path)
    with pytest.raises(
        notebooks.NotebookError,
        match=r"chapter.ipynb, code cell 1 .*(AssertionError|ModuleNotFound)",
    ):
        colab_check.run_alone(chapter, tmp_path / "target")


# The environment of the test run.


def test_kernels_run_in_the_book_s_environment(monkeypatch):
    monkeypatch.delenv("SPANBERT_TUTORIAL_CARD", raising=False)
    wanted = environment.kernel_environment()
    assert wanted["CUDA_VISIBLE_DEVICES"] == ""
    with monkeypatch.context() as patch:
        patch.setenv("SPANBERT_TUTORIAL_CARD", "1")
        assert "CUDA_VISIBLE_DEVICES" not in environment.kernel_environment()
    assert {name: os.environ.get(name) for name in wanted} == wanted


PROBE = """
import pytest
@pytest.mark.real_data
def test_real(): pass
@pytest.mark.browser
def test_browser(): pass
def test_plain(): pass
"""


def probe(tmp_path, *options, **variables):
    """Run three small tests under the book's conftest, with these variables only."""
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT / 'tools'}\nmarkers =\n  real_data: x\n  browser: x\n"
    )
    names = (
        "SPANBERT_TUTORIAL_REAL_DATA",
        "SPANBERT_TUTORIAL_BROWSER",
        "SPANBERT_TUTORIAL_COUNTS",
        "PATH",
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in names and "PYTEST" not in name
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=tmp_path, env=kept | variables, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_what_cannot_run_here_is_deselected_and_counted(options, tmp_path, monkeypatch):
    out = probe(tmp_path, *options, PATH="")
    assert "1 passed" in out and "skipped" not in out
    assert "deselected: 1 real_data tests (SPANBERT_TUTORIAL_REAL_DATA is not set)" in out
    counts = tmp_path / "counts.json"
    required = {"SPANBERT_TUTORIAL_REAL_DATA": "x", "SPANBERT_TUTORIAL_BROWSER": "required"}
    out = probe(tmp_path, *options, PATH="", SPANBERT_TUTORIAL_COUNTS=str(counts), **required)
    assert "3 passed" in out and "deselected" not in out
    found = json.loads(counts.read_text())
    assert (found["passed"], found["failed"], found["real_data_passed"], found["seconds"]) == (
        3,
        0,
        1,
        {},
    )


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
