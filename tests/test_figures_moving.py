"""Figures that move: frames are Python's numbers, words and looks without script, keyboard and
reduced motion."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.masking import TokenMasking
from spanbert_tutorial.figures.encoder import encoder_flow, shape
from spanbert_tutorial.figures.masking_machine import MaskingMachine
from spanbert_tutorial.figures.moving import Button, Moving, MovingDiagram
from spanbert_tutorial.figures.stages import Stages
from spanbert_tutorial.figures.training_scrubber import Gap, training_scrubber
from spanbert_tutorial.spanbert.span_masking import SpanMasking

PIECES = (
    "The Den ##ver Bron ##cos beat the Car ##olina Pan ##thers 24 to 10 , and won a third "
    "Super Bowl ."
).split()
TINY = EncoderConfig.tiny(vocab_size=40)


def small_moving(says: tuple[str, ...] = ("zero", "one", "two"), **options) -> Moving:
    picture = MovingDiagram(100, 60, "A & B", "one < two", frames=3, first=1)
    picture.part("rect", x=[0, 10.04, 20], y=5, width=10, height=10)
    picture.part("text", ["<a>", "b", "b"], x=10, y=40)
    buttons = [Button("Play", [2]), Button("Next", [1, 2], plays=False)]
    return Moving(picture, says, buttons=buttons, pace=0.05, **options)


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


def flow() -> Stages:
    return encoder_flow(TINY, ["[CLS]", "a", "b"])


FIGURES = {
    "small": small_moving,
    "machine": lambda: machine().moving(),
    "scrubber": scrubber,
    "flow": flow,
}


@pytest.fixture(params=FIGURES)
def figure(request) -> Moving | Stages:
    return FIGURES[request.param]()


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


def test_a_notebook_stores_a_still_picture_which_a_live_kernel_does_not_need(figure, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda made, **options: shown.append(made))
    figure._ipython_display_()
    still, moving = shown
    assert still == {"text/plain": repr(figure.picture), "image/svg+xml": figure.picture.svg()}
    assert moving == {"text/plain": repr(figure), "text/html": figure._repr_html_()}
    root = ET.fromstring(still["image/svg+xml"])
    attributes = {name for element in root.iter() if element is not root for name in element.attrib}
    assert not attributes & {"id", "class", "style", "href"}  # what GitHub takes out
    monkeypatch.setattr("spanbert_tutorial.figures.moving.kernel_is_live", lambda: True)
    figure._ipython_display_()
    assert shown[2:] == [moving]


# --- the masking machine ------------------------------------------------------------


def test_the_machine_masks_as_the_package_does():
    made = machine()
    for seed, one in enumerate(made.rounds):
        assert np.array_equal(
            one.span, SpanMasking().select(made.starts, np.random.default_rng(seed))
        )
        assert np.array_equal(
            one.token, TokenMasking().select(made.starts, np.random.default_rng(seed))
        )
        last = max(place for place, frame in enumerate(made.frames) if frame.round == seed)
        for shown, wanted in zip(
            made.hidden(made.frames[last]), (one.span, one.token), strict=True
        ):
            assert np.array_equal(shown, wanted)
    assert made.counts().sum() == len(made.draws)


def test_every_frame_of_the_machine_shows_the_masks_the_budget_and_the_draws():
    made = machine()
    html = made.moving()._repr_html_()
    data = stored(html)
    n = len(PIECES)
    draws = len(made.draws)
    for place, frame in enumerate(made.frames):
        parts = in_frame(data, place)
        squares = parts[:draws]
        parts = parts[draws:]
        assert [part["opacity"] for part in squares] == ["1"] * frame.counted + ["0"] * (
            draws - frame.counted
        )
        for mask in made.hidden(frame):
            cells = parts[: made.budget]
            count = parts[made.budget]
            tokens = parts[made.budget + 1 :][: 2 * n]
            assert sum(int(cell["fill-opacity"]) for cell in cells) == mask.sum()
            assert count["words"].startswith(f"{mask.sum()} tokens, ")
            assert [token["fill-opacity"] for token in tokens[::2]] == [
                str(int(one)) for one in mask
            ]
            assert [token["fill"] == "#fff" for token in tokens[1::2]] == mask.tolist()
            parts = parts[made.budget + 1 + 2 * n :]
        chips = [part["opacity"] for part in parts]
        assert len(chips) == draws and [i for i, chip in enumerate(chips) if chip == "1"] == (
            [] if frame.hanging is None else [frame.hanging]
        )


# --- the encoder's stages -----------------------------------------------------------


def test_the_stages_have_the_shapes_of_a_real_call():
    passed = []
    model = BertEncoder(TINY).eval()
    stages = flow().stages
    one = model.layers[0]
    for part in (
        model.embeddings,
        one.attention,
        one.attention_norm,
        one.expand,
        one.feed_forward_norm,
    ):
        part.register_forward_hook(lambda part, given, made: passed.append(made[0]))
    with torch.no_grad():
        passed.append(model(torch.zeros(1, 3, dtype=torch.long))[0])
        maps = one.attention.attention_probs(passed[0][None], None)
    assert [stage.name for stage in stages] == [
        "tokens",
        "embeddings",
        "attention",
        "add, LayerNorm",
        "feed-forward",
        "add, LayerNorm",
        "states",
    ]
    for stage, made in zip(stages[1:], passed, strict=True):
        assert shape(*made.shape) in stage.shapes
    assert (
        shape(*maps[0].shape) in stages[2].says
        and f"there are {len(model.layers)}" in stages[5].says
    )
    assert f"{TINY.vocab_size:,} in the vocabulary" in stages[0].says


# --- in a browser -------------------------------------------------------------------


@pytest.fixture
def browser_page(request, tmp_path) -> Iterator:
    """All figures on one page of the system's Chromium; the parameter asks for less motion."""
    from playwright.sync_api import sync_playwright

    from environment import find_chromium

    page_file = tmp_path / "page.html"
    made = [FIGURES[name]() for name in FIGURES]
    outputs = [
        f"<div><div>{one.picture.svg()}</div><div>{one._repr_html_()}</div></div>" for one in made
    ]
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{''.join(outputs)}", encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_context(
            reduced_motion=getattr(request, "param", "no-preference")
        ).new_page()
        page.complaints = []
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(page_file.as_uri())
        yield page
        assert page.complaints == []
        browser.close()


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
def test_a_stage_tells_by_pointing_by_tapping_and_by_keyboard(browser_page):
    root = browser_page.locator("[data-stages]")
    stages = flow().stages
    view = root.locator("[data-view]")
    shown = root.locator("[data-stage]")
    assert stages[2].says in view.inner_text() and not root.locator("li").first.is_visible()
    shown.nth(0).hover()
    assert stages[0].says in view.inner_text()
    shown.nth(4).click()
    assert stages[4].says in view.inner_text()
    browser_page.keyboard.press("ArrowUp")
    assert stages[5].says in view.inner_text()
    assert [stage.get_attribute("tabindex") for stage in shown.all()].index("0") == 5
    root.locator("summary").press("Enter")
    assert root.locator("li").first.is_visible()
