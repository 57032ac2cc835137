"""The experiments on real questions: groups of articles, thresholds, stopping and going on, AUC."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from research import grid
from research.experiments import squad_negatives, squad_real
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import real_questions
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.tasks.squad_files import write
from spanbert_tutorial.tasks.squad_negatives import auc


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


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    asked = []

    def one(name, seed, settings, data, models):
        asked.append((name, seed))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return [{"task": task, "score": {"f1": 1.0}} for task in ("squad1", "squad2")]

    monkeypatch.setattr(squad_real, "one", one)
    monkeypatch.setattr(squad_real, "all_questions", lambda folder: {"squad1 test": TEST})
    monkeypatch.setattr(squad_real, "baselines", lambda data: {})
    output, made, easy = (tmp_path / f"{name}.json" for name in ("squad", "made", "easy"))
    write(made, TEST, "made")
    write(easy, TEST[:1], "easy")
    inputs = {"data": tmp_path, "easy": easy, "made": made, "models": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        grid.run(squad_real, output, 1, **inputs)
    assert len(json.loads(output.read_text())["rows"]) == 4
    grid.run(squad_real, output, 1, **inputs)
    assert json.loads(output.read_text())["questions"]["made train"] == [3, 1]
    rows = json.loads(output.read_text())["rows"]
    assert [row["start"] for row in rows[::2]] == list(squad_real.STARTS)
    assert asked[2:] == [("new weights", 0)] * 2
    assert [
        [*place.values()] for place in grid.places(squad_real, 2)[2:]
    ] == [  # the control is run once
        ["new weights", 0],
        ["spanbert-mini", 1],
        ["bert-mini", 1],
    ]
    write(made, TEST[:2], "made")
    with pytest.raises(
        InputError, match=r"other settings \(questions, made train: \[3, 1\] there, \[2, 0\] now"
    ):
        grid.run(squad_real, output, 1, **inputs)
    write(made, TEST, "made")
    monkeypatch.setitem(squad_real.STAGES, "made", squad_real.STAGES["made"] * 2)
    with pytest.raises(InputError, match=r"other settings \(stages, made"):
        grid.run(squad_real, output, 1, **inputs)


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
    assert main(["experiment", "squad_real", *options, f"--output={tmp_path / 'out.json'}"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_the_auc_by_sorting_equals_the_plain_one():
    rng = np.random.default_rng(0)
    for _ in range(20):
        having = rng.integers(0, 6, 13)
        without = rng.integers(1, 7, 8)
        assert squad_negatives.fast_auc(having, without) == pytest.approx(auc(having, without))


def test_worthless_null_odds_find_no_kind():
    questions = [
        question(str(i), f"Name{i}" if i % 2 else "", f"title {i // 4}") for i in range(16)
    ]
    table = squad_negatives.compare(questions, lambda group: [0.0] * len(group))
    assert {row["auc"] for row in table.values()} == {0.5} and len(table) >= 3
    assert table["written"]["interval"] == [0.5, 0.5]


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
    assert (
        len(ones["squad2 train"] & ones["squad1 test"]) == 8
    )  # so models of 2.0 are not scored on 1.1
