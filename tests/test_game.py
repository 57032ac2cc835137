"""Beat the boundary, Figure 1 by dragging, and links: what is stored, and what a reader does with
it."""

import json
import re

import pytest
from test_browser import visit

from environment import ROOT
from research import game
from spanbert_tutorial.bert.wordpiece import split_words
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures import try_it
from spanbert_tutorial.figures.try_it import GAME, SPAN, figure_one

PHONE = {"width": 390, "height": 800}
TRY_IT = "book/workshop/try_it.html"


# --- the stored rounds --------------------------------------------------------------


def test_the_rounds_are_those_that_the_program_draws_from_the_reader():
    kept = try_it.game().data
    drawn = [{key: one[key] for key in ("title", "text", "masked")} for one in kept["rounds"]]
    assert drawn == game.draw_rounds() and len(drawn) == game.ROUNDS
    assert {key: kept[key] for key in game.SOURCE} == game.SOURCE
    assert data_path(GAME).stat().st_size <= 100_000


def test_the_stored_predictions_are_the_checkpoint_s():
    """Other processors give other digits, and may swap two tokens of the same probability."""
    for one in try_it.game().data["rounds"]:
        for view, heads in game.predict(one).items():
            for head, rows in heads.items():
                for now, row in zip(rows, one[view][head], strict=True):
                    assert [p for _, p in now] == pytest.approx([p for _, p in row], abs=0.003)
                    assert now[0][0] == row[0][0] or now[0][1] - now[1][1] < 0.003


def test_the_page_says_how_often_each_head_wins():
    rounds = try_it.game().data["rounds"]
    page = " ".join((ROOT / "book" / "workshop" / "try_it.md").read_text(encoding="utf-8").split())
    near, whole = (
        {head: game.wins(rounds, view, head) for head in game.HEADS} for view in ("near", "whole")
    )
    assert (
        f"the SBO head of `spanbert-mini` predicts {near['sbo']} of the {len(rounds)} spans and "
        f"its MLM head {near['mlm']}." in page
    )
    assert f"it predicts {whole['sbo']} spans (the MLM head {whole['mlm']})" in page


def test_figure_one_has_every_span_with_two_neighbors():
    data = figure_one().data
    n = len(data["words"])
    spans = {f"{first}-{last}" for first in range(1, n - 1) for last in range(first, n - 1)}
    assert data["predictions"].keys() == spans and len(spans) == 55
    for span, heads in data["predictions"].items():
        first, last = map(int, span.split("-"))
        assert len(heads["mlm"]) == len(heads["sbo"]) == last - first + 1
    assert [data["words"][i] for i in range(SPAN[0], SPAN[1] + 1)] == [
        ["an"],
        ["American"],
        ["football"],
        ["game"],
    ]


# --- in a browser -------------------------------------------------------------------


def play(part, guess: str) -> None:
    part.get_by_label("missing").fill(guess)
    part.get_by_label("missing").press("Enter")


@pytest.fixture
def opened(browser):
    """Opens an address of the book; the page may not complain."""
    pages = []

    def open_page(address: str):
        pages.append(visit(browser, address))
        pages[-1].set_default_timeout(60_000)
        return pages[-1]

    yield open_page
    for page in pages:
        assert page.complaints == []
        page.context.close()


@pytest.mark.browser
def test_ten_rounds_by_keyboard_a_score_and_a_card(opened):
    page = opened(f"{TRY_IT}#widget=game&seed=3")
    part = page.locator("[data-try=game]")
    by_text = {one["text"]: one for one in try_it.game().data["rounds"]}
    rounds, right = [], 4
    for number in range(10):
        assert part.locator(".mask").first.inner_text() == "[MASK]"
        assert part.locator(".game-sentence b").count() == 2  # all that can be read
        assert part.get_by_role("status").first.inner_text().startswith(f"Round {number + 1}: ")
        # the sentence cannot be read here, so it is found by what is lit after the guess
        play(part, "?")
        answer = part.locator(".mask").all_inner_texts()
        part.get_by_role("button", name="read the sentence").press("Enter")
        one = by_text[part.locator(".game-sentence").inner_text()]
        first, last = one["masked"]
        assert split_words(one["text"])[first : last + 1] == answer
        shown = part.locator("td").first.inner_text().split()
        token, p = one["whole"]["sbo"][0][0]
        assert shown[0] == token and float(shown[1]) == pytest.approx(p, abs=0.006)
        assert "With the whole sentence: SBO head" in part.get_by_role("status").first.inner_text()
        rounds.append(one)
        if number < 9:
            page.keyboard.press("Enter")  # the button for the next round has the focus
    texts = [one["text"] for one in rounds]
    assert len(set(texts)) == 10
    page.goto("about:blank")
    page.go_back()
    page.reload()
    for number, one in enumerate(rounds):  # the link has the same ten rounds
        first, last = one["masked"]
        words = split_words(one["text"])[first : last + 1]
        play(part, " ".join(words).upper() if number < right else "wrong")
        if number < 9:
            page.keyboard.press("Enter")
    card = part.locator("pre").inner_text()
    sbo, mlm = (game.wins(rounds, "near", head) for head in ("sbo", "mlm"))
    assert card.startswith(f"Beat the boundary: you {right}, SBO {sbo}, MLM {mlm} of 10")
    assert card.count("🟦") == right + sbo + mlm
    sbo, mlm = (game.wins(rounds, "whole", head) for head in ("sbo", "mlm"))
    assert card.endswith(f"With the whole sentence: SBO {sbo}, MLM {mlm}")
    with page.expect_download() as saved:
        part.get_by_role("button", name="picture").click()
    assert saved.value.suggested_filename == "beat_the_boundary.png"


@pytest.mark.browser
def test_without_scripts_the_game_is_a_sentence(browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{ROOT.as_uri()}/_build/html/{TRY_IT}")
    part = page.locator("[data-try=game]")
    assert "Which words are missing?" in part.inner_text() and part.locator("input").count() == 0
    page.context.close()


@pytest.mark.browser
def test_figure_one_by_mouse_touch_keyboard_and_link(opened, browser):
    page = opened("book/welcome.html")
    part = page.locator("[data-try=figure-one]")
    words = part.locator(".try-words button")
    sbo = part.locator(".one-card.one-sbo")
    assert "x₄ (was), x₉ (to) and p₃: third in the span" in part.inner_text()
    words.nth(1).scroll_into_view_if_needed()
    words.nth(1).hover()
    page.mouse.down()
    words.nth(2).hover()
    words.nth(3).hover()
    page.mouse.up()
    pressed = part.locator(".try-words [aria-pressed=true]")
    assert pressed.all_text_contents() == ["Bowl", "50", "was"]
    assert "x₁ (Super), x₅ (an) and p₂" in part.inner_text()
    rows = figure_one().data["predictions"]["1-3"]["mlm"][1]
    assert rows[0][0] in part.locator(".one-card.one-mlm").inner_text()
    words.nth(5).press("Enter")
    words.nth(8).press("Enter")
    assert pressed.all_text_contents() == ["American", "football", "game", "to"]
    part.get_by_role("button", name="to", exact=True).click()
    assert "p₄: fourth" in part.inner_text() and sbo.count() == 1
    page.evaluate("navigator.clipboard.writeText = async (text) => (window.copied = text)")
    part.get_by_role("button", name="Copy link").click()
    link = page.evaluate("window.copied")
    assert link.endswith("welcome.html#widget=figure-one&m=6%2C7%2C8%2C9&at=4")
    other = opened("book/welcome.html#" + link.split("#")[1])
    part = other.locator("[data-try=figure-one]")
    assert "x₅ (an), x₁₀ (determine) and p₄" in part.inner_text()

    phone = browser.new_context(viewport=PHONE, has_touch=True).new_page()
    phone.goto(f"{ROOT.as_uri()}/_build/html/book/welcome.html")
    part = phone.locator("[data-try=figure-one]")
    for place in (3, 4):  # tap the first word, tap the last
        part.locator(".try-words button").nth(place).tap()
    assert "x₃ (50), x₆ (American)" in part.inner_text()
    phone.context.close()


LINKS = {  # page and link → the part, and what it then shows
    f"{TRY_IT}#widget=hide&s=A+dog+is+not+a+cat.&m=2,5-6&model=spanbert-tiny": (
        "[data-try=hide]",
        "MLM head:",
    ),
    f"{TRY_IT}#widget=ask&q=What+is+red%3F&s=The+gate+is+red.&at=-2": ("[data-try=ask]", "−2.0"),
    "book/spanbert/span_masking.html#widget=figure1&frame=2": ("[data-moving]", "Draw 1 of"),
    "book/bert/pretraining.html#widget=figure1&frame=3": ("[data-moving]", "Step 150"),
    "book/spanbert/span_masking.html#widget=panels1&at=1-0-2": ("[data-explorer]", "broken words:"),
}


@pytest.mark.browser
@pytest.mark.parametrize("link", LINKS)
def test_a_link_restores_the_part_that_it_names(opened, link):
    page = opened(link)
    name, text = LINKS[link]
    part = page.locator(name).first
    part.get_by_text(re.compile(re.escape(text))).first.wait_for()
    if "hide" in link:
        shown = part.locator(".try-words [aria-pressed=true]").all_text_contents()
        assert [word.replace("##", "") for word in shown] == ["dog", "a", "cat"]
    # and gives the same link again
    page.evaluate("navigator.clipboard.writeText = async (text) => (window.copied = text)")
    part.get_by_role("button", name="Copy link").click()
    given = page.evaluate("Object.fromEntries(new URLSearchParams(window.copied.split('#')[1]))")
    asked = page.evaluate(
        "(link) => Object.fromEntries(new URLSearchParams(link))", link.split("#")[1]
    )
    assert json.dumps(given) == json.dumps(asked)


@pytest.mark.browser
@pytest.mark.parametrize("address", [TRY_IT, "book/welcome.html", "book/bert/pretraining.html"])
def test_a_finger_finds_every_control_on_a_phone(opened, address):
    page = opened(address)
    page.set_viewport_size(PHONE)
    parts = ":is([data-try], [data-explorer], [data-moving])"
    for control in page.locator(f"{parts} :is(button, select, input, textarea)").all():
        if control.is_visible():
            assert control.bounding_box()["height"] >= 40, control.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for field in page.locator(f"{parts} textarea").all():  # a whole sentence can be read in it
        assert field.evaluate(
            "one => one.scrollHeight <= one.clientHeight + 2 && one.scrollWidth <= one.clientWidth"
        )


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_first_click_moves_nothing_below(opened, width):
    page = opened("book/welcome.html")
    page.set_viewport_size({"width": width, "height": 800})
    part = page.locator("[data-try=hide]")
    high = part.bounding_box()["height"]
    words = part.locator(".try-words button")
    words.nth(5).click()
    words.nth(5).click()  # the same words as before are masked again
    part.get_by_role("status").filter(has_text="MLM head").first.wait_for()
    assert abs(part.bounding_box()["height"] - high) <= 2
