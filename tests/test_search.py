"""The search of the built book, opened from the disk: terms of the glossary find their page, with
an excerpt."""

import re

import pytest
from page_links import BOOK
from test_browser import browser, visit  # noqa: F401  browser is a fixture

import book_extension

pytestmark = pytest.mark.browser

GLOSSARY = (BOOK / "workshop" / "glossary.md").read_text(encoding="utf-8")
# what a reader may look for → the page that explains it
WANTED = {
    "SBO": "spanbert/boundary",
    "span boundary objective": "spanbert/boundary",
    "boundary token": "spanbert/boundary",
    "WordPiece": "bert/wordpiece",
    "80/10/10": "bert/masking",
    "plateau": "bert/pretraining",
    "next sentence prediction": "bert/sentence_pairs",
    "null odds": "tasks/question_answering",
    "byte-level BPE": "relatives/roberta",
    "BIO tags": "tasks/classification",
    "경계 토큰": "spanbert/boundary",
}


def found(page, term: str) -> list[str]:
    """The pages that the search shows for the term, best first."""
    page.goto(re.sub(r"\?.*|$", f"?q={term}", page.url, count=1))
    page.wait_for_function(
        "document.querySelector('#search-results .search-summary')?.innerText", timeout=20_000
    )
    links = page.locator("#search-results > ul.search > li > a").evaluate_all(
        "all => all.map(one => one.href)"
    )
    return [re.search(r"/html/(?:book/)?(.*?)\.html", link)[1] for link in links]


@pytest.fixture(scope="module")
def page(browser):  # noqa: F811
    """One tab for all searches."""
    opened = visit(browser, "search.html")
    yield opened
    opened.context.close()


@pytest.mark.parametrize("term", WANTED)
def test_a_term_finds_its_page_first_or_second(term, page):
    assert WANTED[term] in found(page, term)[:2]


def test_what_is_found_has_an_excerpt_and_nothing_is_blocked(page):
    assert found(page, "plateau")[0] == "bert/pretraining"
    excerpt = page.locator("#search-results p.context").first
    excerpt.wait_for(timeout=10_000)
    assert len(excerpt.inner_text()) > 40
    assert page.complaints == []


def test_the_glossary_names_a_page_for_every_term():
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, re.MULTILINE)
    assert [term for term, *_ in book_extension.ROW.findall(GLOSSARY)] == terms and len(terms) > 90
