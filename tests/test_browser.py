"""The built pages in a real browser, opened from the disk, with nothing to be had from the
network."""

import re

import pytest

import pdf
from environment import ROOT
from pages import PAGES

pytestmark = pytest.mark.browser

EVERY = re.findall(
    r"(?m)^[\s-]*(?:root|file):\s*(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8")
)
# The pages of the API are made of one mold: a short one and a long one stand for all.
API = [name for name in EVERY if "/api/" in name]
NAMES = [name for name in EVERY if name not in API[1:-1]]
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1280, "height": 800}


def new_tab(browser, viewport: dict[str, int] = WIDE):
    """An empty tab. Its `complaints` are the errors of the page, and every try to reach the
    network."""
    page = browser.new_context(viewport=viewport, color_scheme="light", offline=True).new_page()
    page.complaints = []

    def note_request(request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            page.complaints.append(f"asks the network for {request.url}")

    page.on("request", note_request)
    # A picture for the tab may still be on its way when a test goes to the next page.
    page.on(
        "requestfailed",
        lambda request: (
            request.failure == "net::ERR_ABORTED"
            or page.complaints.append(f"cannot load {request.url}")
        ),
    )
    page.on(
        "console",
        lambda message: page.complaints.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    return page


def turn_to(page, address: str) -> None:
    """Open a page of the book from the disk in a tab."""
    if not (PAGES / "index.html").is_file():
        pytest.fail("There are no built pages to look at: run `make book` first.")
    page.complaints.clear()
    page.goto(f"{PAGES.as_uri()}/{address}")
    page.wait_for_load_state("load")
    page.evaluate("async () => { if (window.MathJax) await window.MathJax.startup.promise; }")


def visit(browser, address: str, viewport: dict[str, int] = WIDE):
    """A page in a tab of its own, without what another page has stored."""
    page = new_tab(browser, viewport)
    turn_to(page, address)
    return page


def test_every_page_is_light():
    """Ready in about three seconds on a processor four times slower. What it costs is counted, as a
    busy machine has other seconds: the heaviest has 10,000 tags, another 270 kB of scripts."""
    for name in EVERY:
        path = PAGES / f"{name}.html"
        source = path.read_text(encoding="utf-8")
        scripts = re.findall(r'<script[^>]* src="([^"?]+)', source)
        assert sum((path.parent / script).stat().st_size for script in scripts) < 320_000, name
        assert len(re.findall("<[a-z]", source)) < 12_000, name


def test_links_of_the_print_lead_to_what_is_printed():
    print_ = pdf.whole_book()
    ids = set(re.findall(r'\bid="([^"]*)"', print_))
    links = re.findall(r'\bhref="#([^"]*)"', print_)
    assert len(links) > 1000 and set(links) <= ids


# Lowest edge of what must be seen at once, in pixels: (viewport, first control, buttons).
FIRST_SCREEN = {"screen": (WIDE, 560, 760), "telephone": ({"width": 390, "height": 844}, 700, 1100)}


@pytest.mark.parametrize("name", FIRST_SCREEN)
def test_the_first_screen_has_something_to_press_and_a_way_to_start(browser, name):
    viewport, control, buttons = FIRST_SCREEN[name]
    page = visit(browser, "book/welcome.html", viewport)

    def low(locator) -> float:
        box = locator.bounding_box()
        return box["y"] + box["height"]

    assert low(page.locator("[data-try] button").first) <= control
    starts = page.locator(".starts a")
    assert starts.all_inner_texts() == ["Try it", "Read it on one page", "Start with chapter 1"]
    assert sum(low(link) <= buttons for link in starts.all()) >= 2
    tally = page.locator(".checked").inner_text()
    assert int(re.search(r"([\d,]+) numbers", tally)[1].replace(",", "")) > 500
    if name == "screen":
        assert low(page.locator(".checked")) <= 800
    assert page.complaints == []
    page.context.close()


def test_the_demo_makes_a_first_move_unless_motion_is_unwelcome(browser):
    opening = "document.querySelector('.try').classList.contains('try-opening')"
    pressed = "[data-try=hide] .try-words button[aria-pressed=true]"
    page = visit(browser, "book/welcome.html")
    page.wait_for_function(f"!{opening}", timeout=5_000)
    assert page.locator(pressed).count() == 3
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.wait_for_selector(pressed)
    assert not page.evaluate(opening)
    page.context.close()


def test_the_routes_stand_beside_one_another_or_below(browser):
    page = visit(browser, "book/welcome.html")
    cards = page.locator(".routes > ul > li")
    assert len({card.bounding_box()["y"] for card in cards.all()}) == 1 and cards.count() == 3
    page.set_viewport_size(NARROW)
    assert len({card.bounding_box()["x"] for card in cards.all()}) == 1
    cards.first.get_by_role("link", name="Span masking").click()
    page.wait_for_url("**/book/spanbert/span_masking.html", timeout=10_000)
    sign = page.get_by_role("navigation", name="Where you are on the road")
    sign.get_by_role("link", name="Masked language modeling").press("Enter")
    page.wait_for_url("**/book/bert/masking.html", timeout=10_000)
    assert page.complaints == []
    page.context.close()


def test_on_paper_solutions_are_open_and_the_rest_is_quiet(browser):
    page = visit(browser, "book/tasks/real_questions.html")
    page.emulate_media(media="print")
    assert page.locator("details.fold-hide-input > .cell_input pre").first.is_visible()
    assert page.locator("details.fold-hide-input > .cell_output").first.is_visible()
    assert not page.locator(":is(.fold-plumbing, .fold-colab-setup) > summary:visible").count()
    page.context.close()


# page → what moves there: buttons and a slider, or stages to point at
MOVING = {
    "spanbert/span_masking": "[data-moving] button",
    "bert/pretraining": "[data-moving] input",
}


@pytest.mark.parametrize("name", MOVING)
def test_a_figure_moves_by_keyboard_in_place_of_its_still_picture(browser, name):
    """What it then shows is tested with the figure; here it stands in a page of the book."""
    page = visit(browser, f"book/{name}.html")
    figure = page.locator("[data-moving]").first
    words = figure.locator("[data-says]").first
    before = words.inner_text()
    title = figure.locator("svg > title").text_content()
    key = {"input": "End", "button": "Enter"}[MOVING[name].split()[-1]]
    page.locator(MOVING[name]).first.press(key)
    page.wait_for_function(
        "([one, before]) => one.innerText != before", arg=[words.element_handle(), before]
    )
    same = page.locator("svg.diagram", has=page.locator(f"title:text-is('{title}')"))
    assert [one.is_visible() for one in same.all()] == [False, True]
    assert page.complaints == []
