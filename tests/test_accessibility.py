"""axe-core, the checker of the Web Content Accessibility Guidelines, finds nothing on any page, light or dark."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT  # axe-core itself, which needs no network
from test_browser import NAMES, WIDE, browser  # noqa: F401  a fixture

from pages import PAGES

pytestmark = pytest.mark.browser

EVERY_PAGE = [*(f"{name}.html" for name in NAMES), "search.html", "genindex.html"]
# Code has one element a word, and formulas one a letter: as plain text they keep the time of all pages in a minute.
PLAIN = """
() => {
  document.querySelectorAll('.highlight pre, dt.sig').forEach((code) => { code.textContent = code.textContent; });
  document.querySelectorAll('mjx-container').forEach((formula) => formula.remove());
  document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important; }</style>');
}
"""
FINDINGS = """
(found) => found.violations.flatMap((rule) => rule.nodes.map(
  (node) => `${rule.id}: ${node.target.join(' ')}: ${node.html.slice(0, 200)}`))
"""
RULES = {"color-contrast": {"enabled": False}, "label-content-name-mismatch": {"enabled": True}}
# Of all elements with text that look alike, one is asked for its contrast: where it stands makes no difference.
CONTRAST = """
() => {
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
    if (!looks.has(look.join())) looks.set(look.join(), element);
  }
  return axe.run({include: [...looks.values()]}, {runOnly: ['color-contrast'], resultTypes: ['violations']});
}
"""


@pytest.fixture(scope="module")
def page(browser) -> Iterator:  # noqa: F811
    """One tab for all pages."""
    opened = browser.new_context(viewport=WIDE, offline=True)
    yield opened.new_page()
    opened.close()


@pytest.mark.parametrize("address", EVERY_PAGE)
def test_axe_finds_nothing(address, page):
    page.emulate_media(color_scheme="light")
    page.goto(f"{PAGES.as_uri()}/{address}")
    page.wait_for_load_state("load")
    page.evaluate(PLAIN)
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(f"(rules) => axe.run({{rules, resultTypes: ['violations']}}).then({FINDINGS})", RULES)
    assert not found, "\n".join(found)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(f"document.documentElement.dataset.theme == '{theme}'", timeout=5_000)
        found = page.evaluate(f"() => ({CONTRAST})().then({FINDINGS})")
        assert not found, f"{theme}\n" + "\n".join(found)
