"""The experiment that fine-tunes on the almanac's questions with several seeds."""

import json
from dataclasses import replace

import pytest

from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.experiments import almanac_answers
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.almanac_questions import CATEGORIES, says_a_second_fact


@pytest.fixture(scope="module")
def parts() -> dict[str, list[squad.Question]]:
    test = squad.read(data_path("almanac", "questions-test.json.xz"))
    train = squad.read(data_path("almanac", "questions-train.json.xz"))[:40]
    described = [question for question in test if says_a_second_fact(question.question)]
    return {"train": train, "test": test[:200], "same wording": described[:40]}


def test_a_row_holds_both_starts_with_their_figures(parts, monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr(almanac_answers, "ASKED_AGAIN", 4)
    settings = replace(almanac_answers.SETTINGS, epochs=1.0)
    row, again = (almanac_answers.one(3, parts, settings) for _ in range(2))
    assert row == again and row["seed"] == 3
    share = sum(bool(question.answers) for question in parts["test"]) / len(parts["test"])
    for name in ("pre-trained", "new weights"):
        found = row[name]
        assert set(found["auc"]) == set(CATEGORIES) and all(0 <= value <= 1 for value in found["auc"].values())
        assert set(found["answered"]) == {"", *almanac_answers.WORDS}
        assert found["f1"] == pytest.approx(share * found["HasAns_f1"] + (1 - share) * found["NoAns_f1"])
        assert found["forced"] >= found["HasAns_f1"]
        assert 0 < found["same_wording"] < 1


def test_the_words_that_answerable_questions_do_not_have():
    asked = [question for part in ("train", "validation", "test")
             for question in squad.read(data_path("almanac", f"questions-{part}.json.xz"))]
    safe = {word for question in asked if question.answers for word in question.question.rstrip("?").split()}
    assert [word in safe for word in almanac_answers.WORDS] == [False, False, True, True]


def test_the_kept_results_have_five_seeds():
    kept = json.loads(data_path("results", "almanac_answers.json").read_text(encoding="utf-8"))
    assert [row["seed"] for row in kept["rows"]] == list(range(almanac_answers.SEEDS))
    assert kept["questions"] == almanac_answers.QUESTIONS
