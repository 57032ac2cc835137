"""Token strips and explorers: text twins, escaping, size, a live version, and the page in a real
browser."""

import json
import re
from html.parser import HTMLParser

import pytest

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.explorer import Explorer, kernel_is_live
from spanbert_tutorial.figures.tokens import TokenStrip

NASTY = [
    '<script>alert("x")</script>',
    "&amp;",
    '"quoted"',
    "it's",
    "</script><!--",
    "日本語",
    "<img src=x onerror=y>",
]


class Page(HTMLParser):
    """Tags and visible text; what stands inside script elements is kept apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags = []
        self.text = []
        self.scripts = []
        self.open = None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open = tag if tag == "script" else self.open

    def handle_endtag(self, tag):
        self.open = None if tag == "script" else self.open

    def handle_data(self, data):
        (self.scripts if self.open else self.text).append(data)

    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


def strip() -> TokenStrip:
    return TokenStrip(
        ["the", "man", "went"], ["", "masked", "kept"], {"masked": "hidden", "kept": "as it was"}
    )


# --- token strips -------------------------------------------------------------------


def test_a_strip_reads_as_text_and_says_its_marks_without_color():
    assert repr(strip()) == "the man/M went/K\nM = hidden; K = as it was"
    page = Page(strip()._repr_html_())
    assert "".join(page.text) == "the manM wentKM hidden; K as it was"
    titles = [attributes["title"] for _, attributes in page.tags if "title" in attributes]
    assert titles[:2] == ["hidden", "as it was"]


def test_a_strip_escapes_all_text():
    texts = NASTY
    made = TokenStrip(
        texts, ["masked"] * len(texts), {"masked": NASTY[0]}, notes=texts, caption=NASTY[0]
    )
    page = Page(made._repr_html_())
    assert page.names() <= {"div", "span", "sup"} and not page.scripts
    assert all(text in "".join(page.text) for text in texts)
    odd = TokenStrip(["a"], ["<b>"])
    assert Page(odd._repr_html_()).names() <= {"div", "span", "sup"}


# --- explorers ----------------------------------------------------------------------


def panel(sentence: str, mark: str) -> TokenStrip:
    if not sentence.isascii() and mark == "kept":
        raise InputError("only ASCII can be <kept>: choose another mark.")
    return TokenStrip(sentence.split(), [mark] * len(sentence.split()), caption=f"mark: {mark}")


def small() -> Explorer:
    controls = {"sentence": ["one two", "three"], "mark": ["masked", "random", "kept"]}
    return Explorer(controls, panel, free_text="sentence")


def stored_panels(html: str) -> list[str]:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])


def test_the_html_is_deterministic_labeled_and_shows_the_first_panel_without_script():
    html = small()._repr_html_()
    assert html == small()._repr_html_()
    page = Page(html)
    assert "one" in "".join(page.text)
    assert "three" not in [text.strip() for text in page.text if "option" in text]
    tags = [tag for tag, _ in page.tags]
    assert tags.count("label") == tags.count("select") == 2
    assert any(attributes.get("aria-live") == "polite" for _, attributes in page.tags)
    assert not any({"id", "src", "href"} & attributes.keys() for _, attributes in page.tags)
    assert "http" not in html


def test_options_and_panels_are_escaped():
    made = Explorer(
        {'<b>"name"</b>': NASTY}, lambda **options: panel(next(iter(options.values())), "masked")
    )
    html = made._repr_html_()
    page = Page(html)
    assert page.names() <= {"div", "span", "sup", "label", "select", "option", "script"}
    assert len(page.scripts) == 2 and [tag for tag, _ in page.tags].count("script") == 2
    for stored in stored_panels(html):
        assert Page(stored).names() <= {"div", "span", "sup"}
    assert all(option in "".join(page.text) for option in NASTY)


def test_the_live_version_follows_the_choice_and_the_typed_text():
    box = small().live()
    sentence, mark, own, view = box.children
    assert view.value == panel("one two", "masked")._repr_html_()
    sentence.value = "three"
    mark.value = "random"
    assert view.value == panel("three", "random")._repr_html_()
    own.value = "<script>alert(1)</script> & four"
    assert "<script>" not in view.value and "&lt;script&gt;" in view.value and "&amp;" in view.value
    own.value = "日本"
    mark.value = "kept"
    assert view.value == "<p>only ASCII can be &lt;kept&gt;: choose another mark.</p>"
    own.value = " "
    assert view.value == panel("three", "kept")._repr_html_()
    # a new choice wins over the typed text
    own.value = "mine"
    sentence.value = "one two"
    assert own.value == "" and view.value == panel("one two", "kept")._repr_html_()


class Kernel:
    kernel = object()


def test_a_kernel_shows_widgets_and_the_test_run_shows_html(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda made, **options: shown.append(made))
    monkeypatch.setattr("IPython.get_ipython", lambda: Kernel())
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    small()._ipython_display_()
    assert shown[-1] == {"text/plain": repr(small()), "text/html": small()._repr_html_()}
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "0")
    assert kernel_is_live()
    small()._ipython_display_()
    assert type(shown[-1]).__name__ == "VBox"
    monkeypatch.undo()
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC", raising=False)
    assert not kernel_is_live()  # no kernel here


@pytest.mark.browser
def test_two_explorers_on_a_page_work_in_a_browser(tmp_path, browser):
    other = Explorer({"mark": ["masked", "random"]}, lambda mark: panel("x < y <script>", mark))
    parts = [small()._repr_html_(), other._repr_html_()]
    page_file = tmp_path / "page.html"
    page_file.write_text(
        f"<!doctype html><meta charset=utf-8>{parts[0]}{parts[1]}", encoding="utf-8"
    )
    page = browser.new_page()
    page.goto(page_file.as_uri())
    views = page.locator("[data-view]")
    selects = page.locator("select")
    assert selects.count() == 3 and selects.nth(0).is_visible()
    selects.nth(0).focus()
    page.keyboard.press("ArrowDown")
    selects.nth(1).select_option("kept")
    assert views.nth(0).inner_text().startswith("threeK")
    assert views.nth(1).inner_text().startswith("xM <M yM <script>M")
    selects.nth(2).select_option("random")
    assert views.nth(1).inner_text().startswith("xR <R yR <script>R")
    assert views.nth(0).inner_text().startswith("threeK")
