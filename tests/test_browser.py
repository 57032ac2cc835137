"""The built pages in a real browser, opened from the disk, with nothing to be had from the
network."""

import re
from collections.abc import Iterator

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
WIDTHS = (360, 390, 768, 1280, 1600)


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


@pytest.fixture(scope="module")
def tab(browser) -> Iterator:
    """One tab for all pages: it opens them faster than new ones would."""
    opened = new_tab(browser)
    yield opened
    opened.context.close()


@pytest.fixture(scope="module", params=NAMES)
def page(request, tab):
    """Each page of the book in turn, opened once; every test puts it into the state that it
    needs."""
    turn_to(tab, f"{request.param}.html")
    return tab


def test_a_page_opens_without_a_complaint(page):
    assert page.complaints == []
    assert page.locator(".bd-article h1").count() == 1


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


# The lines of the prose as the browser breaks them, without those that hold a formula.
LINES = """
() => {
  const lines = [];
  for (const part of document.querySelectorAll('.bd-article section > p, .bd-article li, .bd-article .admonition p')) {
    if (part.closest('table, nav, [data-try]') || part.querySelector('math, p, ul, pre')) continue;
    if (!part.checkVisibility()) continue;
    const words = document.createTreeWalker(part, NodeFilter.SHOW_TEXT), range = document.createRange();
    let low = -1, line = '';
    while (words.nextNode()) {
      for (let i = 0; i < words.currentNode.data.length; i++) {
        range.setStart(words.currentNode, i);
        range.setEnd(words.currentNode, i + 1);
        const box = range.getClientRects()[0];
        if (!box) continue;
        if (low >= 0 && box.top > low) { lines.push(line); line = ''; }
        low = box.bottom;
        line += words.currentNode.data[i];
      }
    }
    lines.push(line);
  }
  return lines.map((one) => one.trim());
}
"""


CANNOT_BE_REACHED = """
[...document.querySelectorAll('.bd-article table')].filter(
  (one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1 && one.tabIndex < 0).length
"""
CUT_OFF = """
[...document.querySelectorAll('.bd-article .cell:not(:has(details.fold)) .cell_input pre')].filter(
  (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)
"""
# Lowest edge of what must be seen at once, in pixels: (viewport, first control, buttons).
FIRST_SCREEN = {"screen": (WIDE, 560, 760), "telephone": ({"width": 390, "height": 844}, 700, 1100)}


def test_a_page_fits_every_width(page):
    """It never scrolls sideways; on a telephone, tables that do are reached by keyboard, and
    diagrams fit; a line of prose has at most 80 characters; the code that a reader is to read fits a
    screen of 1,280 pixels beside the open contents."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels at {width}"
        if width == WIDTHS[0]:
            assert page.evaluate(CANNOT_BE_REACHED) == 0
            for drawing in page.locator("svg.diagram:visible").all():
                assert drawing.locator("> title").count() == drawing.locator("> desc").count() == 1
                assert drawing.bounding_box()["width"] <= width
        if width >= WIDE["width"]:
            assert [line for line in page.evaluate(LINES) if len(line) > 80] == []
        if width == WIDE["width"]:
            assert page.evaluate(CUT_OFF) == []
    page.set_viewport_size(WIDE)


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


def test_explorers_switch_their_panels(page):
    for explorer in page.locator("[data-explorer]").all():
        view = explorer.locator("[data-view]")
        for select in explorer.locator("select").all():
            assert select.is_visible()
            before = view.inner_html()
            select.select_option(index=select.locator("option").count() - 1)
            assert view.inner_html() != before
            select.select_option(index=0)
            assert view.inner_html() == before
    assert page.complaints == []


def test_explorers_switch_by_keyboard(page):
    """Tab goes from one choice of an explorer to the next, and the keys of a list choose in
    each."""
    for explorer in page.locator("[data-explorer]").all():
        view = explorer.locator("[data-view]")
        selects = explorer.locator("select").all()
        selects[0].focus()
        for number, select in enumerate(selects):
            if number:
                page.keyboard.press("Tab")
            assert select.evaluate("one => one === document.activeElement")
            assert select.evaluate("one => getComputedStyle(one).outlineStyle") != "none"
            before = view.inner_html()
            page.keyboard.press("End")
            assert view.inner_html() != before
            page.keyboard.press("Home")
            assert view.inner_html() == before
    assert page.complaints == []


def test_folded_code_is_one_quiet_line_that_opens(page):
    """Every fold is closed, stands on one line of its size, and opens by a click and by a key."""
    folds = page.locator(".bd-article details.fold")
    assert folds.evaluate_all("all => all.filter(one => one.open).length") == 0
    for fold in (folds.first, folds.last) if folds.count() else ():
        line = fold.locator("summary")
        code = fold.locator("pre").first
        assert not code.is_visible() and fold.bounding_box()["height"] < 40
        line.click()
        assert code.is_visible()
        line.press("Enter")
        assert not code.is_visible()


def test_on_paper_solutions_are_open_and_the_rest_is_quiet(browser):
    page = visit(browser, "book/tasks/real_questions.html")
    page.emulate_media(media="print")
    assert page.locator("details.fold-hide-input > .cell_input pre").first.is_visible()
    assert page.locator("details.fold-hide-input > .cell_output").first.is_visible()
    assert not page.locator(":is(.fold-plumbing, .fold-colab-setup) > summary:visible").count()
    page.context.close()


# page → for each of its explorers the number of choices
EXPLORERS = {
    "bert/wordpiece": [3],
    "bert/bert": [3],
    "spanbert/span_masking": [3],
    "spanbert/name_ranks": [2],
}


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_page_has_its_explorers(browser, name):
    """The switching is tested on every explorer there is; these have to be there."""
    page = visit(browser, f"book/{name}.html")
    there = [
        explorer.locator("select").count() for explorer in page.locator("[data-explorer]").all()
    ]
    page.context.close()
    assert sorted(there) == sorted(EXPLORERS[name])


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
