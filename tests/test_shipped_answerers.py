"""The shipped models that answer real questions: what their cards say is true."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

from spanbert_tutorial.ablation import paired_interval
from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.experiments import squad_real
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.real_questions import answered

REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))
KEPT = json.loads(data_path("results", "squad_real.json").read_text(encoding="utf-8"))
MODELS = [(start, task) for start in ("spanbert-mini", "bert-mini") for task in ("squad1", "squad2")]


def card(start: str, task: str) -> str:
    return data_path("checkpoints", f"{start}-{task}", "README.md").read_text(encoding="utf-8")


def kept(start: str, task: str) -> dict:
    """The run whose model is shipped."""
    (row,) = (row for row in KEPT["rows"] if (row["start"], row["task"], row["seed"]) == (start, task, 0))
    return row


def scores(text: str, what: str) -> list[float]:
    """Exact match and F1 of one line of a card."""
    (pair,) = re.findall(rf"^- {what}[^:\n]*: exact ([\d.]+), f1 ([\d.]+)", text, flags=re.MULTILINE)
    return [float(number) for number in pair]


@pytest.mark.parametrize("start, task", MODELS)
def test_the_card_repeats_the_kept_run(start, task):
    text, row = card(start, task), kept(start, task)
    assert scores(text, "SQuAD") == [round(row["score"][name], 2) for name in ("exact", "f1")]
    before = kept(start, "made")["stages"] if task == "squad1" else []
    ends = [f"| {stage['steps']:,} | {stage['loss']:.2f} |" for stage in (*before, *row["stages"])]
    lines = [line for line in text.splitlines() if re.match(r"\| \d \|", line)]
    assert len(lines) == len(ends) and all(line.endswith(end) for line, end in zip(lines, ends, strict=True))
    assert "CC BY-SA 4.0" in text and "/tmp" not in text


@pytest.mark.parametrize("start", ["spanbert-mini", "bert-mini"])
def test_it_beats_programs_that_learn_nothing_and_the_card_says_where_it_does_not(start):
    assert kept(start, "squad1")["score"]["f1"] > KEPT["baselines"]["type"]["squad1"]["f1"] + 10
    without_real_ones = kept(start, "made")["score"]
    assert without_real_ones["f1"] < KEPT["baselines"]["lexical"]["squad1"]["f1"]
    assert f"(stage 1 only): exact {without_real_ones['exact']:.2f}, f1 {without_real_ones['f1']:.2f}" in \
        card(start, "squad1")
    never = KEPT["baselines"]["always abstain"]["squad2"]["f1"]
    assert f"never answers: f1 {never:.2f}" in card(start, "squad2")


def f1s(start: str, task: str) -> list[float]:
    """F1 of the kept runs, in the order of their seeds."""
    rows = [row for row in KEPT["rows"] if (row["start"], row["task"]) == (start, task)]
    assert [row["seed"] for row in rows] == list(range(squad_real.SEEDS))
    return [row["score"]["f1"] for row in rows]


@pytest.mark.parametrize("start", ["spanbert-mini", "bert-mini"])
def test_new_weights_read_the_same_questions_and_stay_behind_the_programs_and_the_start(start):
    for task in ("made", "squad1", "squad2"):
        stages = [[stage["settings"] for stage in row["stages"]] for row in KEPT["rows"] if row["task"] == task]
        assert all(one == [{**stage, "seed": one[0]["seed"]} for stage in stages[0]] for one in stages)
        assert len(f1s(start, task)) == len(f1s("new weights", task)) == 3
    mean, half = paired_interval(f1s(start, "squad1"), f1s("new weights", "squad1"))
    assert mean - half > 0
    assert max(f1s("new weights", "squad1")) < KEPT["baselines"]["lexical"]["squad1"]["f1"]


@pytest.mark.parametrize("start, task", MODELS)
def test_it_is_small_and_transformers_opens_it(start, task):
    folder = data_path("checkpoints", f"{start}-{task}")
    assert (folder / "model.safetensors").stat().st_size <= 12e6
    answerer = QuestionAnswerer.from_pretrained(folder)
    assert (answerer.length, answerer.stride) == (256, 128)
    tokenizer, theirs = AutoTokenizer.from_pretrained(folder), AutoModelForQuestionAnswering.from_pretrained(folder)
    pair = tokenizer("Who founded the town?", "The town was founded by Anna Sorel in 1873.", return_tensors="pt")
    ids, segments, mask = (pair[name] for name in ("input_ids", "token_type_ids", "attention_mask"))
    batch = {"ids": ids, "segments": segments, "attention_mask": mask.bool()}
    with torch.no_grad():
        mine, other = answerer.model.scores(batch), theirs(**pair)
    assert torch.allclose(mine[0], other.start_logits, atol=1e-4)
    assert torch.allclose(mine[1], other.end_logits, atol=1e-4)


@pytest.mark.real_data
@pytest.mark.parametrize("start, task", MODELS)
def test_the_first_questions_are_scored_as_the_card_says(start, task):
    questions = squad_real.all_questions(REAL / "squad")[f"{task} test"][:400]
    answerer = QuestionAnswerer.from_pretrained(data_path("checkpoints", f"{start}-{task}"))
    texts, _, odds = answered(answerer, questions)
    again = squad.score(texts, questions, odds, kept(start, task)["score"].get("threshold", float("inf")))
    said = scores(card(start, task), "its first 400 questions")
    assert [again["exact"], again["f1"]] == pytest.approx(said, abs=0.3)
