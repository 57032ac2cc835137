"""The reader: exact SQuAD 2.0 format, exact offsets, balanced and varied questions that are no
copies of the text."""

import json
import re
from collections import Counter
from statistics import mean

import pytest

from spanbert_tutorial.engine.files import data_path

CATEGORIES = {"negation", "antonym", "entity_swap", "mutual_exclusion"}
CATEGORIES |= {"impossible_condition", "other_neutral"}


@pytest.fixture(scope="module")
def reader():
    return json.loads(data_path("reader", "reader.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def questions(reader):
    """(context, question) pairs in the file's order."""
    return [
        (paragraph["context"], qa)
        for article in reader["data"]
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]


def marked(qa: dict) -> list[dict]:
    """What is marked in the context: answers, or plausible answers of an unanswerable question."""
    return qa["plausible_answers"] if qa["is_impossible"] else qa["answers"]


def sentences(context: str) -> list[tuple[int, int]]:
    """First and last character (exclusive) of each sentence; "P. T. Barnum" or "L. L. Zamenhof" end
    none."""
    ends = [match.end() for match in re.finditer(r"(?<!\b[A-Z])[.!?](?=\s)|[.!?]$", context)]
    return list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))


def test_the_fields_are_those_of_squad_2_and_a_category(reader, questions):
    assert set(reader) == {"version", "data"} and reader["version"] == "v2.0"
    for article in reader["data"]:
        assert set(article) == {"title", "paragraphs"}
        assert all(set(paragraph) == {"context", "qas"} for paragraph in article["paragraphs"])
    for _, qa in questions:
        more = {"plausible_answers", "category"} if qa["is_impossible"] else set()
        assert set(qa) == {"id", "question", "is_impossible", "answers"} | more
        assert isinstance(qa["is_impossible"], bool)
        assert all(set(answer) == {"text", "answer_start"} for answer in marked(qa))


def test_marked_texts_are_exact_slices_and_no_whole_sentences(questions):
    for context, qa in questions:
        whole = {context[first:last].rstrip(".") for first, last in sentences(context)}
        for answer in marked(qa):
            start = answer["answer_start"]
            text = answer["text"]
            assert context[start : start + len(text)] == text, qa["id"]
            assert text == text.strip() and text and text.rstrip(".") not in whole, qa["id"]
            before = context[:start][-1:]
            after = context[start + len(text) :][:1]
            assert not before.isalnum() and not after.isalnum(), qa["id"]


def test_answerable_questions_have_two_or_three_answers_and_unanswerable_ones_none(questions):
    for _, qa in questions:
        assert len(qa["answers"]) in ((0,) if qa["is_impossible"] else (2, 3)), qa["id"]
        assert len(marked(qa)) >= 1, qa["id"]


def test_there_are_enough_articles_and_questions_and_half_are_unanswerable(reader, questions):
    assert len(reader["data"]) >= 40 and len(questions) >= 240
    assert 0.45 <= mean(qa["is_impossible"] for _, qa in questions) <= 0.55
    counts = Counter(qa["category"] for _, qa in questions if qa["is_impossible"])
    assert set(counts) == CATEGORIES and min(counts.values()) >= 12
