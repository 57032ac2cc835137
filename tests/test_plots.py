"""Plots as SVG: text stays text, the page's colors, the same in every run, and no name that
another could have."""

import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_diagrams import DARK, LIGHT, contrast

import notebooks
from spanbert_tutorial.figures import plots
from spanbert_tutorial.figures.curves import draw_curves

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
