"""Hostile calls of figures: half characters, tags, control signs, numbers that are none, lists that
do not fit. The oracle is in `fuzz`."""

import math
from html.parser import HTMLParser

import numpy as np
from fuzz import REFUSED, Door
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.figures.attention_map import AttentionMap
from spanbert_tutorial.figures.bars import Bars
from spanbert_tutorial.figures.tokens import TokenStrip

door = Door("figures")
counts = door.counts()

ODD = st.sampled_from(
    [
        "",
        " ",
        "<script>alert(1)</script>",
        '"><img src=x onerror=1>',
        "&amp;",
        "\ud83d",
        "a\udcffb",
        "\0",
        "\x1b[2J",
        "\u202e",
        "é",
        "東京",
        "x" * 2_000,
        "]]>",
        "{{",
        "$x^2$",
    ]
)
TEXTS = ODD | st.text(max_size=8)
FORMS = st.lists(TEXTS, max_size=5)
VALUES = (
    st.floats(0, 1)
    | st.floats()
    | st.sampled_from([math.nan, math.inf, -1, 2, 10**400, True, None, "0.5", [], 1j])
)


class Tags(HTMLParser):
    """The names of all tags and attributes of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.tags = set()
        self.attributes = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


def check_shown(figure) -> None:
    """It can be written to a file, its text twin, too, and nothing of what was given has become a
    tag."""
    page = figure._repr_html_()
    page.encode("utf-8")
    repr(figure).encode("utf-8")
    found = Tags(page)
    assert not found.tags & {"script", "img"} and not any(
        name.startswith("on") for name in found.attributes
    )
    assert "nan" not in page.lower().replace("nanny", "") or "nan" in repr(figure)


@door.inputs(short=150, share=0.4)
@given(
    FORMS,
    st.lists(
        st.sampled_from(["", "masked", "random", "kept", "boundary"]) | TEXTS | st.none(),
        max_size=5,
    ),
    st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3),
    st.none() | FORMS,
    TEXTS,
    st.booleans(),
)
def test_a_strip_shows_any_text(tokens, marks, legend, notes, caption, fitting):
    if fitting:
        marks = (marks * 5 + [""] * 5)[: len(tokens)]
        notes = notes and (notes * 5)[: len(tokens)]
    made = door.call(TokenStrip, tokens, marks, legend, notes=notes, caption=caption)
    if made is not REFUSED:
        check_shown(made)


@door.inputs(short=150, share=0.3)
@given(
    FORMS | st.lists(st.integers(), max_size=5),
    st.dictionaries(TEXTS, st.lists(VALUES, max_size=5), max_size=3),
    VALUES,
    TEXTS,
    st.booleans(),
)
def test_bars_show_any_shares(labels, series, top, caption, fitting):
    if fitting:
        series = {name: (values * 5 + [0.5] * 5)[: len(labels)] for name, values in series.items()}
    made = door.call(Bars, labels, series, top=top, caption=caption)
    if made is not REFUSED:
        check_shown(made)


@door.inputs(short=150, share=0.3)
@given(st.lists(st.lists(VALUES, max_size=4), max_size=4), FORMS, TEXTS, st.integers(0, 4))
def test_a_map_shows_any_weights(rows, tokens, caption, size):
    weights = (
        door.call(np.array, rows, dtype=object) if size == 0 else np.full((size, size), 1 / size)
    )
    tokens = tokens if size == 0 else (tokens * 4 + ["a"] * 4)[:size]
    made = door.call(AttentionMap, weights, tokens, caption)
    if made is not REFUSED:
        check_shown(made)
