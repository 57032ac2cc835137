"""Token strips and explorers: text twins, escaping, size, a live version, and the page in a real
browser."""

import json
import re
from html.parser import HTMLParser
from itertools import product

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures import explorer as explorer_module
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
    assert [attributes["title"] for _, attributes in page.tags if "title" in attributes][:2] == [
        "hidden",
        "as it was",
    ]


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


def test_every_combination_is_stored_in_the_order_of_the_controls():
    made = small()
    expected = [panel(*values)._repr_html_() for values in product(*made.controls.values())]
    assert stored_panels(made._repr_html_()) == expected


def test_the_html_is_deterministic_labeled_and_shows_the_first_panel_without_script():
    html = small()._repr_html_()
    assert html == small()._repr_html_()
    page = Page(html)
    assert "one" in "".join(page.text) and "three" not in [
        text.strip() for text in page.text if "option" in text
    ]
    assert (
        [tag for tag, _ in page.tags].count("label")
        == [tag for tag, _ in page.tags].count("select")
        == 2
    )
    assert any(attributes.get("aria-live") == "polite" for _, attributes in page.tags)
    assert not any(
        "id" in attributes or "src" in attributes or "href" in attributes
        for _, attributes in page.tags
    )
    assert "http" not in html


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
    monkeypatch.setattr(explorer_module, "find_spec", lambda name: None)  # no ipywidgets installed
    assert not kernel_is_live()
    monkeypatch.undo()
    monkeypatch.delenv("SPANBERT_TUTORIAL_STATIC", raising=False)
    assert not kernel_is_live()  # no kernel here
