"""The search of the built pages, in a real browser: what readers ask, and the page that has to be
among the first three."""

import pytest
from test_browser import visit

pytestmark = pytest.mark.browser

# what a reader types → the page that must be among the first three
QUESTIONS = {
    "fine-tune on my own data": "workshop/your_own_data",
    "OOM": "workshop/faq",
    "out of memory": "workshop/faq",
    "coreference": "tasks/coreference",
    "masking": "bert/masking",
    "span masking": "spanbert/span_masking",
    "SpanBERT vs BERT": "welcome|one_page|workshop/what_we_found|spanbert/pretraining_spanbert",
    "SBO": "spanbert/boundary",
    "boundary objective": "spanbert/boundary",
    "next sentence prediction": "bert/sentence_pairs",
    "WordPiece": "bert/wordpiece",
    "attention": "bert/bert",
    "pretraining": "bert/pretraining",
    "relation extraction TACRED": "tasks/relation_extraction",
    "SQuAD F1": "tasks/squad",
    "question answering": "tasks/question_answering",
    "NER": "tasks/classification",
    "named entity recognition": "tasks/classification",
    "geometric distribution": "spanbert/span_masking",
    "RoBERTa": "relatives/roberta",
    "glossary": "workshop/glossary",
    "gpu": "workshop/engine|workshop/faq|workshop/your_own_data",
    "가림 언어 모형": "bert/masking",
}


@pytest.fixture(scope="module")
def search(browser):
    """The search page, opened once."""
    page = visit(browser, "search.html")
    yield page
    page.context.close()


def results(page, question: str) -> list[str]:
    """The addresses that a question brings, the best first; the API's are not among them."""
    page.locator("main input[name=q]").fill(question)
    links = page.locator("#search-results > ol > li > a")
    return links.evaluate_all("all => all.map((one) => one.getAttribute('href').split('#')[0])")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_finds_its_page_among_the_first_three(search, question):
    first = [
        address.removeprefix("book/").removesuffix(".html")
        for address in results(search, question)[:3]
    ]
    assert {*QUESTIONS[question].split("|")} & {*first}, first


def test_the_reference_of_the_api_is_folded_below_the_chapters(search):
    assert not any("/api/" in address for address in results(search, "masking"))
    folded = search.locator("#search-results > details")
    assert folded.count() == 1 and not folded.evaluate("one => one.open")
    assert folded.locator("a[href*='/api/']").count()


def test_a_result_shows_its_words_and_leads_to_its_section(search):
    results(search, "fine-tune on my own data")
    assert search.locator("#search-results mark").count()
    assert "page" in search.get_by_role("status").inner_text()
    address = search.locator("#search-results a[href*='#']").first.get_attribute("href")
    search.goto(search.url.replace("search.html", address))
    assert search.locator(f"[id='{address.split('#')[1]}']").count() == 1
    search.go_back()
    assert search.complaints == []


def test_nothing_found_is_said(search):
    assert results(search, "xyzzyqux") == []
    assert "Nothing found" in search.get_by_role("status").inner_text()
