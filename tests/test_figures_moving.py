"""Figures that move: frames are Python's numbers, words and looks without script, keyboard and
reduced motion."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html import unescape

import numpy as np
import pytest
import torch
from test_diagrams import LEAST_SIZE, SVG, fits, real_call, texts_of
from test_figures_explorer import NASTY, Page

from research.experiments.inside_a_run import predictions
from spanbert_tutorial.bert.masking import TokenMasking
from spanbert_tutorial.figures.masking_machine import MaskingMachine
from spanbert_tutorial.figures.moving import Button, Moving
from spanbert_tutorial.figures.training_scrubber import Gap, neighbors, training_scrubber
from spanbert_tutorial.spanbert.span_masking import SpanMasking

PIECES = (
    "The Den ##ver Bron ##cos beat the Car ##olina Pan ##thers 24 to 10 , and won a third "
    "Super Bowl ."
).split()


def small_moving() -> Moving:
    buttons = [Button("Play", [2]), Button("Next", [1, 2], plays=False)]
    says = ["zero", "one", "two"]
    made = Moving(100, 60, "A & B", "one < two", says, buttons, first=1, pace=0.05)
    made.add("rect", x=[0, 10.04, 20], y=5, width=10, height=10)
    made.text(10, 40, ["<a>", "b", "b"])
    return made


def machine() -> MaskingMachine:
    return MaskingMachine(PIECES, range(4))


def scrubber(steps: int = 4) -> Moving:
    rng = np.random.default_rng(0)
    attention = rng.dirichlet(np.ones(9), (steps, 2, 2))
    listed = [
        [(token, 0.5 - place / 10) for place, token in enumerate(("of", "<b>", "in"))]
        for _ in range(steps)
    ]
    losses = {
        "as it is": np.linspace(7, 3, steps).tolist(),
        "neighbours hidden": np.linspace(7, 5, steps).tolist(),
    }
    landmarks = {"frequencies": 6.0, "by position": 5.5}
    steps = range(0, 50 * steps, 50)
    gaps = [Gap(["a", "b"], "of", ["c"], listed), Gap(["d"], "at", [], listed)]
    return training_scrubber(steps, losses, landmarks, attention, gaps)


FIGURES = {"small": small_moving, "machine": machine, "scrubber": scrubber}


@pytest.fixture(params=FIGURES)
def figure(request) -> Moving:
    return FIGURES[request.param]()


def drawing(html: str) -> ET.Element:
    """The drawing that stands in the HTML; without a namespace, as HTML needs none."""
    return ET.fromstring(
        re.search(r"<svg.*</svg>", html, re.S)[0].replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1)
    )


def stored(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])


def in_frame(data: dict, frame: int) -> list[dict[str, str]]:
    """What the changing parts show in a frame, by the rule of the script."""
    return [
        {
            name: [value for at, value in changes if at <= frame][-1]
            for name, changes in part.items()
        }
        for part in data["parts"]
    ]


# --- what all have in common --------------------------------------------------------


def test_a_figure_is_the_same_every_time_asks_for_nothing_and_has_words(figure):
    html = figure._repr_html_()
    assert html == figure._repr_html_() and "http" not in html and " id=" not in html
    root = drawing(html)
    assert root.find(f"{SVG}title").text == figure.title
    assert root.find(f"{SVG}desc").text == figure.description
    assert figure.title in repr(figure) and figure.description in repr(figure)
    assert len(html.encode()) < 150_000


def test_without_script_the_first_frame_stands_whole_and_the_controls_are_hidden(figure):
    page = Page(figure._repr_html_())
    controls = [looks for _, looks in page.tags if "data-controls" in looks or "data-hint" in looks]
    assert controls and all("hidden" in looks for looks in controls)
    assert figure.says[figure.first] in "".join(page.text)


def test_the_text_of_the_first_frame_stays_inside_and_can_be_read_on_a_telephone(figure):
    root = drawing(figure._repr_html_())
    for text, size, anchor, turned in texts_of(root):
        assert size >= LEAST_SIZE and fits(root, text, size, anchor, turned), text.text


def test_a_notebook_stores_a_still_picture_which_a_live_kernel_does_not_need(figure, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda made, **options: shown.append(made))
    figure._ipython_display_()
    still, moving = shown
    told = f"{figure.title}. {figure.description}"
    assert still == {"text/plain": told, "image/svg+xml": figure.svg()}
    assert moving == {"text/plain": repr(figure), "text/html": figure._repr_html_()}
    root = ET.fromstring(still["image/svg+xml"])
    attributes = {name for element in root.iter() if element is not root for name in element.attrib}
    assert not attributes & {"id", "class", "style", "href"}  # what GitHub takes out
    monkeypatch.setattr("spanbert_tutorial.figures.moving.kernel_is_live", lambda: True)
    figure._ipython_display_()
    assert shown[2:] == [moving]


# --- moving diagrams ----------------------------------------------------------------


def test_all_text_of_a_moving_figure_is_escaped():
    says, buttons = [NASTY[0], NASTY[4]], [Button(NASTY[-1], [1])]
    slider = {"slider": NASTY[0], "marks": NASTY[:2]}
    made = Moving(100, 60, NASTY[0], NASTY[-1], says, buttons, **slider)
    made.text([1, 2], 9, [NASTY[0], NASTY[4]])
    made.add("text", NASTY[-1])
    page = Page(made._repr_html_())
    shapes = {"svg", "title", "desc", "g", "rect", "text"}
    assert page.names() <= shapes | {"div", "style", "button", "label", "input", "span", "script"}
    assert len(page.scripts) == 2 and json.loads(page.scripts[0])["says"] == [NASTY[0], NASTY[4]]


# --- the masking machine ------------------------------------------------------------


def test_the_machine_masks_as_the_package_does():
    made = machine()
    for seed, last in enumerate(made.buttons[0].stops):
        frame = made.frames[last]
        for shown, scheme in ((frame.by_spans, SpanMasking()), (frame.by_tokens, TokenMasking())):
            assert np.array_equal(shown, scheme.select(made.starts, np.random.default_rng(seed)))
    assert made.counts.sum() == len(made.draws) == frame.counted


def test_one_draw_ends_where_the_span_has_landed():
    made = machine()
    stops = made.buttons[1].stops
    assert [made.frames[stop].counted for stop in stops] == list(range(1, len(made.draws) + 1))
    assert not any(made.frames[stop].hangs for stop in stops)


# --- the slider through a training --------------------------------------------------


def test_the_scrubber_shows_the_numbers_that_it_was_given():
    made = scrubber()
    data = stored(made._repr_html_())
    assert data["marks"] == ["0", "50", "100", "150"] and data["first"] == 0
    attention = np.random.default_rng(0).dirichlet(np.ones(9), (4, 2, 2))
    for frame in range(4):
        words = [part["words"] for part in in_frame(data, frame) if "words" in part]
        loss = np.linspace(7, 3, 4)[frame]
        assert f"as it is {loss:.2f}" in words
        both = attention[frame][..., [3, 5]].sum(-1)
        assert [f"{one:.2f}" for one in both.ravel()] == [
            word for word in words if re.fullmatch(r"\d\.\d\d", word)
        ]
        assert f"{both.max():.2f}" in data["says"][frame]
        assert f"as it is {loss:.2f}" in data["says"][frame]
    assert np.allclose(neighbors(attention), attention[..., 3] + attention[..., 5])
    still = "".join(unescape(text) for text in Page(made._repr_html_()).text)
    assert "✓ of 0.50" in still and "✓ <b>" not in still and "masked: at" in still


def test_guesses_are_the_likeliest_tokens_of_the_head():
    model, batch = real_call()
    tokens, p, right = predictions(model, batch, [0, 3], most=4)
    with torch.no_grad():
        hidden = model.encode(batch)[batch["labels"] != -100]
        all_p = model.masked_language_model(hidden).softmax(-1).numpy()[[0, 3]]
    assert tokens.shape == p.shape == (2, 4)
    assert np.allclose(p, -np.sort(-all_p, axis=1)[:, :4])
    assert np.allclose(np.take_along_axis(all_p, tokens, 1), p)
    assert np.allclose(right, all_p[[0, 1], batch["labels"][batch["labels"] != -100][[0, 3]]])


# --- in a browser -------------------------------------------------------------------


@pytest.fixture
def browser_page(request, tmp_path, browser) -> Iterator:
    """All figures on one page; the parameter asks for less motion."""
    page_file = tmp_path / "page.html"
    made = [FIGURES[name]() for name in FIGURES]
    outputs = [f"<div><div>{one.svg()}</div><div>{one._repr_html_()}</div></div>" for one in made]
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{''.join(outputs)}", encoding="utf-8")
    motion = getattr(request, "param", "no-preference")
    page = browser.new_context(reduced_motion=motion).new_page()
    page.complaints = []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(page_file.as_uri())
    yield page
    assert page.complaints == []
    page.context.close()


@pytest.mark.browser
def test_the_still_picture_steps_back(browser_page):
    drawings = browser_page.locator("svg.diagram")
    assert [one.is_visible() for one in drawings.all()] == [False, True] * len(FIGURES)


@pytest.mark.browser
def test_buttons_play_pause_and_start_again_by_keyboard(browser_page):
    root = browser_page.locator("[data-moving]").first
    says, (play, following) = root.locator("[data-says]"), root.locator("button").all()
    assert says.inner_text() == "one" and root.locator("rect").get_attribute("x") == "10"
    following.press("Enter")
    assert says.inner_text() == "two" and root.locator("rect").get_attribute("x") == "20"
    assert says.get_attribute("aria-live") == "polite"
    following.press("Enter")  # from the last frame on to the first stop again
    assert says.inner_text() == "one"
    play.press("Space")
    browser_page.wait_for_function(
        "() => document.querySelector('[data-says]').textContent == 'two'", timeout=5_000
    )
    browser_page.wait_for_function(
        "() => document.querySelector('button').textContent == 'Play'", timeout=5_000
    )


@pytest.mark.browser
def test_the_slider_moves_by_the_arrow_keys(browser_page):
    root = browser_page.locator("[data-moving]").nth(2)
    data = stored(scrubber()._repr_html_())
    slider = root.get_by_label("training step")
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "100"
    assert root.locator("[data-says]").inner_text() == data["says"][2]
    slider.press("Home")
    assert root.locator("[data-says]").inner_text() == data["says"][0]
    shown = root.locator("[data-part]").all()
    for part, wanted in zip(shown, in_frame(data, 0), strict=True):
        for name, value in wanted.items():
            assert (part.text_content() if name == "words" else part.get_attribute(name)) == value


@pytest.mark.browser
@pytest.mark.parametrize("browser_page", ["reduce"], indirect=True)
def test_less_motion_shows_results_at_once(browser_page):
    roots = browser_page.locator("[data-moving]")
    made = machine()
    roots.nth(1).locator("button").first.press("Enter")
    assert roots.nth(1).locator("[data-says]").inner_text() == made.says[made.buttons[0].stops[1]]
    lasts = "part => getComputedStyle(part).transitionDuration"
    assert roots.nth(1).locator("[data-part]").first.evaluate(lasts) == "0s"
    assert not roots.nth(2).locator("button").is_visible()
    assert roots.nth(2).locator("input").is_visible()
