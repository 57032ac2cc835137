"""The experiment that fine-tunes on the almanac's questions with several seeds."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from kept import kept, settings

from research.almanac.questions import CATEGORIES, says_a_second_fact
from research.experiments import almanac_answers
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import fine_tune

ARMS = "pre-trained", "new weights", almanac_answers.HEAD_ALONE


@pytest.fixture(scope="module")
def parts() -> dict[str, list[squad.Question]]:
    test = squad.read(data_path("almanac", "questions-test.json.xz"))
    train = squad.read(data_path("almanac", "questions-train.json.xz"))[:40]
    described = [question for question in test if says_a_second_fact(question.question)]
    return {"train": train, "test": test[:200], "same wording": described[:40]}


def test_a_row_holds_all_arms_with_their_figures(parts, monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr(almanac_answers, "ASKED_AGAIN", 4)
    settings = almanac_answers.SETTINGS | {
        "settings": replace(almanac_answers.FINE_TUNING, epochs=1.0)
    }
    row, again = (almanac_answers.one(3, settings, parts) for _ in range(2))
    assert row == again
    share = sum(bool(question.answers) for question in parts["test"]) / len(parts["test"])
    for name in ARMS:
        found = row[name]
        assert set(found["auc"]) == set(CATEGORIES) and all(
            0 <= value <= 1 for value in found["auc"].values()
        )
        assert set(found["answered"]) == {"", *almanac_answers.WORDS}
        assert found["f1"] == pytest.approx(
            share * found["HasAns_f1"] + (1 - share) * found["NoAns_f1"], abs=1e-3
        )
        assert found["forced"] >= found["HasAns_f1"]
        assert 0 < found["same_wording"] < 1
        counts = Counter(question.category or "answerable" for question in parts["test"])
        whole = sum(found["by_category"][kind] * count for kind, count in counts.items())
        assert whole / len(parts["test"]) == pytest.approx(found["f1"], abs=1e-3)


def test_where_only_the_head_learns_the_encoder_stays_as_it_is(parts, monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    shipped, wordpiece = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))[:2]
    moved = {}
    for name, (encoder, chosen) in almanac_answers.arms(0, almanac_answers.FINE_TUNING).items():
        before = {key: weight.clone() for key, weight in encoder.state_dict().items()}
        answerer, _ = fine_tune(encoder, wordpiece, parts["train"], replace(chosen, epochs=3))
        after = answerer.model.encoder.state_dict()
        moved[name] = any(not torch.equal(after[key], weight) for key, weight in before.items())
    assert moved == {"pre-trained": True, "new weights": True, almanac_answers.HEAD_ALONE: False}
    assert all(
        torch.equal(after[key], weight) for key, weight in shipped.encoder.state_dict().items()
    )


def test_the_words_that_answerable_questions_do_not_have():
    asked = [
        question
        for part in ("train", "validation", "test")
        for question in squad.read(data_path("almanac", f"questions-{part}.json.xz"))
    ]
    safe = {
        word
        for question in asked
        if question.answers
        for word in question.question.rstrip("?").split()
    }
    assert [word in safe for word in almanac_answers.WORDS] == [False, False, True, True]


def test_the_kept_results_have_five_seeds():
    told = settings("almanac_answers")
    assert told["head_rate"] == almanac_answers.HEAD_RATE
    assert kept("almanac_answers")["questions"] == almanac_answers.QUESTIONS
    for seed in range(almanac_answers.SEEDS):
        for arm in ARMS:
            found = kept("almanac_answers", arm, fine_tuning=seed)
            assert set(found["by_category"]) == {"answerable", *CATEGORIES}
