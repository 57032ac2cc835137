"""The experiment on easy text first, on a toy size."""

import json
from dataclasses import replace

import pytest

from spanbert_tutorial import almanac
from spanbert_tutorial.experiments import easy_first

TOY = replace(easy_first.RUN, size="tiny", steps=4, batch_size=4)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    texts = [document["text"] for document, _ in zip(almanac.read("train"), range(60), strict=False)]
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def output(corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "easy.json"
    easy_first.run_all(str(corpus), path, 1, TOY, pieces=500)
    return path


def test_every_arm_has_the_same_budget_and_a_first_stage_its_half(output):
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert [row["arm"] for row in rows] == list(easy_first.ARMS)
    assert ["first" in row["curves"] for row in rows] == [False, True, True]
    assert all(row["held_out"]["mlm"] > 0 for row in rows)


def test_arms_differ_and_a_seed_repeats(corpus, output, tmp_path):
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert len({row["held_out"]["mlm"] for row in rows}) == len(rows)
    easy_first.run_all(str(corpus), tmp_path / "again.json", 1, TOY, pieces=500)
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["rows"]
    assert [row["held_out"] for row in again] == [row["held_out"] for row in rows]


def test_a_stopped_command_runs_only_what_is_missing(corpus, output):
    content = json.loads(output.read_text(encoding="utf-8"))
    content["rows"] = content["rows"][:-1]
    content["rows"][0]["seconds"] = -1  # to be recognised
    output.write_text(json.dumps(content), encoding="utf-8")
    easy_first.run_all(str(corpus), output, 1, TOY, pieces=500)
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == len(easy_first.ARMS) and rows[0]["seconds"] == -1 and rows[-1]["seconds"] >= 0


def test_a_corpus_that_is_not_there_is_named(tmp_path, capsys):
    command = ["--corpus", str(tmp_path / "no.txt"), "--output", str(tmp_path / "out.json")]
    assert easy_first.main(command) == 2
    assert "no.txt" in capsys.readouterr().err
