"""The experiments on real questions: groups of articles, thresholds, stopping and going on, AUC."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from research.experiments import riddle_of_mix, squad_real, words_of_the_question
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import PRESETS, fine_tune
from spanbert_tutorial.tasks.squad import GoldAnswer, Question


def question(number: str, answer: str = "", title: str = "one") -> Question:
    context = f"Mara wrote book {number} in Brell. {answer}"
    marks = (GoldAnswer(answer, context.index(answer)),) if answer else ()
    return Question(number, f"Who wrote book {number}?", context, title, marks)


TEST = [question("a", "Mara"), question("b", "Brell"), question("c")]
TEXTS = {"a": "Mara", "b": "Brell", "c": "Mara"}


def test_the_threshold_comes_from_the_other_questions():
    tune = {"a": "Mara", "c": "Mara"}, [TEST[0], TEST[2]], {"a": -1.0, "c": 2.0}
    test = TEXTS, TEST, {"a": -3.0, "b": -2.0, "c": -2.5}
    result = squad_real.tuned(test, tune)
    assert result["threshold"] == -1.0
    assert result["f1"] == pytest.approx(200 / 3)  # the unanswerable one is answered
    assert result["same"] == pytest.approx(200 / 3)


def test_where_abstaining_is_best_nothing_is_answered():
    tune = {"c": "Mara"}, [TEST[2]], {"c": -5.0}
    result = squad_real.tuned((TEXTS, TEST, {"a": -7.0, "b": 0.0, "c": 1.0}), tune)
    assert result["threshold"] == -1e9
    assert result["HasAns_f1"] == 0 and result["NoAns_f1"] == 100


@pytest.mark.real_data
def test_no_article_is_in_two_groups():
    groups = squad_real.by_article(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad"))
    titles = {name: {q.title for q in group} for name, group in groups.items()}
    assert not titles["train"] & titles["test"]
    assert not titles["tune"] & (titles["train"] | titles["test"])
    assert [len(titles[name]) for name in ("train", "tune", "test")] == [18, 3, 6]
    folder = Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad")
    ones = {
        name: {q.title for q in group} for name, group in squad_real.all_questions(folder).items()
    }
    assert not ones["squad1 train"] & ones["squad1 test"]
    # so models of 2.0 are not scored on 1.1
    assert len(ones["squad2 train"] & ones["squad1 test"]) == 8


# --- what a probe reads of the question's words -------------------------------------


def test_half_of_what_a_window_is_asked_stands_in_its_question():
    vocabulary = WordPiece.from_file(data_path("checkpoints", "spanbert-mini", "tokenizer.json"))
    found = words_of_the_question.asked(
        squad.read(data_path("reader", "reader.json"))[:40], vocabulary
    )
    assert sum(len(at) for _, _, at, _ in found) > 40
    for ids, segments, at, label in found:
        in_question = set(ids[segments == 0].tolist())
        assert [int(token in in_question) for token in ids[at].tolist()] == label.tolist()
        assert 2 * label.sum() == len(label) == len(set(at.tolist()))
        assert (segments[at] == 1).all() and vocabulary.starts[ids[at]].all()


# --- what is frozen -----------------------------------------------------------------


@pytest.mark.parametrize("way", [riddle_of_mix.ALL, riddle_of_mix.LOWER, riddle_of_mix.UPPER])
def test_a_frozen_half_stays_as_it_was_and_the_other_learns(way, tmp_path):
    shutil.copytree(data_path("checkpoints", "spanbert-tiny"), tmp_path / "mlm")
    questions = squad.read(data_path("reader", "reader.json"))[:4]
    settings = {"fine_tuning": replace(PRESETS["short-first"], epochs=20.0), "scored": 4}
    before = BertEncoder.read(tmp_path / "mlm")[0].state_dict()
    kept = {}

    def noted(encoder, *given):
        kept["encoder"] = encoder
        return fine_tune(encoder, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(riddle_of_mix, "fine_tune", noted)
        found = riddle_of_mix.one(("mlm", way), 0, settings, tmp_path, questions, questions)
    after = kept["encoder"].state_dict()
    layers = {name.split(".")[1] for name in after if name.startswith("layers.")}
    moved = {name for name in after if not torch.equal(before[name], after[name])}
    lower = {name for name in after if name.startswith(("embeddings.", "layers.0."))}
    frozen = {riddle_of_mix.LOWER: lower, riddle_of_mix.UPPER: set(after) - lower}.get(way, set())
    assert layers == {"0", "1"} and moved and not moved & frozen
    assert 0 < found["loss, training"] == pytest.approx(found["loss, unseen"])
