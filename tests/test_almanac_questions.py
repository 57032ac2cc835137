"""The almanac's questions: the shipped files again from the seed; answers where they say, or none
where none may be."""

from collections import Counter

import pytest

from research.almanac import questions as almanac_questions
from research.almanac.documents import generate
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad

PARTS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def shipped() -> dict[str, list[squad.Question]]:
    return {part: squad.read(data_path("almanac", f"questions-{part}.json.xz")) for part in PARTS}


def test_the_shipped_files_are_made_from_the_seed(shipped):
    """The first documents of each part; the whole command takes too long for every run of the
    tests."""
    made: dict[str, list] = {part: [] for part in PARTS}
    for number, (document, questions) in enumerate(almanac_questions.generate(generate())):
        made[document.split] += questions
        if number == 600:
            break
    for part in PARTS:
        assert len(made[part]) > 20 and made[part] == shipped[part][: len(made[part])]


def test_half_of_the_questions_have_no_answer_for_six_reasons(shipped):
    for questions in shipped.values():
        counts = Counter(question.category for question in questions)
        assert set(counts) == {None, *almanac_questions.CATEGORIES} and min(counts.values()) > 90
        assert counts[None] * 2 == len(questions)
        assert all((q.category is None) == bool(q.answers) for q in questions)
        misled = [q for q in questions if q.category not in (None, "other_neutral")]
        assert all(q.plausible for q in misled)
        assert not any(q.plausible for q in questions if q.answers)
    assert len(shipped["train"]) > 9_000
