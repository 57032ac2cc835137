"""axe-core, the checker of the Web Content Accessibility Guidelines, finds nothing on any page
(of the API: on two), light or dark, on a telephone, and of every fourth on a wide screen."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # axe-core itself, which needs no network
from test_browser import NAMES, WIDE, new_tab, turn_to

pytestmark = pytest.mark.browser

TELEPHONE = {"width": 390, "height": 844}
EVERY_PAGE = [*(f"{name}.html" for name in NAMES), "search.html", "genindex.html"]
ON_A_WIDE_SCREEN = EVERY_PAGE[::4]  # it adds the same two columns to every page
# Code has one element a word, and formulas one a letter: as plain text they keep the time short.
PLAIN = """
() => {
  document.querySelectorAll('.highlight pre, dt.sig').forEach((code) => { code.textContent = code.textContent; });
  document.querySelectorAll('math, mjx-container').forEach((formula) => formula.replaceWith('x'));
  document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important; }</style>');
}
"""
FINDINGS = """
(found) => found.violations.flatMap((rule) => rule.nodes.map(
  (node) => `${rule.id}: ${node.target.join(' ')}: ${node.html.slice(0, 200)}`))
"""
RULES = {"color-contrast": {"enabled": False}, "label-content-name-mismatch": {"enabled": True}}
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
def page(browser) -> Iterator:
    """One tab for all pages."""
    opened = new_tab(browser)
    yield opened
    opened.context.close()


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    """The looks of text that were asked for, by theme."""
    return {"light": [], "dark": []}


@pytest.mark.parametrize("address", EVERY_PAGE)
def test_axe_finds_nothing(address, page, seen):
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(TELEPHONE)  # the theme makes tab stops of what scrolls as it opens
    turn_to(page, address)
    page.evaluate(PLAIN)
    page.evaluate(AXE_SCRIPT)
    for viewport in (TELEPHONE, WIDE) if address in ON_A_WIDE_SCREEN else (TELEPHONE,):
        page.set_viewport_size(viewport)
        found = page.evaluate(
            f"(rules) => axe.run({{rules, resultTypes: ['violations']}}).then({FINDINGS})", RULES
        )
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
