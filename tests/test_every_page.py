"""Every page of the book (of the API: two) in a real browser, opened from the disk: it opens without
a complaint, fits every width, and axe-core, the checker of the Web Content Accessibility
Guidelines, finds nothing, light or dark, on a telephone, and of every fourth on a wide screen."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # axe-core itself, which needs no network
from test_browser import NAMES, NARROW, WIDE, new_tab, turn_to

pytestmark = pytest.mark.browser

TELEPHONE = {"width": 390, "height": 800}
WIDTHS = (1280, 1600, 768, 360, 390)  # from that at which a page is opened to the telephone's
EVERY_PAGE = [*NAMES, "search", "genindex"]
ON_A_WIDE_SCREEN = EVERY_PAGE[::4]  # it adds the same two columns to every page
# page → for each of its explorers the number of choices
EXPLORERS = {
    "book/bert/wordpiece": [3],
    "book/bert/bert": [3],
    "book/spanbert/span_masking": [3],
    "book/spanbert/name_ranks": [2],
    "book/tasks/question_answering": [2],
    "book/tasks/coreference": [1],
}


@pytest.fixture(scope="module")
def tab(browser) -> Iterator:
    """One tab for all pages: it opens them faster than new ones would."""
    opened = new_tab(browser)
    yield opened
    opened.context.close()


@pytest.fixture(scope="module", params=EVERY_PAGE)
def page(request, tab):
    """Each page in turn, opened once, for one test after the other: the first four leave it as they
    found it, the next ends with the width of a telephone, and the last leaves no formulas."""
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size(WIDE)
    turn_to(tab, f"{request.param}.html")
    tab.name = request.param
    return tab


def test_a_page_opens_without_a_complaint(page):
    assert page.complaints == []
    assert page.locator(".bd-article h1").count() == (page.name != "search")


def test_explorers_switch_their_panels(page):
    explorers = page.locator("[data-explorer]").all()
    there = sorted(explorer.locator("select").count() for explorer in explorers)
    assert there == EXPLORERS.get(page.name, [])
    for explorer in explorers:
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


# The lines of the prose as the browser breaks them, without those that hold a formula.
LINES = """
() => {
  const lines = [];
  for (const part of document.querySelectorAll('.bd-article section > p, .bd-article li, .bd-article .admonition p')) {
    if (part.closest('table, nav, [data-try]') || part.querySelector('math, p, ul, pre')) continue;
    if (!part.checkVisibility()) continue;
    const words = document.createTreeWalker(part, NodeFilter.SHOW_TEXT), range = document.createRange();
    let low = NaN, line = '';
    while (words.nextNode()) {
      for (let i = 0; i < words.currentNode.data.length; i++) {
        range.setStart(words.currentNode, i);
        range.setEnd(words.currentNode, i + 1);
        const box = range.getClientRects()[0];
        if (!box) continue;
        if (box.top > low) { lines.push(line); line = ''; }
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


def test_a_page_fits_every_width(page):
    """It never scrolls sideways; on a telephone, tables that do are reached by keyboard, and
    diagrams fit; a line of prose has at most 80 characters; the code that a reader is to read fits a
    screen of 1,280 pixels beside the open contents."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} pixels at {width}"
        if width == NARROW["width"]:
            assert page.evaluate(CANNOT_BE_REACHED) == 0
            for drawing in page.locator("svg.diagram:visible").all():
                assert drawing.locator("> title").count() == drawing.locator("> desc").count() == 1
                assert drawing.bounding_box()["width"] <= width
        if width >= WIDE["width"]:
            assert [line for line in page.evaluate(LINES) if len(line) > 80] == []
        if width == WIDE["width"]:
            assert page.evaluate(CUT_OFF) == []


# Code has one element a word, and formulas one a letter: as plain text they keep the time short. An
# underlined link is told from its text, so axe need not compare their colors. The theme makes tab
# stops of what scrolls 0.3 s after a change.
PLAIN = """
() => {
  document.querySelectorAll('.highlight pre, dt.sig').forEach((code) => { code.textContent = code.textContent; });
  document.querySelectorAll('math, mjx-container').forEach((formula) => formula.replaceWith('x'));
  document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important; }</style>');
  for (const link of document.querySelectorAll('a[href], [role=link]')) {
    const line = (element) => getComputedStyle(element).textDecorationLine;
    link.toggleAttribute('data-underlined', line(link) != line(link.parentElement));
  }
  window.settled = new Promise((done) => setTimeout(done, 350));
}
"""
ONLY_OTHER_LINKS = """
axe.configure({rules: [{
  id: 'link-in-text-block',
  selector: 'a[href]:not([role], [data-underlined]), [role=link]:not([data-underlined])',
}]})
"""
FINDINGS = """
(found) => found.violations.flatMap((rule) => rule.nodes.map(
  (node) => `${rule.id}: ${node.target.join(' ')}: ${node.html.slice(0, 200)}`))
"""
OPTIONS = {
    "rules": {
        "color-contrast": {"enabled": False},
        "label-content-name-mismatch": {"enabled": True},
    },
    "resultTypes": ["violations"],
    "preload": {"assets": ["media"]},  # of style sheets, only rules that are off would read more
}
# Of all elements with text that look alike, in the whole book, one is asked for its contrast.
CONTRAST = """
async (seen) => {
  const looks = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element), look = [style.color, style.fill, style.fontSize, style.fontWeight];
    for (let behind = element; behind; behind = behind.parentElement) {
      const {backgroundColor, opacity} = getComputedStyle(behind);
      if (opacity != 1) look.push(opacity);
      if (backgroundColor != 'rgba(0, 0, 0, 0)') look.push(backgroundColor);
    }
    if (!seen.includes(look.join())) looks.set(look.join(), element);
  }
  const rule = {runOnly: ['color-contrast'], resultTypes: ['violations']};
  const found = looks.size ? await axe.run({include: [...looks.values()]}, rule) : {violations: []};
  return [[...looks.keys()], found];
}
"""


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    """The looks of text that were asked for, by theme."""
    return {"light": [], "dark": []}


def test_axe_finds_nothing(page, seen):
    page.set_viewport_size(TELEPHONE)
    page.evaluate(PLAIN)
    page.evaluate(AXE_SCRIPT + ONLY_OTHER_LINKS)
    page.evaluate("settled")
    for viewport in (TELEPHONE, WIDE) if page.name in ON_A_WIDE_SCREEN else (TELEPHONE,):
        page.set_viewport_size(viewport)
        found = page.evaluate(f"(options) => axe.run(options).then({FINDINGS})", OPTIONS)
        assert not found, f"{viewport}\n" + "\n".join(found)
    page.set_viewport_size(WIDE)
    for theme, looks in seen.items():
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(
            f"document.documentElement.dataset.theme == '{theme}'", timeout=5_000
        )
        new, found = page.evaluate(
            f"(seen) => ({CONTRAST})(seen).then(([new_, found]) => [new_, ({FINDINGS})(found)])",
            looks,
        )
        looks += new
        assert not found, f"{theme}\n" + "\n".join(found)
