"""The experiments on real questions: groups of articles, thresholds, stopping and going on, AUC."""

import os
from pathlib import Path

import pytest

from research.experiments import squad_real
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
