"""`finetune squad`, `evaluate squad` and `answer` as one uses them, from questions to a printed answer."""

import json
import re

import pytest
from test_main import run

from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.tasks import squad

TINY = data_path("checkpoints", "spanbert-tiny")
READER = data_path("reader", "reader.json")
SMALL = ["--length", 128, "--stride", 64, "--epochs", 0.2, "--batch-size", 8]


@pytest.fixture(autouse=True)
def without_bar(monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")


def test_from_questions_to_an_answer(capsys, tmp_path):
    model, scores, text = tmp_path / "model", tmp_path / "scores", tmp_path / "context.txt"
    code, out, err = run(capsys, "finetune", "squad", "--data", READER, "--init-from", TINY, "--output", model, *SMALL)
    assert (code, err) == (0, "") and "294 questions, 145 of them without an answer" in out
    names = {path.name for path in model.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md",
                     "metrics.jsonl"}
    assert not model.with_name("model.training").exists()
    assert "reader.json" in (model / "README.md").read_text(encoding="utf-8")

    code, out, err = run(capsys, "evaluate", "squad", "--model", model, "--data", READER, "--output", scores,
                         "--tune-on", READER)
    assert (code, err) == (0, "")
    questions = squad.read(READER)
    predictions = squad.read_predictions(scores / "predictions.json", questions)
    kept = json.loads((scores / "score.json").read_text(encoding="utf-8"))
    assert kept == json.loads(out)
    again = squad.score(predictions, questions)
    assert {name: kept[name] for name in again} == pytest.approx(again)
    assert kept["f1"] == pytest.approx(kept["tuned_on_the_same_questions"]["best_f1"])  # here tuned on the same, too

    context = questions[0].context
    text.write_text(context, encoding="utf-8")
    asked = ["answer", "--model", model, "--question", questions[0].question, "--context-file", text]
    code, out, err = run(capsys, *asked, "--threshold", 1e9)
    assert (code, err) == (0, "") and out.splitlines()[0] in context
    assert run(capsys, *asked, "--threshold", -1e9)[1].startswith("(no answer)")
    text.write_bytes(b"First line\r\n" * 3 + context.encode())  # offsets count the line ends of the file
    said = run(capsys, *asked, "--threshold", 1e9)[1]
    first, last = map(int, re.search(r"characters (\d+) to (\d+)", said).groups())
    assert text.read_bytes().decode()[first:last] == said.rsplit("\nscore", 1)[0]


def test_a_threshold_needs_questions_without_an_answer(capsys, tmp_path):
    content = json.loads(READER.read_text(encoding="utf-8"))
    for paragraph in (paragraph for article in content["data"] for paragraph in article["paragraphs"]):
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


def test_bad_input_is_one_sentence_and_writes_nothing(capsys, tmp_path):
    (tmp_path / "taken").mkdir()
    before = sorted(tmp_path.rglob("*"))
    finetune = ["finetune", "squad", "--data", READER, "--init-from", TINY, "--output"]
    cases = [
        ([*finetune, tmp_path / "taken"], "exists already"),
        ([*finetune, tmp_path / "new", "--resume"], "no stopped run"),
        ([*finetune, tmp_path / "new", "--epochs", -1], "epochs is -1.0"),
        ([*finetune, tmp_path / "new", "--length", 5000], "longer than the encoder's 512"),
        ([*finetune[:3], tmp_path / "no.json", *finetune[4:], tmp_path / "new"], "no.json does not exist"),
        (["evaluate", "squad", "--model", TINY, "--data", READER, "--output", tmp_path / "new"], "no question answer"),
        (["answer", "--model", TINY, "--question", "?", "--context-file", tmp_path / "no.txt"], "cannot be read"),
    ]
    for arguments, wanted in cases:
        code, _, err = run(capsys, *arguments)
        assert code == 2 and wanted in err and err.count("\n") == 1, (arguments, err)
        assert sorted(tmp_path.rglob("*")) == before
