"""Scores kept window by window give the answers of the answerer; one rule changed at a time;
telling words."""

import numpy as np
import pytest
import torch

from research.experiments.almanac_answers import f1_by_category
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import answer_scores as figures
from spanbert_tutorial.tasks import question_answering as qa
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.windows import encode, windows


@pytest.fixture(scope="module")
def answerer() -> qa.QuestionAnswerer:
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    torch.manual_seed(0)
    encoder = BertEncoder(EncoderConfig.tiny(vocab_size=len(wordpiece), initializer_range=0.3))
    return qa.QuestionAnswerer(
        qa.QuestionAnsweringModel(encoder), wordpiece, max_length=64, doc_stride=24
    )


@pytest.fixture(scope="module")
def questions() -> list[squad.Question]:
    return squad.read(data_path("almanac", "questions-test.json.xz"))[:24]


@pytest.fixture(scope="module")
def scored(answerer, questions) -> list[figures.Scored]:
    return figures.score_windows(answerer, questions, batch_size=5)


def test_predictions_are_the_answerer_s(answerer, questions, scored):
    texts, odds = figures.predictions(scored)
    answers = answerer.answer_many(((q.question, q.context) for q in questions), threshold=np.inf)
    for question, answer in zip(questions, answers, strict=True):
        assert texts[question.id] == answer.text
        assert odds[question.id] == pytest.approx(answer.null_score - answer.score, abs=1e-3)
    assert [one.question for one in scored] == questions
    assert min(len(one.windows) for one in scored) > 1


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [
        (0, 0, "[CLS]"),
        (0, -2, "[CLS] once"),
        (-2, 0, "[CLS] once"),
        (1, -2, "outside the context"),
        (-3, -1, "outside the context"),
        (-2, -3, "end before start"),
        (-3, -2, "span"),
        (-2, -2, "span"),
    ],
)
def test_separate_arg_maxes_worked_by_hand(answerer, first, last, kind):
    encoded = encode(answerer.wordpiece, "Who founded Upton?", "Alice Mercer founded Upton")
    (window,) = windows(encoded, answerer.wordpiece, 64, 24)
    starts, ends = np.zeros((2, len(window.ids)))
    starts[first], ends[last] = 1, 1
    one = figures.Scored(squad.Question("1", "", ""), encoded, [window], [(starts, ends)])
    assert figures.separate_arg_maxes([one, one]) == {kind: 2}


def test_f1_by_category_is_the_score_of_each_group(questions, scored):
    texts, odds = figures.predictions(scored)
    found = f1_by_category(texts, odds, questions, 0.0)
    assert set(found) == {q.category or "answerable" for q in questions}
    whole = sum(found[q.category or "answerable"] for q in questions) / len(questions)
    assert whole == pytest.approx(squad.score(texts, questions, odds, 0.0)["f1"])
    nothing = f1_by_category(texts, dict.fromkeys(odds, 1.0), questions, 0.0)
    assert nothing.pop("answerable") == 0 and set(nothing.values()) == {100}
