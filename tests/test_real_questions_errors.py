"""Where the shipped models err: the measures by hand, and the kept results beside what others have
measured."""

import ast
import json
import os
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest

from environment import ROOT
from research.experiments import answer_errors, squad_real
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.squad import GoldAnswer, Question

CONTEXT = "Mara wrote it in Brell. Lund read it in 1901."
KEPT = json.loads(data_path("results", "answer_errors.json").read_text(encoding="utf-8"))
OTHERS = json.loads(data_path("results", "squad_real.json").read_text(encoding="utf-8"))


def question(
    number: str, asked: str, answer: str = "", plausible: str = "", title: str = "one"
) -> Question:
    marks = [
        (GoldAnswer(text, CONTEXT.index(text)),) if text else () for text in (answer, plausible)
    ]
    return Question(number, asked, CONTEXT, title, *marks)


WITH = [
    question("a", "Who wrote it?", "Mara"),
    question("b", "When was it?", "in 1901", title="two"),
]
WITHOUT = [
    question("c", "Who lost it?", "", "Lund"),
    question("d", "When was it lost?", "", "1901", "two"),
    question("e", "Why?"),
]
TEXTS = {"a": "Mara", "b": "Brell", "c": "Lund", "d": "in 1901", "e": "it"}
ODDS = {"a": -2.0, "b": 1.0, "c": -1.0, "d": 0.0, "e": 3.0}


def says(group):
    return {q.id: TEXTS[q.id] for q in group}, group, {q.id: ODDS[q.id] for q in group}


def stubs():
    return dict.fromkeys((*answer_errors.MODELS, *answer_errors.PROGRAMS), says)


def test_silence_by_hand():
    found = answer_errors.silence(WITH + WITHOUT, [WITH[0], WITHOUT[0]], stubs())
    row = found["systems"]["bert-mini"]
    assert (found["questions"], found["without"], found["plausible"]) == (5, 3, 2)
    assert found["articles"] == {"all": 2, "plausible": 2}
    assert (
        row["tuned"]["threshold"] == -2
        and row["tuned"]["HasAns_f1"] == 50
        and row["accuracy"] == 80
    )
    assert row["forced"]["mean"] == 50 and row["best accuracy"] == 80
    assert row["plausible"] == {"exact": 50, "f1": pytest.approx(500 / 6)}
    assert row["right"]["exact"] == 50
    assert row["auc"]["mean"] == pytest.approx(4 / 6)
    assert len(row["risk"]) == 20 and row["risk"][-1] == 80 and row["risk"][3] == 0


def test_finding_by_hand():
    found = answer_errors.finding(WITH, stubs())
    assert found["groups"]["word"] == {"when": 1, "who": 1}
    assert found["groups"]["length"] == {"1 word": 1, "2 words": 1}
    row = found["systems"]["spanbert-mini"]
    assert row["f1"]["mean"] == row["exact"] == 50 and row["word"]["who"] == {
        "f1": 100,
        "sentence": 100,
    }
    assert row["gain"]["mean"] == 0 and row["length"]["2 words"]["f1"] == 0
    sentences = 100 * (2 / 6 + 2 * (2 / 5) * 1 / (2 / 5 + 1)) / 2  # 1 of 5 words, 2 of 5 words
    assert found["the whole sentence"]["mean"] == pytest.approx(sentences)


def test_random_spans_have_the_length_of_the_answer():
    alone = [replace(WITH[0], context="Mara"), replace(WITH[1], context="in 1901")]
    assert answer_errors.random_spans(alone)["exact"].tolist() == [100, 100]
    many = answer_errors.random_spans([WITH[0]] * 1)["exact"]
    assert 0 <= many[0] < 50


def test_a_plausible_answer_counts_as_the_answer_only_where_there_is_none():
    tempting = answer_errors.misleading(
        [*WITH, *WITHOUT, replace(WITH[0], plausible=WITH[0].answers)]
    )
    assert [(q.id, q.answers[0].text) for q in tempting] == [("c", "Lund"), ("d", "1901")]


def test_the_kept_results_score_the_same_questions_as_the_others():
    assert [KEPT["squad2"][name] for name in ("questions", "without")] == OTHERS["questions"][
        "squad2 test"
    ]
    assert KEPT["squad1"]["articles"] == 16 and KEPT["squad2"]["articles"] == {
        "all": 6,
        "plausible": 2,
    }
    for name, other in (("kind of answer", "type"), ("shared words", "lexical")):
        row = KEPT["squad2"]["systems"][name]["tuned"]
        whole = OTHERS["baselines"][other]
        assert row["f1"] == pytest.approx(whole["squad2"]["f1"], abs=1e-3)
        assert KEPT["squad1"]["systems"][name]["f1"]["mean"] == pytest.approx(
            whole["squad1"]["f1"], abs=2
        )  # on a part


def test_the_kept_groups_are_parts_of_the_whole():
    part = KEPT["squad1"]
    for by, groups in part["groups"].items():
        assert sum(groups.values()) == part["questions"]
        for row in part["systems"].values():
            for key, whole in (("f1", row["f1"]["mean"]), ("sentence", row["sentence"]["mean"])):
                mean = np.average(
                    [row[by][name][key] for name in groups], weights=[*groups.values()]
                )
                assert mean == pytest.approx(whole, abs=1e-3)
    for row in KEPT["squad2"]["systems"].values():
        if "risk" in row:
            answered = (KEPT["squad2"]["questions"] - KEPT["squad2"]["without"]) / KEPT["squad2"][
                "questions"
            ]
            assert row["risk"][-1] == pytest.approx(
                100 - answered * row["forced"]["mean"], abs=1e-3
            )


@pytest.mark.real_data
def test_a_model_and_the_programs_on_some_real_questions():
    groups = squad_real.all_questions(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad"))
    assert len(answer_errors.misleading(groups["squad2 test"])) == KEPT["squad2"]["plausible"]
    counts = {
        by: {name: len(places) for name, places in of.items()}
        for by, of in answer_errors.grouped(
            answer_errors.unread(groups)[:: answer_errors.EVERY]
        ).items()
    }
    assert counts == KEPT["squad1"]["groups"]
    assert (
        len(
            {q.title for q in groups["squad1 test"]}
            - {q.title for q in answer_errors.unread(groups)}
        )
        == 8
    )


# --- the asserts of the chapter and of its evidence see a wrong value -----------------

CELLS = [
    cell
    for page in ("tasks/real_questions", "evidence/questions")
    for cell in nbformat.read(ROOT / "book" / f"{page}.ipynb", as_version=4).cells
    if cell.cell_type == "code"
]
MODELS = {"NAMES": ("spanbert-mini", "bert-mini")}
ORACLE = {
    "scores": {
        "spanbert-mini": [61.1, 71.1],
        "bert-mini": [57.3, 69.5],
        "type of answer": [19.6, 28.4],
        "shared words": [17.0, 28.06],
    },
    "whole": np.array(44.06),
    "ends": [[4.6, 15.5], [5.8, 19.1]],
}
FORCED = {
    "silent": 54.552,
    "systems": {},
    "beyond": [1.714, 3.812],
    "spoken": [23.339, 18.865],
    "must": [59.5075, 56.7959],
    "seeds": [[0.8, 6.7, 2.0], [2.6, 12.9, 17.3]],
    "size": 1428,
    "no": 779,
    "two": KEPT["squad2"],
}
LURED = {
    "table": [31.7, 28.3, 19.3, 13.8, 1.4],
    "there": [22.1, 22.7, 7.7, 3.3, 0.8],
    "lows": (4.7, 0.7),
    "highs": (20.4, 16.9),
    "tempting": [None] * 145,
    "two": KEPT["squad2"],
    "systems": KEPT["squad2"]["systems"],
}


def names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def check(marker: str, given: dict) -> None:
    """Runs the cell of asserts that holds `marker` with the given values in place of its own."""
    (cell,) = [cell for cell in CELLS if marker in cell.source]
    tree = ast.parse(cell.source)
    tree.body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.Assign) and names(node.targets[0]) <= given.keys())
    ]
    exec(compile(tree, "cell", "exec"), {"np": np, "print": lambda text: None, **MODELS, **given})


@pytest.mark.parametrize(
    "marker, given", [("want |= {", ORACLE), ("spoken = [", FORCED), ("there = [systems", LURED)]
)
def test_the_right_values_pass(marker, given):
    check(marker, given)


def swapped(pair: list) -> list:
    return pair[::-1]


@pytest.mark.parametrize(
    "marker, given, name, wrong",
    [
        (
            "want |= {",
            ORACLE,
            "scores",
            {name: swapped(pair) for name, pair in ORACLE["scores"].items()},
        ),
        (
            "want |= {",
            ORACLE,
            "scores",
            {**ORACLE["scores"], "spanbert-mini": ORACLE["scores"]["bert-mini"]},
        ),
        (
            "want |= {",
            ORACLE,
            "scores",
            {**ORACLE["scores"], "bert-mini": [52.7, 56.7]},
        ),  # two sentences instead of one
        ("want |= {", ORACLE, "whole", np.array(38.5)),
        ("want |= {", ORACLE, "ends", swapped(ORACLE["ends"])),
        ("want |= {", ORACLE, "ends", [[-2.5, 12.9], [-1.3, 11.4]]),
        ("spoken = [", FORCED, "seeds", swapped(FORCED["seeds"])),
        ("spoken = [", FORCED, "must", swapped(FORCED["must"])),
        ("spoken = [", FORCED, "must", FORCED["spoken"]),  # silenced by the threshold
        ("spoken = [", FORCED, "spoken", FORCED["must"]),
        ("spoken = [", FORCED, "beyond", swapped(FORCED["beyond"])),
        ("there = [systems", LURED, "table", [19.3, 13.8, 31.7, 28.3, 1.4]),
        ("there = [systems", LURED, "table", [31.7, 31.7, 19.3, 13.8, 1.4]),
        (
            "there = [systems",
            LURED,
            "there",
            [39.1, 36.5, 18.5, 16.0, 1.0],
        ),  # of questions with an answer
        ("there = [systems", LURED, "lows", (0.7, 4.7)),
        ("there = [systems", LURED, "tempting", [None] * 299),
    ],
)
def test_a_wrong_value_or_swapped_arms_fail(marker, given, name, wrong):
    with pytest.raises(AssertionError):
        check(marker, {**given, name: wrong})
