"""Plots as SVG: text stays text, the page's colors, the same in every run, and no name that
another could have."""

import html
import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_diagrams import DARK, LIGHT, contrast

import notebooks
from spanbert_tutorial.figures import plots
from spanbert_tutorial.figures.curves import draw_curves

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
TICK = re.compile(
    r'x="([\d.]+)" y="([\d.]+)"[^>]*/>\s*</g>\s*</g>\s*<g>\s*<text [^>]*anchor: (middle|end)[^>]*>([^<]*)<'
)
SPOT = re.compile(r'(?:[ML] |<use [^>]*x=")(-?[\d.]+)"? (?:y=")?(-?[\d.]+)')
# Numbers of a text alternative that stand for themselves.
NOT_DRAWN = {
    "roberta": {"51", "16"},  # columns without a dot
    "released_spanbert": {"1.1"},  # the name of SQuAD
}

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figure():
    rng = np.random.default_rng(0)
    yield draw_curves(
        {name: (range(600), rng.random(600)) for name in "ab"}, {"entropy": 0.87}, "steps"
    )
    plt.close("all")


def test_text_stays_text_with_its_numbers(figure):
    root = ET.fromstring(plots.svg_of(figure))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"a", "b", "entropy 0.87", "steps", "loss (nats)"} <= set(texts)
    assert root.get("role") == "img" and root.get("class") == "plot"


def test_a_plot_takes_the_colors_of_the_page(figure):
    figure.axes[0].axhline(0.2, color="dimgrey")
    drawing = plots.svg_of(figure)
    assert not re.search("#000000|#ffffff|#696969", drawing)
    assert "currentColor" in drawing and "var(--pst-color-background,Canvas)" in drawing
    # a file has no page to take its color from
    assert "@media(prefers-color-scheme:dark){svg:root{color:" in drawing


def test_numbers_on_a_heat_map_stay_black():
    figure, axis = plt.subplots()
    axis.imshow([[0.0, 1.0]], cmap="Blues")
    axis.text(0, 0, "0.00")
    drawing = plots.svg_of(figure)
    plt.close(figure)
    assert re.search(f"fill: {plots.BLACK}[^>]*>0.00<", drawing) and drawing.count(plots.BLACK) == 1


def test_the_text_alternative_stands_inside(figure, monkeypatch):
    assert 'aria-label="Loss in nats, from first to last of steps: a ' in plots.svg_of(figure)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda made, **options: shown.append(made))
    plots.show(figure, alt=f"from {0.5:.1f} to <1>")
    assert 'aria-label="from 0.5 to &lt;1&gt;"' in shown[0]["image/svg+xml"]
    assert not plt.fignum_exists(figure.number)


def test_letters_keep_their_size_where_a_wide_plot_is_drawn_narrower(figure):
    root = ET.fromstring(plots.svg_of(figure))
    assert root.get("viewBox").split()[2] == "360"  # units; on a telephone about one pixel each
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", plots.svg_of(figure))]
    assert min(sizes) >= 9


@pytest.mark.parametrize("color", plots.SERIES)
def test_curves_are_seen_on_a_light_and_on_a_dark_page(color):
    """3 to 1, WCAG 2.1, 1.4.11; the dark ground is that of the pages."""
    own = tuple(bytes.fromhex(color[1:]))
    assert min(contrast(own, LIGHT), contrast(own, DARK)) >= 3


def test_every_stored_plot_is_svg():
    """`make notebooks` stores them so."""
    for path in notebooks.book_notebooks():
        for cell in notebooks.read(path).cells:
            kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
            assert "image/png" not in kinds, f"{path.name}, {cell.id}"


def drawn(body: str) -> np.ndarray:
    """Where lines, bars and dots of a plot stand, in the units of its axes: their places, read by
    the numbers at the ticks."""
    spots = np.array(SPOT.findall(body), dtype=float)
    axes: list[tuple[int, list]] = []
    for *place, anchor, text in TICK.findall(body):
        column = int(anchor == "end")  # of the axis that goes up
        if NUMBER.fullmatch(text := re.sub("[,%]", "", text.replace("−", "-"))):
            if not axes or axes[-1][0] != column or float(text) <= axes[-1][1][-1][1]:
                axes.append((column, []))
            axes[-1][1].append((float(place[column]), float(text)))
    values = []
    for column, ticks in axes:
        places, numbers = np.array(ticks).T
        evenly = np.ptp(np.diff(numbers)) <= 1e-9 or min(numbers) <= 0
        there, back = (np.positive, np.positive) if evenly else (np.log, np.exp)
        if len(ticks) > 1:
            line = np.polyfit(places, there(numbers), 1)
            values.append(back(np.polyval(line, spots[:, column])))
    return np.concatenate([*values, [np.inf]])


def unfounded(drawing: str) -> list[str]:
    """Numbers of a plot's text alternative that it neither writes nor draws."""
    body = re.sub(r"(?s)<defs>.*?</defs>", "", drawing)
    said = html.unescape(re.search('aria-label="([^"]*)"', drawing)[1])
    written = set(NUMBER.findall(html.unescape(" ".join(re.findall(">([^<]+)</text>", body)))))
    values = drawn(body)
    return [
        number
        for number in NUMBER.findall(said)
        if number not in written
        and np.abs(values - float(number)).min()
        > 0.51 * 10.0 ** -len(number.partition(".")[2]) + 1e-3 * abs(float(number))
    ]


def test_a_text_alternative_says_the_numbers_that_are_drawn():
    checked = 0
    for path in notebooks.book_notebooks():
        for cell in notebooks.read(path).cells:
            for output in cell.get("outputs", []):
                drawing = output.get("data", {}).get("image/svg+xml", "")
                if 'class="plot"' in drawing and "aria-label" in drawing:
                    wrong = set(unfounded(drawing)) - NOT_DRAWN.get(path.stem, set())
                    assert not wrong, f"{path.name}, {cell.id}"
                    checked += 1
    assert checked > 30


def test_a_number_that_is_not_drawn_is_noticed(figure):
    figure.set_label("The curve a ends at 3.25.")
    assert unfounded(plots.svg_of(figure)) == ["3.25"]


def test_marks_of_stored_plots_are_seen_on_a_dark_page():
    """3 to 1, WCAG 2.1, 1.4.11. Numbers on the cells of a heat map stay black."""
    for path in notebooks.book_notebooks():
        for cell in notebooks.read(path).cells:
            for output in cell.get("outputs", []):
                drawing = output.get("data", {}).get("image/svg+xml", "")
                if 'class="plot"' in drawing:
                    colors = re.findall("(?:fill|stroke): #([0-9a-f]{6})", drawing)
                    for color in {*colors} - {plots.BLACK[1:]}:
                        seen = contrast(tuple(bytes.fromhex(color)), DARK)
                        assert seen >= 3, f"{path.name}, {cell.id}: #{color}"
