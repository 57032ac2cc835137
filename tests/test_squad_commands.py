"""`finetune squad`, `evaluate squad` and `answer` as one uses them, from questions to a printed
answer."""

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from test_main import FILES, run

from spanbert_tutorial.engine import snapshots
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad, squad_files

TINY = data_path("checkpoints", "spanbert-tiny")
READER = data_path("reader", "reader.json")
SMALL = ["--max-length", 128, "--doc-stride", 64, "--epochs", 0.2, "--batch-size", 8]


def halves(folder) -> tuple:
    """The reader's articles in two files: every second one."""
    content = json.loads(READER.read_text(encoding="utf-8"))
    files = []
    for number in range(2):
        files.append(folder / f"half{number}.json")
        half = {**content, "data": content["data"][number::2]}
        files[-1].write_text(json.dumps(half, ensure_ascii=False), encoding="utf-8")
    return tuple(files)


def test_from_questions_to_an_answer(capsys, tmp_path):
    first, second = halves(tmp_path)
    model = tmp_path / "model"
    scores = tmp_path / "scores"
    text = tmp_path / "context.txt"
    # each question counts once
    line = f"finetune squad --data {first} {second} {READER} --init-from {TINY} --output {model}"
    code, out, err = run(capsys, line, *SMALL)
    assert code == 0 and "1 answer is longer" in err
    assert "294 questions, 145 without an answer, 294 skipped." in out
    assert {path.name for path in model.iterdir()} == FILES
    assert not model.with_name("model.training").exists()
    assert "reader.json" in (model / "README.md").read_text(encoding="utf-8")

    evaluate = f"evaluate squad --model {model}"
    line = f"{evaluate} --data {first} --output {scores} --tune-on {second}"
    code, out, err = run(capsys, line)
    assert (code, err) == (0, "147 questions, 72 without an answer, 0 skipped.\n")
    questions = squad.read(first)
    predictions = json.loads((scores / "predictions.json").read_text(encoding="utf-8"))
    kept = json.loads((scores / "score.json").read_text(encoding="utf-8"))
    assert kept == json.loads(out)
    again = squad.score(predictions, questions)
    assert {name: kept[name] for name in again} == pytest.approx(again)
    # the official evaluation, given texts and null scores, finds the same best threshold
    texts, odds = (
        json.loads((scores / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("texts", "null_odds")
    )
    best = kept["tuned_on_the_same_questions"]
    assert squad.best_threshold(texts, questions, odds) == (best["best_f1"], best["best_f1_thresh"])
    assert kept["f1"] <= best["best_f1"] + 1e-9  # no prediction here is an article alone
    answerable = tmp_path / "answerable.json"
    renamed = tmp_path / "renamed.json"
    squad_files.write(answerable, [q for q in squad.read(second) if q.answers], "1")
    squad_files.write(renamed, [replace(q, id=f"{q.id}-again") for q in questions], "1")
    for data, other, wanted in (
        (READER, second, "contains questions of"),
        (first, renamed, "contains questions of"),
        (first, answerable, "questions without one"),
    ):
        line = f"{evaluate} --data {data} --output {tmp_path / 'b'} --tune-on {other}"
        code, out, err = run(capsys, line)
        assert code == 2 and wanted in err and not (tmp_path / "b").exists()
    squad_files.write(renamed, [questions[0], replace(questions[1], question="\ue000")], "1")
    code, out, err = run(capsys, f"{evaluate} --data {renamed} --output {tmp_path / 'b'}")
    named = f'article "{questions[1].title}", question {questions[1].id}: the question is empty'
    assert code == 2 and named in err and not (tmp_path / "b").exists()

    context = questions[0].context
    text.write_text(context, encoding="utf-8")
    answer = f"answer --model {model} --context-file {text} --threshold="
    asked = "--question", questions[0].question
    code, out, err = run(capsys, f"{answer}1e9", *asked)
    assert (code, err) == (0, "") and out.splitlines()[0] in context
    assert run(capsys, f"{answer}-1e9", *asked)[1].startswith("(no answer)")
    # offsets count the line ends of the file
    text.write_bytes(b"First line\r\n" * 3 + context.encode())
    said = run(capsys, f"{answer}1e9", *asked)[1]
    first, last = map(int, re.search(r"characters (\d+) to (\d+)", said).groups())
    assert text.read_bytes().decode()[first:last] == said.rsplit("\nscore", 1)[0]


def test_a_control_starts_from_new_weights_and_seeds_differ(capsys, tmp_path):
    made = {}
    for name, more in {"a": [], "b": [], "c": ["--seed", 1], "d": ["--untrained"]}.items():
        line = f"finetune squad --data {READER} --init-from {TINY} --output {tmp_path / name}"
        assert run(capsys, line, *SMALL, *more)[0] == 0
        made[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert made["a"] == made["b"] and len({made["a"], made["c"], made["d"]}) == 3


def test_a_second_stage_keeps_the_head_of_the_first(capsys, tmp_path):
    """With a learning rate near 0 it comes out as it went in; a control has a new one."""
    line = f"finetune squad --data {READER}"
    still = ["--learning-rate", 1e-12, "--seed", 1]
    said = {}
    for name, start, more in (
        ("first", TINY, []),
        ("second", tmp_path / "first", still),
        ("control", tmp_path / "first", [*still, "--untrained"]),
    ):
        code, said[name], _ = run(
            capsys, f"{line} --init-from {start} --output {tmp_path / name}", *SMALL, *more
        )
        assert code == 0
    assert ["head of the checkpoint is kept" in told for told in said.values()] == [
        False,
        True,
        False,
    ]
    cards = [(tmp_path / name / "README.md").read_text(encoding="utf-8") for name in said]
    assert ["with its head" in one for one in cards] == [False, True, False]
    first, second, control = (
        load_file(tmp_path / name / "model.safetensors")["qa_outputs.weight"] for name in said
    )
    assert torch.allclose(first, second, atol=1e-3)
    assert not torch.allclose(first, control, atol=1e-2)


def test_a_stopped_fine_tuning_goes_on_and_ends_the_same(capsys, monkeypatch, tmp_path):
    file = tmp_path / "questions.json"
    file.write_text(READER.read_text(encoding="utf-8"), encoding="utf-8")
    given = [f"finetune squad --data {file} --init-from {TINY}", *SMALL, "--output"]
    assert run(capsys, *given, tmp_path / "whole")[0] == 0

    def stop(*anything):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "EVERY", 0.0)
        write = snapshots.Snapshots.write  # just after the first snapshot is whole
        patch.setattr(snapshots.Snapshots, "write", lambda *given: write(*given) or stop())
        assert run(capsys, *given, tmp_path / "stopped")[0] == 130
    assert not (tmp_path / "stopped").exists()
    code, _, err = run(capsys, *given, tmp_path / "stopped")
    assert code == 2 and "continue it with --resume" in err
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole.replace("Who", "Why", 1), encoding="utf-8")  # as long as before
    code, _, err = run(capsys, *given, tmp_path / "stopped", "--resume")
    assert code == 2 and "content was" in err
    file.write_text(whole, encoding="utf-8")
    assert run(capsys, *given, tmp_path / "stopped", "--resume")[0] == 0
    first, second = (
        (tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")
    )
    assert first == second
