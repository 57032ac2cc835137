"""Diagrams: words for every drawing, looks that GitHub keeps, colours for light and dark, numbers of the chapters."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations_with_replacement

import pytest

import picture
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures import boundary_figure, legend
from spanbert_tutorial.figures.boundary_figure import WORDS, Reads, draw, figure_one, reads
from spanbert_tutorial.figures.diagram import COLOURS, SIZE, Diagram, subscript, text_width

SVG = "{http://www.w3.org/2000/svg}"
LIGHT, DARK = (255, 255, 255), (20, 24, 30)  # the grounds of the pages
LEAST_SIZE = 10.5  # units; a telephone of 360 pixels shows a unit as about 0.9 of a pixel


def small_diagram() -> Diagram:
    picture = Diagram(100, 60, "A & B", "one < two")
    picture.token(2, 2, "a<b", "masked")
    picture.vector(2, 30).matrix(50, 2, 2, 3, "learned").arrow(2, 50, 40, 50, "boundary")
    return picture


DRAWINGS = {
    "small": small_diagram,
    "legend": legend.language,
    "figure 1": draw,
    "figure 1, short span": lambda: draw((7, 7), 7),
    "figure 1, word in view": lambda: draw((6, 7), 8),
}


@pytest.fixture(params=DRAWINGS)
def drawing(request) -> Diagram:
    return DRAWINGS[request.param]()


def texts(drawing: Diagram):
    """(element, size, anchor, turned) of every text; looks stand at the group around it."""
    root = ET.fromstring(drawing.svg())
    for group in root.iter(f"{SVG}g"):
        for text in group.iter(f"{SVG}text"):
            size = float(group.get("font-size", SIZE))
            yield text, size, group.get("text-anchor", "middle"), text.get("transform") is not None


def test_a_drawing_has_words_for_readers_who_do_not_see_it(drawing):
    root = ET.fromstring(drawing.svg())
    assert root.get("role") == "img" and root.get("aria-label") == drawing.title
    assert root.find(f"{SVG}title").text == drawing.title and root.find(f"{SVG}desc").text == drawing.description
    assert repr(drawing) == f"{drawing.title}. {drawing.description}"
    assert drawing.svg() == drawing.svg() == drawing._repr_svg_()


def test_a_drawing_keeps_its_looks_where_styles_and_scripts_are_taken_out(drawing):
    root = ET.fromstring(drawing.svg())
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {"svg", "title", "desc", "style", "g", "rect", "path", "text"}
    attributes = {name for element in root.iter() if element is not root for name in element.attrib}
    assert not attributes & {"id", "class", "style", "href", "filter", "mask"}
    assert "url(" not in drawing.svg() and "<style>" not in drawing.svg(alone=False)


def test_the_text_stays_inside_and_is_large_enough_for_a_telephone(drawing):
    for text, size, anchor, turned in texts(drawing):
        assert size >= LEAST_SIZE, text.text
        wide = text_width(text.text, size)
        along = float(text.get("y")) if turned else float(text.get("x"))
        room = drawing.height if turned else drawing.width
        begin = {"start": along, "middle": along - wide / 2, "end": along - wide}[anchor]
        assert -1 <= begin and begin + wide <= room + 1, text.text


def luminance(colour: tuple[int, ...]) -> float:
    """Relative luminance, WCAG 2.1."""
    shares = [value / 255 for value in colour]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("kind", [kind for kind in COLOURS if kind])
def test_a_colour_is_seen_on_a_light_and_on_a_dark_page(kind):
    colour = tuple(map(int, re.findall(r"\d+", COLOURS[kind])))
    assert contrast(colour, LIGHT) >= 3 and contrast(colour, DARK) >= 3  # WCAG: parts of a graphic


def test_the_text_of_a_masked_token_can_be_read():
    colour = tuple(map(int, re.findall(r"\d+", COLOURS["masked"])))
    assert contrast(colour, (255, 255, 255)) >= 4.5


def test_a_diagram_without_words_is_refused():
    for words in (("", "told"), ("title", " ")):
        with pytest.raises(InputError, match="without words"):
            Diagram(10, 10, *words)


def test_small_helpers():
    assert subscript(12) == "₁₂" and subscript("s-1") == "s₋₁"
    assert text_width("mmm") > text_width("aaa") > text_width("iii") > 0
    assert text_width("aa", 26) == 2 * text_width("aa", 13)


# --- the paper's Figure 1 ---


@pytest.mark.parametrize("span", list(combinations_with_replacement(range(2, 12), 2)))
def test_what_the_heads_read_is_what_the_paper_says(span):
    """y_i = f(x_{s-1}, x_{e+1}, p_{i-s+1}), counted by hand."""
    first, last = span
    for word in range(1, len(WORDS) + 1):
        place = word - first + 1 if first <= word <= last else None
        assert reads(span, word) == Reads(first - 1, last + 1, place)


def test_the_figure_shows_the_papers_example():
    assert WORDS[7 - 1] == "football" and reads((5, 8), 7) == Reads(4, 9, 3)
    shown = [text.text for text, *_ in texts(draw())]
    assert shown.count("[MASK]") == 4 and shown.count("football") == 2  # only as predictions
    assert {"x₄, x₉, p₃", "x₇", "p₃: third in the span"} <= set(shown)
    assert "x4, the state of the boundary token “was”" in draw().description
    assert "it adds no loss" in [text.text for text, *_ in texts(draw((6, 7), 8))]


@pytest.mark.parametrize("span", [(1, 3), (10, 12)])
def test_a_span_at_the_edge_has_no_figure(span):
    with pytest.raises(InputError, match="no boundary token on one side"):
        draw(span, 2)


def test_the_live_figure_has_a_panel_for_every_choice():
    explorer = figure_one()
    spans, words = explorer.controls.values()
    assert spans[0] == "an American football game" and words[0] == "football" and len(spans) == 6
    assert sorted(words) == sorted(boundary_figure.WORDS[4:8])
    shown = iter(explorer.panels)
    for span in spans:
        for word in words:
            told = repr(next(shown))
            assert f"The span “{span}” is masked" in told
            assert ("so no head predicts it" in told) == (word not in span.split())


# --- kept pictures ---


@pytest.mark.parametrize("name", picture.PICTURES)
def test_a_kept_picture_is_what_the_package_draws(name):
    """`python tools/picture.py` draws them anew."""
    assert (picture.FOLDER / name).read_text(encoding="utf-8") == picture.drawn(name)
