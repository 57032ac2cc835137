"""The glossary: required terms, Korean in every row, agreement with the notation, links that lead
somewhere."""

import re

import pytest

from environment import ROOT

PAGE = ROOT / "book" / "workshop" / "glossary.md"
HANGUL = re.compile("[가-힣]")


def table(heading: str) -> list[list[str]]:
    """Rows of the table under a heading, without its first two lines."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


TERMS = table("Terms")
NAMES = [row[0].strip("*") for row in TERMS]


def test_terms_are_sorted_and_stand_once():
    keys = [re.sub(r"[\[\]]", "", name).lower() for name in NAMES]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


@pytest.mark.parametrize("row", TERMS, ids=NAMES)
def test_a_row_has_korean_one_sentence_and_a_chapter(row):
    name, korean, meaning, chapter = row
    assert HANGUL.search(korean), f"{name} has no Korean"
    assert meaning.endswith(".") and len(meaning) > 15
    links = re.findall(r"\]\(([^)]+)\)", chapter)
    assert links or chapter == "a later part"


def test_every_term_stands_in_the_korean_index():
    index = {english: korean for korean, english in table("찾아보기")}
    assert index == {name: row[1] for name, row in zip(NAMES, TERMS, strict=True)}
    korean = [row[0] for row in table("찾아보기") if HANGUL.match(row[0])]
    assert korean == sorted(korean)
