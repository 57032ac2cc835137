"""The truth contract holds for the real book, and each of its guards bites on a bad sample."""

import re
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sample_book import REFERENCES, build, executed, good_notebook, make_book, printed

import contract
import notebooks
import pages
from environment import ROOT
from spanbert_tutorial.figures.diagram import Diagram

MARKDOWN_TABLE = new_output("display_data", data={"text/markdown": "| a |\n|---|"})
PICTURE = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})


def problems_with(*cells, **metadata) -> str:
    """The contract's problems of the good sample with some cells added."""
    notebook = good_notebook()
    notebook.cells += list(cells)
    notebook.metadata.update(metadata)
    return "\n".join(contract.notebook_problems(notebook, REFERENCES))


# The real book.


def test_the_book_keeps_the_contract():
    assert contract.book_problems() == []


def test_the_built_pages_keep_the_contract():
    if not (pages.PAGES / "index.html").is_file():
        pytest.fail("There are no built pages to check: run `make book` first.")
    assert pages.page_problems() == []


# The guards over notebooks.


def test_a_good_notebook_passes():
    assert problems_with() == ""


ERROR = new_output("error", ename="E", evalue="", traceback=[])
VIEW = new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}})


@pytest.mark.parametrize(
    "complaint, cell",
    [
        ("was never executed", new_code_cell("x = 1")),
        ("ignores its output", executed("# NBVAL_IGNORE_OUTPUT\ntrain()", 3)),
        ("give a range", executed("model, history = fit(f, d, s)\nassert history.loss == 2", 3)),
        ("give a range", executed("train(net, b)\nx = net(b)\nassert 1 < x == 2", 3)),
        ("is skipped", executed("x = 1", 3, tags=["nbval-skip"])),
        ("wrote to stderr", executed("warn()", 3, [printed("UserWarning", "stderr")])),
        ("stores an error", executed("1/0", 3, [ERROR])),
        ("stores a widget view", executed("w", 3, [VIEW])),
        ("shows a picture without", executed("plt.show()", 3, [PICTURE])),
        ("stores a Markdown table", executed("table", 3, [MARKDOWN_TABLE])),
        ("machine path", executed("print(__file__)", 3, [printed("/home/someone/book.py\n")])),
        ("machine path", new_markdown_cell("Look into `C:\\Users\\me`.")),
        ("MyST syntax", new_markdown_cell("```{note}\nRead this.\n```")),
        ("MyST syntax", new_markdown_cell("See {ref}`here`.")),
        ("arXiv 1810.04805 is cited", new_markdown_cell("[B](https://arxiv.org/pdf/1810.04805)")),
        ("ACL N19-1423 is cited", new_markdown_cell("[B](https://aclanthology.org/N19-1423/)")),
    ],
)
def test_a_guard_bites(complaint, cell):
    assert complaint in problems_with(cell)


def test_what_is_fixed_in_a_live_training_may_be_compared():
    source = "history = train(net, b)\nassert len(history) == 3\nx = 1\nassert x == 1"
    assert problems_with(executed(source, 3)) == ""
    source = "assert train(net, b) == train(net, b)  # exact: one machine"
    assert problems_with(executed(source, 3)) == ""


def test_numbers_typed_into_a_text_alternative_are_refused():
    cell = executed("plt.show()", 3, [PICTURE])
    cell.metadata["mystnb"] = {"image": {"alt": "The loss falls to 2.1."}}
    notebook = new_notebook(cells=[cell])
    assert "has numbers in mystnb.image.alt" in contract.typed_numbers(notebook)[0]
    cell.metadata.mystnb.image.alt = "The loss falls."
    assert contract.typed_numbers(notebook) == []


def test_a_notebook_out_of_its_normal_form_is_refused(tmp_path):
    chapter = make_book(tmp_path)
    assert contract.book_problems(tmp_path) == []
    notebook = notebooks.read(chapter)
    notebook.metadata["colab"] = {"provenance": []}
    nbformat.write(notebook, chapter)
    assert "not in the normal form" in "\n".join(contract.book_problems(tmp_path))


def test_markdown_pages_are_guarded_too(tmp_path):
    make_book(tmp_path)
    (tmp_path / "book" / "welcome.md").write_text(
        "/home/me and <https://arxiv.org/abs/1810.04805>\n"
    )
    found = "\n".join(contract.book_problems(tmp_path))
    assert "welcome.md: machine path" in found and "arXiv 1810.04805 is cited" in found


# The kinds of code cells.


def kind_problems(*cells) -> str:
    """What is wrong with the kinds of the good sample with some cells added."""
    notebook = good_notebook()
    notebook.cells += list(cells)
    return "\n".join(contract.wrong_kinds(notebook))


def lines(number: int) -> str:
    """Code of so many lines."""
    return "\n".join(f"x = {i}" for i in range(number))


ONLY_TRUE = [printed("first\nboth agree: True\n")]


@pytest.mark.parametrize(
    "complaint, cell",
    [
        ("has no kind", executed("x = 1", 3)),
        ("has no kind", executed("x = 1", 3, tags=["hide-input"])),  # a panel folded by hand
        ("has check and plumbing;", executed("assert 1", 3, tags=["check", "plumbing"])),
        ("has 26 lines", executed(lines(26), 3, tags=["teach"])),
        ("a check without an assert", executed("assertive = 1", 3, tags=["check"])),
        ("a check with an output", executed("assert 1\nprint(2)", 3, [printed("2\n")], ["check"])),
        ("plumbing with an assert", executed("def f():\n    assert 1", 3, tags=["plumbing"])),
        ("more than 72 columns: [2]", executed(f"x = 1\ny = '{'a' * 67}'", 3, tags=["teach"])),
        ("only True", executed("print(1)", 3, ONLY_TRUE, ["teach"])),
    ],
)
def test_a_kind_keeps_its_rules(complaint, cell):
    assert complaint in kind_problems(cell)


def test_a_chapter_of_the_book_is_held_to_the_kinds(tmp_path):
    notebook = good_notebook()
    del notebook.cells[2].metadata["tags"]
    make_book(tmp_path, notebook)
    assert "chapter.ipynb: code cell 2 (`print(1 + 1)`) has no kind" in "\n".join(
        contract.book_problems(tmp_path)
    )


# A stale output.


def nbval(path) -> subprocess.CompletedProcess:
    """Run `pytest --nbval` on one notebook."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    return subprocess.run([*command, path.name], cwd=path.parent, capture_output=True, text=True)


def test_a_stale_output_fails(tmp_path):
    chapter = make_book(tmp_path)
    good = nbval(chapter)
    assert good.returncode == 0, good.stdout
    chapter.write_text(chapter.read_text().replace('"2\\n"', '"3\\n"'))
    stale = nbval(chapter)
    assert stale.returncode == 1 and "1 failed" in stale.stdout


# The build and the built pages.


def draw() -> Diagram:
    return Diagram(20, 20, "A box", "A box").rectangle(1, 1, 18, 18, 'fill="none"')


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The pages of the good sample, with cells of each kind and pictures that the build replaces."""
    root = tmp_path_factory.mktemp("good")
    svg = {"image/svg+xml": draw().svg(), "text/plain": "x"}
    sample = good_notebook()
    sample.cells += [
        executed("import os", 3, tags=["plumbing"]),
        executed("idea = 1", 4, tags=["teach"]),
        executed("assert 1\nassert 2", 5, tags=["check"]),
        executed("draw()", 6, [new_output("display_data", data=svg)], ["plumbing"]),
        executed("tell()", 6, [printed("the words\n")], ["plumbing"]),
        executed("assert 3 < 4", 7, tags=["check"]),
        executed("# @title Solution\nsolved = 1", 8, tags=["hide-input"]),
        executed("former = 1", 9, [printed("the panel\n")], ["hide-input"]),
    ]
    make_book(root, sample)
    pictures = ("span_boundary", "language")
    (root / "book" / "welcome.md").write_text(
        "# Welcome\n\n" + "\n\n".join(f"![it](../book_assets/{one}.svg)" for one in pictures)
    )
    result = build(root)
    assert result.returncode == 0, result.stderr
    return root


def page_of(built, name: str) -> str:
    return (built / "_build" / "html" / "book" / name).read_text(encoding="utf-8")


def test_good_pages_pass(built):
    assert pages.page_problems(built / "_build" / "html", built) == []


def test_the_page_folds_what_is_not_the_idea(built):
    html = page_of(built, "bert/chapter.html").partition("<article")[2]
    labels = ["Setup", "Imports", "Code of the figure", "Code of the output", "Solution", "Code"]
    assert re.findall(r"<summary>(.*?)</summary>", html) == labels
    assert "<details open" not in html and "Show code cell" not in html
    folded = "".join(re.findall(r"<details.*?</details>", html, flags=re.S))
    visible = re.sub(r"<details.*?</details>", "", html, flags=re.S)
    assert all(
        text in visible and text not in folded
        for text in ("idea", "A box", "the words", "the panel")
    )
    assert all(
        text in folded and text not in visible for text in ("draw", "tell", "solved", "former")
    )
    assert "assert" not in html and "✓ 3 numbers in the text of this page checked" in visible
    assert "@title" not in html  # the line is the title
    assert len(re.findall(r'class="folds ', html)) == 6  # lines that follow one another share a row


def test_a_diagram_becomes_part_of_the_page_and_a_live_one_replaces_its_picture(built):
    welcome = page_of(built, "welcome.html")
    language = (ROOT / "book_assets" / "language.svg").read_text(encoding="utf-8")
    assert draw().svg() in page_of(built, "bert/chapter.html") and language.strip() in welcome
    assert welcome.count('<div data-try="figure-one"') == 1 and "language.svg" not in welcome


def test_a_chapter_has_the_sign_of_the_road(built):
    welcome, chapter = (page_of(built, name) for name in ("welcome.html", "bert/chapter.html"))
    assert "road-sign" not in welcome
    sign = chapter.index('<nav class="road-sign"')
    assert sign < chapter.rindex("</h1>", 0, sign) + 50  # below the title
    assert '<b>It leads to</b> <a href="../references.html">References</a>' in chapter


def test_a_warning_fails_the_build(tmp_path):
    make_book(tmp_path)
    (tmp_path / "book" / "welcome.md").write_text("# Welcome\n\nTo a [page](nowhere.md).\n")
    result = build(tmp_path)
    assert result.returncode != 0 and "nowhere.md" in result.stderr


LOADS = [
    ("loads https://cdn.example/x.js", '<script src="https://cdn.example/x.js"></script>'),
    ("loads //cdn.example/x.css", '<link rel="stylesheet" href="//cdn.example/x.css">'),
    ("loads http://example/x.png", '<img srcset="http://example/x.png 2x">'),
    ("a style loads", "<style>@import 'https://cdn.example/x.css';</style>"),
    ("a script loads", "<script>fetch('https://example/data.json')</script>"),
]


@pytest.mark.parametrize(
    "guard, complaint, html",
    [
        (pages.dead_links, "nowhere.html leads nowhere", '<a href="nowhere.html">x</a>'),
        (pages.dead_links, "gone.png leads nowhere", '<img src="gone.png">'),
        (pages.dead_links, "no anchor 'gone'", '<a href="book/welcome.html#gone">x</a>'),
        *((pages.network_loads, *row) for row in LOADS),
        (pages.page_paths, "machine path", "<p>/home/someone/book</p>"),
    ],
)
def test_a_page_guard_bites(guard, complaint, html, built):
    folder = built / "_build" / "html"
    extra = folder / "extra.html"
    try:
        extra.write_text(f"<html><body>{html}</body></html>")
        assert complaint in "\n".join(guard(folder))
    finally:
        extra.unlink()
