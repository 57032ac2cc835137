"""`finetune squad`, `evaluate squad` and `answer` as one uses them, from questions to a printed
answer."""

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from test_main import run

from spanbert_tutorial.engine import snapshots
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import squad, squad_files

TINY = data_path("checkpoints", "spanbert-tiny")
READER = data_path("reader", "reader.json")
SMALL = ["--max-length", 128, "--doc-stride", 64, "--epochs", 0.2, "--batch-size", 8]


@pytest.fixture(autouse=True)
def without_bar(monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")


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
    code, out, err = run(
        capsys,
        "finetune",
        "squad",
        "--data",
        first,
        second,
        READER,
        "--init-from",
        TINY,
        "--output",
        model,
        *SMALL,
    )  # each question counts once
    assert (code, err) == (0, "") and "294 questions, 145 without an answer, 294 skipped." in out
    names = {path.name for path in model.iterdir()}
    assert names == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "README.md",
        "metrics.jsonl",
    }
    assert not model.with_name("model.training").exists()
    assert "reader.json" in (model / "README.md").read_text(encoding="utf-8")

    code, out, err = run(
        capsys,
        "evaluate",
        "squad",
        "--model",
        model,
        "--data",
        first,
        "--output",
        scores,
        "--tune-on",
        second,
    )
    assert (code, err) == (0, "147 questions, 72 without an answer, 0 skipped.\n")
    questions = squad.read(first)
    predictions = squad.read_predictions(scores / "predictions.json", questions)
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
        code, out, err = run(
            capsys,
            "evaluate",
            "squad",
            "--model",
            model,
            "--data",
            data,
            "--output",
            tmp_path / "b",
            "--tune-on",
            other,
        )
        assert code == 2 and wanted in err and not (tmp_path / "b").exists()
    squad_files.write(renamed, [questions[0], replace(questions[1], question="\ue000")], "1")
    code, out, err = run(
        capsys, "evaluate", "squad", "--model", model, "--data", renamed, "--output", tmp_path / "b"
    )
    named = f'article "{questions[1].title}", question {questions[1].id}: the question is empty'
    assert code == 2 and named in err and not (tmp_path / "b").exists()

    context = questions[0].context
    text.write_text(context, encoding="utf-8")
    asked = [
        "answer",
        "--model",
        model,
        "--question",
        questions[0].question,
        "--context-file",
        text,
    ]
    code, out, err = run(capsys, *asked, "--threshold", 1e9)
    assert (code, err) == (0, "") and out.splitlines()[0] in context
    assert run(capsys, *asked, "--threshold", -1e9)[1].startswith("(no answer)")
    text.write_bytes(
        b"First line\r\n" * 3 + context.encode()
    )  # offsets count the line ends of the file
    said = run(capsys, *asked, "--threshold", 1e9)[1]
    first, last = map(int, re.search(r"characters (\d+) to (\d+)", said).groups())
    assert text.read_bytes().decode()[first:last] == said.rsplit("\nscore", 1)[0]


def test_a_threshold_needs_questions_without_an_answer(capsys, tmp_path):
    content = json.loads(READER.read_text(encoding="utf-8"))
    for paragraph in (
        paragraph for article in content["data"] for paragraph in article["paragraphs"]
    ):
        paragraph["qas"] = [entry for entry in paragraph["qas"] if entry["answers"]]
    file = tmp_path / "answerable.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    given = ["evaluate", "squad", "--model", TINY, "--data", file, "--output", tmp_path / "scores"]
    code, out, err = run(capsys, *given, "--tune-on", READER)
    assert code == 2 and "leave out --tune-on" in err and not (tmp_path / "scores").exists()


def test_a_control_starts_from_new_weights_and_seeds_differ(capsys, tmp_path):
    made = {}
    for name, more in {"a": [], "b": [], "c": ["--seed", 1], "d": ["--untrained"]}.items():
        given = ["--data", READER, "--init-from", TINY, "--output", tmp_path / name, *SMALL, *more]
        assert run(capsys, "finetune", "squad", *given)[0] == 0
        made[name] = (tmp_path / name / "model.safetensors").read_bytes()
    assert made["a"] == made["b"] and len({made["a"], made["c"], made["d"]}) == 3


def test_a_second_stage_keeps_the_head_of_the_first(capsys, tmp_path):
    """With a learning rate near 0 it comes out as it went in; a control has a new one."""
    given = ["finetune", "squad", "--data", READER, *SMALL]
    still = ["--learning-rate", 1e-12, "--seed", 1]
    said = {}
    for name, start, more in (
        ("first", TINY, []),
        ("second", tmp_path / "first", still),
        ("control", tmp_path / "first", [*still, "--untrained"]),
    ):
        code, said[name], _ = run(
            capsys, *given, "--init-from", start, *more, "--output", tmp_path / name
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
    assert torch.allclose(first, second, atol=1e-3) and not torch.allclose(
        first, control, atol=1e-2
    )


def test_bad_input_is_one_sentence_and_writes_nothing(capsys, tmp_path):
    (tmp_path / "taken").mkdir()
    before = sorted(tmp_path.rglob("*"))
    finetune = ["finetune", "squad", "--data", READER, "--init-from", TINY, "--output"]
    cases = [
        ([*finetune, tmp_path / "taken"], "exists already"),
        ([*finetune, "."], "exists already"),
        ([*finetune, tmp_path / "new", "--resume"], "no stopped run"),
        ([*finetune, tmp_path / "new", "--epochs", -1], "epochs is -1.0"),
        ([*finetune, tmp_path / "new", "--max-length", 5000], "longer than the encoder's 512"),
        (
            [*finetune[:3], tmp_path / "no.json", *finetune[4:], tmp_path / "new"],
            "no.json does not exist",
        ),
        (
            ["evaluate", "squad", "--model", TINY, "--data", READER, "--output", tmp_path / "new"],
            "no question answer",
        ),
        (
            ["answer", "--model", TINY, "--question", "?", "--context-file", tmp_path / "no.txt"],
            "does not exist: give",
        ),
        (
            [*finetune, tmp_path / "new", "--seed", 2**63],
            "seed is 9223372036854775808: give a whole number",
        ),
    ]
    for arguments, wanted in cases:
        code, _, err = run(capsys, *arguments)
        assert code == 2 and wanted in err and err.count("\n") == 1, (arguments, err)
        assert sorted(tmp_path.rglob("*")) == before


def test_a_stopped_fine_tuning_goes_on_and_ends_the_same(capsys, monkeypatch, tmp_path):
    file = tmp_path / "questions.json"
    file.write_text(READER.read_text(encoding="utf-8"), encoding="utf-8")
    given = ["finetune", "squad", "--data", file, "--init-from", TINY, *SMALL, "--output"]
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


def test_the_preset_goes_by_width_and_is_named(capsys, tmp_path):
    from spanbert_tutorial.__main__ import parser
    from spanbert_tutorial.commands.tasks import TASKS, chosen_settings
    from spanbert_tutorial.tasks.question_answering import PRESETS

    def chosen(width, *more):
        given = ["finetune", "squad", "--data", "x", "--init-from", "y", "--output", "z", *more]
        return chosen_settings(parser().parse_args(given), TASKS["squad"], width)

    assert (chosen(256), chosen(768)) == (PRESETS["small"], PRESETS["spanbert"])
    assert chosen(1024, "--preset", "bert-squad2", "--seed", "4").batch_size == 48
    assert (
        chosen(256, "--preset", "short-first") == PRESETS["short-first"]
        and PRESETS["short-first"].answers_only
    )
    assert chosen(256, "--answers-only") == replace(PRESETS["small"], answers_only=True)
    code, _, err = run(
        capsys,
        "finetune",
        "squad",
        "--data",
        READER,
        "--init-from",
        TINY,
        "--output",
        tmp_path / "m",
        "--preset",
        "large",
    )
    assert code == 2 and "short-first, small, bert-squad1, bert-squad2, spanbert" in err


def test_a_foreign_vocabulary_is_one_line_of_warning(capsys, tmp_path):
    text = tmp_path / "context.txt"
    text.write_text("The bridge was built in 1890.", encoding="utf-8")
    code, _, err = run(
        capsys,
        "answer",
        "--model",
        data_path("checkpoints", "spanbert-mini-squad"),
        "--vocabulary",
        data_path("almanac", "vocab.txt"),
        "--question",
        "When?",
        "--context-file",
        text,
    )
    assert (
        code == 0
        and err.startswith("warning: the vocabulary has only 2,000 tokens")
        and err.count("\n") == 1
    )
