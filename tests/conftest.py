"""What several test files share: sums on the CPU in float32, the browser, a vocabulary."""

from collections.abc import Iterator

import pytest
from accelerate.state import AcceleratorState

from environment import find_chromium
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text


@pytest.fixture
def on_the_processor(monkeypatch):
    """Accelerate takes a graphics card where there is one; numbers are compared on the CPU in
    float32."""
    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setattr("spanbert_tutorial.engine.device.precision", lambda: "no")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="session")
def wordpiece() -> WordPiece:
    """The almanac's vocabulary."""
    return WordPiece.from_file(data_path("almanac", "vocab.txt"))


@pytest.fixture(scope="session")
def almanac_text(tmp_path_factory) -> EncodedText:
    """The almanac, encoded."""
    return open_text("almanac", tmp_path_factory.mktemp("almanac"))


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """The system's Chromium, started once for a file."""
    from playwright.sync_api import sync_playwright

    chromium = find_chromium()
    if chromium is None:
        pytest.fail(
            "No Chromium was found, and SPANBERT_TUTORIAL_BROWSER asks for one: install `chromium`."
        )
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()
