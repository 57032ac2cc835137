"""The experiment on easy text first, on a toy size."""

import json
from dataclasses import replace

import pytest

from research import grid
from research.experiments import easy_first
from spanbert_tutorial import almanac
from spanbert_tutorial.__main__ import main

TOY = easy_first.SETTINGS | {
    "run": replace(easy_first.RUN, size="tiny", steps=4, batch_size=4),
    "vocab_size": 500,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    texts = [
        document["text"] for document, _ in zip(almanac.read("train"), range(60), strict=False)
    ]
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def output(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "easy.json"
    grid.run(easy_first, path, 1, settings=TOY, corpus=corpus)
    return path


def test_every_arm_has_the_same_budget_and_a_first_stage_its_half(output):
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row["arm"] for row in rows] == list(easy_first.ARMS)
    assert ["first" in row["curves"] for row in rows] == [False, True, True]
    assert all(row["held_out"]["mlm"] > 0 for row in rows)


def test_arms_differ_and_a_seed_repeats(corpus, output, tmp_path):
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert len({row["held_out"]["mlm"] for row in rows}) == len(rows)
    grid.run(easy_first, tmp_path / "again.json", 1, settings=TOY, corpus=corpus)
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["rows"]
    assert [row["held_out"] for row in again] == [row["held_out"] for row in rows]


def test_a_stopped_command_runs_only_what_is_missing(corpus, output):
    content = json.loads(output.read_text(encoding="utf-8"))
    content["rows"] = content["rows"][:-1]
    content["rows"][0]["seconds"] = -1  # to be recognized
    output.write_text(json.dumps(content), encoding="utf-8")
    grid.run(easy_first, output, 1, settings=TOY, corpus=corpus)
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert (
        len(rows) == len(easy_first.ARMS) and rows[0]["seconds"] == -1 and rows[-1]["seconds"] >= 0
    )


def test_a_corpus_that_is_not_there_is_named(tmp_path, capsys):
    command = ["--corpus", str(tmp_path / "no.txt"), "--output", str(tmp_path / "out.json")]
    assert main(["experiment", "easy_first", *command]) == 2
    assert "no.txt" in capsys.readouterr().err
