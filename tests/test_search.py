"""The search of the built book, opened from the disk: terms of the glossary find their page, with
an excerpt."""

import re

import pytest
from test_browser import browser, visit  # noqa: F401  browser is a fixture

pytestmark = pytest.mark.browser

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
