"""The parts of a page that compute in the browser: what Python stores, and the live parts in a real
browser."""

import re
from itertools import islice
from xml.etree import ElementTree

import pytest
from kept import kept
from test_browser import visit

from environment import ROOT
from pages import PAGES
from spanbert_tutorial import almanac
from spanbert_tutorial.figures import playground, try_it
from spanbert_tutorial.figures.predictions import mask_and_predict

# what the reader's own input would send
INPUT = "field.dispatchEvent(new Event('input', {bubbles: true}))"
LONG = "The town lies on the river. " * 40


# --- in a browser -------------------------------------------------------------------

browser_only = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser):
    """The page *Try it*, opened once; its models are loaded once."""
    opened = visit(browser, "book/workshop/try_it.html")
    opened.set_default_timeout(60_000)
    yield opened
    assert opened.complaints == []
    opened.context.close()


@pytest.fixture
def hide(page):
    """The part that masks, at its first example."""
    part = page.locator("[data-try=hide]")
    part.get_by_label("Example").select_option("1")
    part.get_by_label("Example").select_option("0")
    says(part, "was born")
    return part


@pytest.fixture
def ask(page):
    """The part that answers, at its first example, with the threshold 0."""
    part = page.locator("[data-try=ask]")
    slide(part, 0)
    part.get_by_label("Example").select_option("1")
    part.get_by_label("Example").select_option("0")
    says(part, "Ida Brandt")
    return part


def says(part, text: str) -> None:
    """Wait until the status line says something."""
    part.get_by_role("status").filter(has_text=text).wait_for()


def words(part):
    return part.locator(".try-words button")


def masked(part) -> list[str]:
    return part.locator(".try-words button[aria-pressed=true]").all_text_contents()


def table_of(part) -> list[list[str]]:
    """The rows of the result, each cell's guesses as one text a line."""
    part.locator("table").first.wait_for()
    rows = part.locator(".try-result > table tbody tr")
    return [
        [row.locator("th").inner_text(), *row.locator("td").all_inner_texts()] for row in rows.all()
    ]


def slide(part, value: float) -> None:
    part.get_by_label("Threshold").evaluate(
        f"(field, value) => {{ field.value = value; {INPUT} }}", value
    )


def compare(cell: str, predictions: list[tuple[str, float]]) -> None:
    """The guesses of a cell are Python's, but for the rounding to 8 bits."""
    shown = [line.replace(" ✓", "").rsplit(" ", 1) for line in cell.splitlines()]
    assert shown[0][0].strip() == predictions[0][0]
    known = dict(predictions)
    same = [
        (float(share), known[token.strip()]) for token, share in shown if token.strip() in known
    ]
    assert len(same) >= 4 and all(abs(here - there) < 0.03 for here, there in same)


@browser_only
def test_nothing_is_loaded_before_the_reader_acts(browser):
    page = visit(browser, "book/welcome.html")
    loaded = "[...document.scripts].map((one) => one.src).filter((src) => /model/.test(src))"
    part = page.locator("[data-try=hide]")
    assert page.evaluate(loaded) == [] and part.locator("table").is_visible()
    words(part).nth(5).click()
    part.locator("tbody tr").nth(1).wait_for()
    page.wait_for_function(f"{loaded}.length == 2")
    says(part, "MLM head")
    assert masked(part) == ["before", "end"] and page.complaints == []
    page.context.close()


@browser_only
def test_the_stored_example_is_the_first_view(browser):
    page = visit(browser, "book/workshop/try_it.html")
    assert page.locator(".try-answer").inner_text() == "Answer: Ida Brandt"
    assert page.locator(".try-words .try-boundary").all_inner_texts() == ["Palmer", "Fairfield"]
    assert all("undefined" not in part.inner_text() for part in page.locator("[data-try]").all())
    assert page.locator("script[src*='models/']").count() == 0 and page.complaints == []
    page.context.close()


@browser_only
def test_without_javascript_the_stored_examples_show(browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    for name, text in (
        ("workshop/try_it", "born"),
        ("welcome", "expected"),
        ("spanbert/boundary", "founded"),
        ("tasks/question_answering", "Ida Brandt"),
    ):
        page.goto(f"{PAGES.as_uri()}/book/{name}.html")
        for part in page.locator("[data-try]:not([data-try=game])").all():
            assert part.get_by_text("This is a stored example").is_visible()
            assert part.locator("table").is_visible()
        assert text in page.locator(":is([data-try=hide], [data-try=ask])").first.inner_text()
    page.context.close()


@browser_only
@pytest.mark.parametrize("example", [0, 1, 3])
def test_the_table_has_the_figures_of_python(hide, example):
    hide.get_by_label("Example").select_option(str(example))
    filled = try_it.filled_in(try_it.MASKED[example])
    says(hide, f"MLM head: {' '.join(predictions[0][0] for predictions in filled.mlm)}.")
    rows = table_of(hide)
    assert [row[0].split()[0] for row in rows] == filled.answers
    for row, mlm, sbo in zip(rows, filled.mlm, filled.sbo, strict=True):
        compare(row[1], mlm)
        compare(row[2], sbo)
    assert hide.locator(".try-words .try-boundary").count() == 2


@browser_only
def test_words_are_masked_by_mouse(page, hide):
    words(hide).nth(3).click()
    assert masked(hide) == ["was", "in"]
    page.wait_for_function(
        "document.querySelectorAll('[data-try=hide] .try-result > table tbody tr').length == 2"
    )
    words(hide).nth(6).hover()
    page.mouse.down()
    words(hide).nth(7).hover()
    words(hide).nth(8).hover()
    page.mouse.up()
    assert masked(hide) == ["was", "in", "and", "became", "a"]
    words(hide).nth(0).click()
    hide.get_by_text("touches an end of the text").first.wait_for()


@browser_only
def test_every_text_of_the_readers_own_gets_a_span(page, hide):
    field = hide.get_by_label("Your text")
    field.fill("")
    says(hide, "There is no text")
    for text, span in (
        ("The town lies on the river.", ["lies", "on"]),
        ("", []),
        ("Dogs bark.", ["bark"]),
        ("", []),
        ("Dogs", []),
        ("The town has a river.", ["has", "a"]),
    ):
        field.fill(text)
        says(hide, "There is no text" if not text else "MLM head" if span else "Nothing is masked")
        assert [word.replace("##", "") for word in masked(hide)] == span


@browser_only
def test_words_are_masked_by_keyboard(page, hide):
    hide.get_by_label("Your text").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Vera"  # one stop for all words
    page.keyboard.press("Escape")
    assert masked(hide) == []
    says(hide, "Nothing is masked: mask at least one word.")
    for key in ("ArrowRight", "Space", "ArrowRight", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    assert masked(hide) == ["Palmer", "born", "in"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert masked(hide) == ["Palmer", "born", "in", "."]
    assert words(hide).nth(3).get_attribute("aria-label") == "born, masked"


@browser_only
def test_attention_can_be_read(page, hide):
    hide.locator("summary").first.click()
    says_where = hide.locator(".try-attention p")
    assert "Layer 1, head 1: [MASK] (position 3) looks most at" in says_where.inner_text()
    hide.get_by_label("Layer").select_option("2")
    strip = hide.locator(".try-strip button")
    strip.first.click()
    assert says_where.inner_text().startswith("Layer 2, head 1: [CLS] (position 0)")
    percents = [int(one.removesuffix("%")) for one in strip.locator("small").all_inner_texts()]
    assert 90 <= sum(percents) <= 110
    strip.first.press("ArrowRight")
    assert "Vera (position 1)" in says_where.inner_text()
    assert page.evaluate("document.activeElement.textContent").startswith("Vera")
    hide.locator("summary").first.click()


@browser_only
def test_the_page_does_not_freeze_while_mini_computes(page, hide):
    page.evaluate(
        "window.ticks = []; window.clock = setInterval(() => ticks.push(performance.now()), 20)"
    )
    hide.get_by_label("Model").select_option(try_it.MINI)
    hide.get_by_label("Your text").fill("A dog is not a cat. " * 16)
    words(hide).nth(100).click()
    page.evaluate("window.ticks = []")
    words(hide).nth(103).click()
    page.locator("[data-try=hide] .try-result > table tbody tr").nth(3).wait_for()
    ticks = page.evaluate("clearInterval(clock), ticks")
    hide.get_by_label("Model").select_option(try_it.TINY)
    assert len(ticks) >= 5  # a page that computes itself would have none


@browser_only
def test_a_question_is_answered_and_the_threshold_silences_it(ask):
    answer = ask.locator(".try-answer")
    assert answer.inner_text() == "Answer: Ida Brandt"
    spans = ask.locator("table").first.locator("tbody tr")
    known = try_it.answerer().answer(try_it.ASKED[0].question, try_it.ASKED[0].context)
    assert spans.count() == 5 and "Ida Brandt" in spans.first.inner_text()
    told = ask.locator(".try-legend").first.inner_text().replace("−", "-")
    odds = float(re.search(r"null odds (-?[\d.]+)", told)[1])
    assert abs(odds - (known.null_score - known.score)) < 0.7
    slide(ask, odds - 1)
    assert answer.inner_text() == "No answer. Forced to speak, it would say: Ida Brandt"
    assert "".join(ask.locator(".try-best.try-silent").all_inner_texts()) == "IdaBrandt"
    slide(ask, odds + 1)
    assert answer.inner_text() == "Answer: Ida Brandt"


@browser_only
def test_a_question_of_the_readers_own(ask):
    ask.get_by_label("Question").fill("What is red?")
    ask.get_by_label("Text").fill("<b>The gate</b> is red. The wall is grey.")
    ask.get_by_label("Question").press("Enter")
    says(ask, "nswer")
    ask.locator("details summary").click()
    assert ask.locator("details td").all_inner_texts()[0] == "<"
    assert ask.locator(".try-scores b").count() == 0
    ask.locator("details summary").click()
    wrong = [
        ("", "A text.", "There is no question: type one."),
        ("Who?", " ", "There is no text"),
        ("Who?", LONG, "shorten it"),
    ]
    for question, text, sentence in wrong:
        ask.get_by_label("Question").fill(question)
        ask.get_by_label("Text").fill(text)
        ask.get_by_role("button", name="Answer").click()
        says(ask, sentence)
        assert not ask.locator(".try-answer").is_visible()


def test_the_still_pictures_say_what_the_models_predict():
    ferry = try_it.ASKED[0]
    stored = {
        "try_line": try_it.filled_in(try_it.DECISION),
        "try_hide": try_it.filled_in(try_it.BORN),
        "try_ask": playground.ask(try_it.answerer(), ferry.question, ferry.context),
    }
    for name, made in stored.items():
        picture = ElementTree.parse(ROOT / "book_assets" / f"{name}.svg")
        assert picture.find("{*}desc").text.split() == repr(made).split()


def test_the_figures_of_the_page_are_the_kept_ones():
    found = kept("model_in_the_page")
    page = " ".join((ROOT / "book" / "workshop" / "try_it.md").read_text(encoding="utf-8").split())
    changed = []
    for name in (try_it.TINY, try_it.MINI):
        for head in ("mlm", "sbo"):
            same, scored = found["same_first_guess"][name][head]
            changed.append(100 * (1 - same / scored))
        farthest = found["farthest_float"][name]
        assert max(farthest["hidden"], farthest["mlm"], farthest["sbo"]) <= 0.00003
    assert "to within 0.00003" in page
    assert f"at most {max(changed):.1f}% of the top predictions change" in page
    reader = found["reader"][try_it.ANSWERING]
    assert abs(reader["page_f1"] - reader["pytorch_f1"]) <= 1 and reader["questions"] > 100
    assert f"the same text for {reader['same_text']} of {reader['questions']} questions" in page


def test_the_example_of_the_welcome_page_is_right_and_rare():
    filled = try_it.filled_in(try_it.DECISION)
    for head in (filled.mlm, filled.sbo):
        assert [guesses[0][0] for guesses in head] == filled.answers
    model, wordpiece = try_it.pretrained(try_it.TINY)
    right = [
        all(head[row][0][0] == answer for head in (one.mlm, one.sbo) for row, answer in answers)
        for one in (
            mask_and_predict(model, wordpiece, text, first, first + 2, 1)
            for text, first in islice(spans_of_three(wordpiece), 200)
        )
        for answers in [list(enumerate(one.answers))]
    ]
    welcome = (ROOT / "book" / "welcome.md").read_text(encoding="utf-8")
    assert f"{sum(right)} of the first {len(right)} spans of three words" in " ".join(
        welcome.split()
    )


def spans_of_three(wordpiece):
    """(sentence, place) of each three words inside a sentence of 7 to 12 words, all known, of the
    test articles."""
    for document in almanac.read("test"):
        for text in re.findall(r"[^.]+\.", document["text"]):
            words = text.split()
            if 7 <= len(words) <= 12 and len(wordpiece.encode(text)) == len(words) + 1:
                yield from ((text.strip(), first) for first in range(1, len(words) - 3))
