"""The experiment that fine-tunes on the almanac's questions with several seeds."""

from dataclasses import replace

import pytest
import torch

from research.almanac.questions import says_a_second_fact
from research.experiments import almanac_answers
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import fine_tune


@pytest.fixture(scope="module")
def parts() -> dict[str, list[squad.Question]]:
    test = squad.read(data_path("almanac", "questions-test.json.xz"))
    train = squad.read(data_path("almanac", "questions-train.json.xz"))[:40]
    described = [question for question in test if says_a_second_fact(question.question)]
    return {"train": train, "test": test[:200], "same wording": described[:40]}


def test_where_only_the_head_learns_the_encoder_stays_as_it_is(parts):
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


def test_f1_by_category_is_the_score_of_each_group(parts):
    questions = parts["test"][:24]
    texts = {q.id: "Upton" if number % 2 else "" for number, q in enumerate(questions)}
    texts |= {q.id: q.answers[0].text for q in questions[:9] if q.answers}
    odds = {q.id: (-1.0, 1.0)[number % 3 == 0] for number, q in enumerate(questions)}
    found = almanac_answers.f1_by_category(texts, odds, questions, 0.0)
    assert set(found) == {q.category or "answerable" for q in questions}
    whole = sum(found[q.category or "answerable"] for q in questions) / len(questions)
    assert whole == pytest.approx(squad.score(texts, questions, odds, 0.0)["f1"])
    every = dict.fromkeys(odds, 1.0)
    nothing = almanac_answers.f1_by_category(texts, every, questions, 0.0)
    assert nothing.pop("answerable") == 0 and set(nothing.values()) == {100}
