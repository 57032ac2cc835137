"""The course plan: every chapter and every exercise has its place, and the minutes add up."""

import re

import pytest
from page_links import BOOK, dead_links, links, markdown

PAGE = BOOK / "workshop" / "course.md"
TEXT = PAGE.read_text(encoding="utf-8")
SESSIONS = re.findall(
    r"^### Session (\d+): .+?$(.+?)(?=^##|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL
)
CHECK = re.compile(r"\bcheck_\w+")
CHAPTERS = sorted(
    path for path in BOOK.glob("*/*.ipynb") if path.parent.name not in ("workshop", "evidence")
)


def test_six_weeks_of_two_sessions():
    assert re.findall(r"^## Week (\d)", TEXT, flags=re.MULTILINE) == list("123456")
    assert [int(number) for number, _ in SESSIONS] == list(range(1, 13))


@pytest.mark.parametrize("number, plan", SESSIONS)
def test_a_session_has_ninety_minutes(number, plan):
    minutes = [int(number) for number in re.findall(r"^\| (\d+) \|", plan, flags=re.MULTILINE)]
    assert len(minutes) >= 3 and sum(minutes) == 90


def test_every_chapter_and_every_page_of_questions_is_planned():
    planned = {(PAGE.parent / target).resolve() for _, target in links(TEXT)}
    missing = [path.name for path in CHAPTERS if path not in planned]
    assert not missing, f"course.md plans no session and no home work for {missing}"
    assert {path for path in BOOK.glob("*/questions.md")} <= planned
    assert dead_links(PAGE) == []


def test_every_exercise_is_planned_and_is_there():
    """A chapter's exercise is told by its check."""
    there = {name for path in CHAPTERS for name in CHECK.findall(markdown(path))}
    assert set(CHECK.findall(TEXT)) == there
