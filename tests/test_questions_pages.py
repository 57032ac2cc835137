"""The pages of questions that close the parts: ten questions each, an answer to each, and nothing
in it made up."""

import re

import pytest
from page_links import BOOK, dead_links, links, unknown_numbers, wrong_sums

PARTS = ("bert", "spanbert", "tasks", "relatives")
PAGES = {part: BOOK / part / "questions.md" for part in PARTS}
FOLD = re.compile(
    r"^<details><summary>Answer</summary>\n\n(.+?)\n\n</details>$", re.MULTILINE | re.DOTALL
)


def sections(part: str) -> list[str]:
    """What stands under each heading of a page's questions."""
    return re.split(r"^## .*$", PAGES[part].read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


ANSWERS = [
    (part, number, section)
    for part in PARTS
    for number, section in enumerate(sections(part), start=1)
]


@pytest.mark.parametrize("part", PARTS)
def test_a_page_has_ten_questions(part):
    text = PAGES[part].read_text(encoding="utf-8")
    numbers = re.findall(r"^## (\d+)\. \S", text, flags=re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 11)]
    assert len(sections(part)) == text.count("<details>") == text.count("</details>") == 10


@pytest.mark.parametrize("part", PARTS)
def test_links_lead_to_the_sections_that_they_name(part):
    assert dead_links(PAGES[part]) == []


@pytest.mark.parametrize(
    "part, number, section", ANSWERS, ids=[f"{part}-{number}" for part, number, _ in ANSWERS]
)
def test_a_question_asks_and_has_one_short_answer_that_names_its_section(part, number, section):
    (answer,) = FOLD.findall(section)
    question, _, rest = section.partition("<details>")
    assert "?" in question and not rest.partition("</details>")[2].strip()
    assert 20 <= len(answer.split()) <= 130, "an answer is a few sentences"
    assert all("#" in target for _, target in links(answer)) and links(answer)


@pytest.mark.parametrize(
    "part, number, section", ANSWERS, ids=[f"{part}-{number}" for part, number, _ in ANSWERS]
)
def test_numbers_of_an_answer_are_computed_in_view_or_stand_in_the_chapters_it_links_to(
    part, number, section
):
    (answer,) = FOLD.findall(section)
    given = section.partition("<details>")[0]  # what the question states may be said again
    assert wrong_sums(answer) == []
    assert unknown_numbers(answer, PAGES[part]) <= set(
        re.findall(r"\d[\d.]*\d", given.replace(",", ""))
    )


def test_the_questions_go_through_the_whole_part():
    """All its chapters, or at least six of them where it has more."""
    for part, page in PAGES.items():
        asked = {target.partition("#")[0] for _, target in links(page.read_text(encoding="utf-8"))}
        chapters = {path.name for path in (BOOK / part).glob("*.ipynb")}
        missing = sorted(chapters - asked)
        assert len(chapters & asked) >= min(len(chapters), 6), (
            f"{part}/questions.md asks nothing about {missing}"
        )


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
    page = PAGES["bert"]
    text = (
        "It has 3.89 tokens, not 3.88. See [WordPiece: Does the criterion "
        "matter?](wordpiece.ipynb)."
    )
    assert unknown_numbers(text, page) == {"3.88"}
    assert unknown_numbers("It is `1.5 * 3 = 4.5`, so 4.5 and 7.77.", page) == {"7.77"}
