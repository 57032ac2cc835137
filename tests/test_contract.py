"""The truth contract holds for the real book, and each of its guards bites on a bad sample."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from sample_book import REFERENCES, executed, good_notebook, printed

import contract
import pages
from environment import ROOT
from kinds import asserts_in, kinds_of
from notebooks import book_notebooks, read

PICTURE = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"})
ERROR = new_output("error", ename="E", evalue="", traceback=[])


def test_the_book_keeps_the_contract():
    assert contract.book_problems() == []


def test_the_built_pages_keep_the_contract():
    if not (pages.PAGES / "index.html").is_file():
        pytest.fail("There are no built pages to check: run `make book` first.")
    assert pages.page_problems() == []


def lines(number: int) -> str:
    """Code of so many lines."""
    return "\n".join(f"x = {i}" for i in range(number))


@pytest.mark.parametrize(
    "complaint, cell",
    [
        ("was never executed", new_code_cell("x = 1")),
        ("ignores its output", executed("# NBVAL_IGNORE_OUTPUT\ntrain()", 3)),
        ("is skipped", executed("x = 1", 3, tags=["nbval-skip"])),
        ("wrote to stderr", executed("warn()", 3, [printed("UserWarning", "stderr")])),
        ("stores an error", executed("1/0", 3, [ERROR])),
        ("shows a picture without", executed("plt.show()", 3, [PICTURE])),
        ("machine path", new_markdown_cell("Look into `C:\\Users\\me`.")),
        ("MyST syntax", new_markdown_cell("```{note}\nRead this.\n```")),
        ("arXiv 1810.04805 is cited", new_markdown_cell("[B](https://arxiv.org/pdf/1810.04805)")),
        ("has no kind", executed("x = 1", 3, tags=["hide-input"])),  # a panel folded by hand
        ("has 26 lines", executed(lines(26), 3, tags=["teach"])),
        ("a check without an assert", executed("assertive = 1", 3, tags=["check"])),
        ("a check with an output", executed("assert 1\nprint(2)", 3, [printed("2\n")], ["check"])),
        ("plumbing with an assert", executed("def f():\n    assert 1", 3, tags=["plumbing"])),
        ("more than 72 columns: [2]", executed(f"x = 1\ny = '{'a' * 67}'", 3, tags=["teach"])),
        ("only True", executed("print(1)", 3, [printed("both agree: True\n")], ["teach"])),
    ],
)
def test_a_guard_bites(complaint, cell):
    notebook = good_notebook()
    assert contract.notebook_problems(notebook, REFERENCES) == []
    notebook.cells.append(cell)
    assert complaint in "\n".join(contract.notebook_problems(notebook, REFERENCES))


# The built pages.


def page_of(name: str) -> str:
    return (pages.PAGES / "book" / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", book_notebooks(), ids=lambda path: path.stem)
def test_a_page_folds_what_is_not_the_idea_and_counts_its_checks(path):
    html = page_of(path.relative_to(ROOT / "book").with_suffix("").as_posix())
    html = html.partition("<article")[2]
    assert "Show code cell" not in html and "@title" not in html  # the line is the title
    assert '<details class="fold' in html and "<details open" not in html
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    checks = sum(len(asserts_in(one.source)) for one in cells if kinds_of(one) == ["check"])
    assert not checks or f"✓ {checks} number" in html


def test_a_diagram_becomes_part_of_the_page_and_a_live_one_replaces_its_picture():
    welcome = page_of("welcome")
    assert welcome.count('<div data-try="figure-one"') == 1 and "span_boundary.svg" not in welcome
    assert '<svg class="diagram"' in page_of("bert/bert")


def test_a_chapter_has_the_sign_of_the_road():
    chapter = page_of("bert/masking")
    sign = chapter.index('<nav class="road-sign"')
    assert sign < chapter.rindex("</h1>", 0, sign) + 50  # below the title
    assert "<b>It leads to</b>" in chapter and "road-sign" not in page_of("welcome")


@pytest.mark.parametrize(
    "complaint, html",
    [
        ("nowhere.html leads nowhere", '<a href="nowhere.html">x</a>'),
        ("gone.png leads nowhere", '<img src="gone.png">'),
        ("no anchor 'gone'", '<a href="page.html#gone">x</a>'),
        ("machine path", "<p>/home/someone/book</p>"),
        ("book/one.html was not built", ""),
    ],
)
def test_a_page_guard_bites(complaint, html, tmp_path):
    (tmp_path / "page.html").write_text(f"<html><body>{html}</body></html>")
    (tmp_path / "_toc.yml").write_text("- file: book/one")
    assert complaint in "\n".join(pages.page_problems(tmp_path, tmp_path))
