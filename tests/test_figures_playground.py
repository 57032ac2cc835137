"""The question answering panel and form: the decision, text twin, escaping, a live form, and a real
browser."""

from dataclasses import replace

import pytest
import torch

from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.explorer import Explorer
from spanbert_tutorial.figures.playground import AnswerPanel, ask
from spanbert_tutorial.tasks import question_answering as qa

CONTEXT = "Upton was founded by Alice Mercer in 1873."
WORDS = "Who founded Upton?"


@pytest.fixture(scope="module")
def answerer() -> qa.QuestionAnswerer:
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    torch.manual_seed(0)
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=len(wordpiece), initializer_range=0.3))
    return qa.QuestionAnswerer(qa.QuestionAnsweringModel(encoder), wordpiece, 48, doc_stride=16)


def test_asking_is_the_answerer_s_answer(answerer):
    for threshold in (-1e9, 0.0, 1e9):
        made = ask(answerer, WORDS, CONTEXT, threshold)
        answer = answerer.answer(WORDS, CONTEXT, threshold)
        assert made.answer == answer.text and f"null score {answer.null_score:.2f}" in repr(made)
        assert made.candidates[0][0] == f"{answer.score:.2f}"
    assert "\nGold: Mercer\n" in repr(ask(answerer, WORDS, CONTEXT, gold=["Mercer"]))
    with pytest.raises(InputError, match="the context is empty"):
        ask(answerer, WORDS, " ")


def explorer() -> Explorer:
    questions = {WORDS: CONTEXT, "When?": f"{'Longword' * 12} {CONTEXT}"}

    def made(question: str, threshold: float) -> AnswerPanel:
        begin = questions[question].index("Alice")
        best = qa.Answer("Alice Mercer", begin, begin + 12, 5.0, 6.0)
        answer = replace(best, n_best=(best,))
        return AnswerPanel(question, questions[question], answer, threshold)

    return Explorer({"question": list(questions), "threshold": [0.0, 2.0]}, made)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_playground_in_a_browser(tmp_path, browser, scheme):
    file = tmp_path / "page.html"
    head = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    style = "<style>:root{color-scheme:light dark}</style>"
    file.write_text(f"{head}{style}{explorer()._repr_html_()}", encoding="utf-8")
    looks = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme}
    page = browser.new_context(**looks).new_page()
    page.goto(file.as_uri())
    view = page.locator("[data-view]")
    assert "(no answer)" in view.inner_text() and page.locator("mark").count() == 0
    page.locator("select").nth(1).focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("mark").inner_text() == "Alice Mercer"
    assert page.locator("mark").evaluate(
        "one => getComputedStyle(one).color == getComputedStyle(one.parentElement).color"
    )
    page.locator("select").nth(0).select_option("When?")
    assert page.locator("mark").inner_text() == "Alice Mercer"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
