"""The experiments on real questions: groups of articles, thresholds, stopping and going on, AUC."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from research.__main__ import main
from research.experiments import squad_real
from spanbert_tutorial.tasks import real_questions
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
    result = real_questions.tuned(test, tune)
    assert result["threshold"] == -1.0
    assert result["f1"] == pytest.approx(200 / 3)  # the unanswerable one is answered
    assert result["same"] == pytest.approx(200 / 3)


def test_where_abstaining_is_best_nothing_is_answered():
    tune = {"c": "Mara"}, [TEST[2]], {"c": -5.0}
    result = real_questions.tuned((TEXTS, TEST, {"a": -7.0, "b": 0.0, "c": 1.0}), tune)
    assert result["threshold"] == -1e9
    assert result["HasAns_f1"] == 0 and result["NoAns_f1"] == 100


def test_one_head_goes_through_all_stages(tmp_path, monkeypatch):
    """Each task goes on with the very model of the task before, and the last one is kept."""
    started = []
    saved = {}
    model = SimpleNamespace()
    histories = [SimpleNamespace(done=1, mean=lambda name, last: 1.0)]

    def stages(start, wordpiece, questions, settings, state):
        started.append(start)
        answerer = SimpleNamespace(
            model=model, save=lambda folder, texts: saved.update({folder.name: texts})
        )
        return answerer, histories * len(settings)

    monkeypatch.setattr(squad_real, "start", lambda name, seed: ("encoder", None))
    monkeypatch.setattr(squad_real, "fine_tune_in_stages", stages)
    monkeypatch.setattr(squad_real, "scored", lambda *_: {"f1": 1.0})
    data = {f"{task} {part}": TEST for task in squad_real.STAGES for part in ("train", "test")}
    rows = squad_real.one("bert-mini", 1, squad_real.SETTINGS, data, tmp_path)
    assert (
        [row["task"] for row in rows]
        == ["easy", "made", "squad1", "squad2"]
        == list(squad_real.STAGES)
    )
    assert started == ["encoder", model, model, model]
    assert json.loads(saved["bert-mini-1"]["rows.json"])["rows"] == rows and len(saved) == 1


def test_a_missing_folder_is_named(tmp_path, capsys):
    options = [f"--{name}={tmp_path}" for name in ("data", "easy", "made", "models")]
    assert main(["squad_real", *options, f"--output={tmp_path / 'out.csv'}"]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.real_data
def test_no_article_is_in_two_groups():
    groups = squad_real.by_article(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad"))
    titles = {name: {q.title for q in group} for name, group in groups.items()}
    assert not titles["train"] & titles["test"] and not titles["tune"] & (
        titles["train"] | titles["test"]
    )
    assert [len(titles[name]) for name in ("train", "tune", "test")] == [18, 3, 6]
    folder = Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad")
    ones = {
        name: {q.title for q in group} for name, group in squad_real.all_questions(folder).items()
    }
    assert not ones["squad1 train"] & ones["squad1 test"]
    # so models of 2.0 are not scored on 1.1
    assert len(ones["squad2 train"] & ones["squad1 test"]) == 8
