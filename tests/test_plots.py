"""Plots as SVG: text stays text, the page's colors, the same in every run, and no name that
another could have."""

import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest

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
    assert (
        "@media(prefers-color-scheme:dark){svg:root{color:" in drawing
    )  # a file has no page to take its color from


def test_every_stored_plot_is_svg():
    """`make notebooks` stores them so."""
    for path in notebooks.book_notebooks():
        for cell in notebooks.read(path).cells:
            kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
            assert "image/png" not in kinds, f"{path.name}, {cell.id}"
