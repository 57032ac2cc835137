"""The page of questions: four parts, twenty-four questions, an answer to each, and nothing in it
made up."""

import re

import pytest
from page_links import BOOK, dead_links, links, unknown_numbers, wrong_sums

PAGE = BOOK / "workshop" / "questions.md"
TEXT = PAGE.read_text(encoding="utf-8")
PARTS = {"bert": "BERT", "spanbert": "SpanBERT", "tasks": "Using it", "relatives": "Relatives"}
HEADING = re.compile(r"^### (\d+)\. (\S.*)$", re.MULTILINE)
FOLD = re.compile(
    r"^<details><summary>Answer</summary>\n\n(.+?)\n\n</details>$", re.MULTILINE | re.DOTALL
)


def of_parts() -> dict[str, str]:
    """{folder: the text under the part's heading}."""
    texts = re.split(r"^## .*$", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(PARTS, texts, strict=True))


def of_questions() -> list[str]:
    """What is under each heading of a question."""
    found = []
    for text in of_parts().values():
        found += re.split(HEADING.pattern, text, flags=re.MULTILINE)[3::3]
    return found


SECTIONS = of_questions()
NAMES = [f"{number}. {title}" for number, title in HEADING.findall(TEXT)]
each_question = pytest.mark.parametrize("section", SECTIONS, ids=NAMES)


def test_there_are_twenty_four_questions_in_four_parts():
    assert TEXT.startswith("# Twenty-four questions\n")
    headings = re.findall(r"^## (.+)$", TEXT, flags=re.MULTILINE)
    numerals = ("I", "II", "III", "IV")
    assert headings == [
        f"Part {numeral}: {name}" for numeral, name in zip(numerals, PARTS.values(), strict=True)
    ]
    numbers = [int(number) for number, _ in HEADING.findall(TEXT)]
    assert numbers == list(range(1, 25))
    assert len(SECTIONS) == TEXT.count("<details>") == TEXT.count("</details>") == 24
    assert all(len(HEADING.findall(text)) >= 4 for text in of_parts().values())


def test_it_is_the_only_page_of_questions():
    assert list(BOOK.rglob("questions.md")) == [PAGE]


def test_links_lead_to_the_sections_that_they_name():
    assert dead_links(PAGE) == []


@each_question
def test_a_question_asks_and_has_one_short_answer_that_names_its_section(section):
    (answer,) = FOLD.findall(section)
    question, _, rest = section.partition("<details>")
    assert "?" in question and not rest.partition("</details>")[2].strip()
    assert 20 <= len(answer.split()) <= 130, "an answer is a few sentences"
    assert all("#" in target for _, target in links(answer)) and links(answer)
    assert not links(question), "only the answer says where to look"


@each_question
def test_numbers_of_an_answer_are_computed_in_view_or_stand_in_the_chapters_it_links_to(section):
    (answer,) = FOLD.findall(section)
    given = section.partition("<details>")[0]  # what the question states may be said again
    assert wrong_sums(answer) == []
    assert unknown_numbers(answer, PAGE) <= set(re.findall(r"\d[\d.]*\d", given.replace(",", "")))


@each_question
def test_figures_that_a_question_quotes_from_a_chapter_stand_there(section):
    """Decimals of the question itself; made-up examples have whole numbers or are computed with."""
    (answer,) = FOLD.findall(section)
    question = re.sub(r"`[^`]*`|\$[^$]*\$", "", section.partition("<details>")[0])
    used = " ".join(re.findall(r"`[^`]+`", answer))
    quoted = {
        number
        for number in re.findall(r"(?<![\w.])\d+\.\d+", question)
        if number not in used and float(number) >= 1
    }
    linked = " ".join(f"[{name}]({target})" for name, target in links(answer))
    assert unknown_numbers(" ".join(quoted) + " " + linked, PAGE) == set()


@pytest.mark.parametrize("part", PARTS)
def test_the_questions_go_through_the_whole_part(part):
    """All its chapters, or at least six of them where it has more."""
    asked = {(PAGE.parent / target.partition("#")[0]).resolve() for _, target in links(TEXT)}
    chapters = set((BOOK / part).glob("*.ipynb"))
    missing = sorted(path.name for path in chapters - asked)
    assert len(chapters & asked) >= min(len(chapters), 6), f"nothing is asked about {missing}"


@pytest.mark.parametrize("part", PARTS)
def test_a_question_of_a_part_leads_to_its_chapters(part):
    for section in re.split(HEADING.pattern, of_parts()[part], flags=re.MULTILINE)[3::3]:
        assert any(f"../{part}/" in target for _, target in links(section))


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("`2 * 3 = 7`", "2 * 3 is 6, not 7."),
        ("`1 / 3 = 0.34`", "1 / 3 is 0.33, not 0.34."),
        ("`ceil(0.15 * 200) = 30` and `10 * 512 = 5,120`", None),
    ],
)
def test_a_wrong_sum_is_noticed(text, complaint):
    assert wrong_sums(text) == ([complaint] if complaint else [])


def test_an_unknown_number_is_noticed():
    text = (
        "It has 3.89 tokens, not 3.88. See [From text to vectors: What WordPiece really merges "
        "by](../bert/wordpiece.ipynb)."
    )
    assert unknown_numbers(text, PAGE) == {"3.88"}
    assert unknown_numbers("It is `1.5 * 3 = 4.5`, so 4.5 and 7.77.", PAGE) == {"7.77"}
