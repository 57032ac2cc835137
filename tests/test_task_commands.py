"""`finetune TASK` and `evaluate TASK` with a task that somebody else wrote: one file and one
row."""

import json

import pytest
import stranger_task
import torch
from safetensors.torch import load_file, save_file
from test_main import run

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.commands.tasks import TASKS, Task
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks.tagging import Tagger

TINY = data_path("checkpoints", "spanbert-tiny")


@pytest.fixture(autouse=True)
def row(monkeypatch):
    own = stranger_task
    told = "a label for a sentence", "sentence", "files of lines"
    task = Task(*told, own, own.Labeller, own.score)
    monkeypatch.setitem(TASKS, "labels", task)


@pytest.fixture
def data(tmp_path):
    """Whether the town or the river is named first."""
    file = tmp_path / "data.tsv"
    lines = []
    for number in range(40):
        lines += [
            f"town\tThe town number {number} lies there.",
            f"river\tA river passes by in {number} places.",
        ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@pytest.fixture
def model(tmp_path, data, capsys):
    output = tmp_path / "model"
    line = f"finetune labels --data {data} --init-from {TINY} --output {output}"
    code, said, wrong = run(capsys, line)
    assert (code, wrong) == (0, "") and "80 sentences, 0 skipped." in said
    return output


def test_a_task_is_trained_kept_and_scored(model, data, tmp_path, capsys):
    assert (
        "For a label for a sentence. Started from spanbert-tiny; 80 sentences"
        in (model / "README.md").read_text()
    )
    scores = tmp_path / "scores"
    line = f"evaluate labels --model {model} --data {data} --output {scores}"
    code, said, wrong = run(capsys, line)
    assert (code, wrong) == (0, "80 sentences, 0 skipped.\n")
    assert json.loads(said) == json.loads((scores / "score.json").read_text()) == {"accuracy": 1.0}
    assert json.loads((scores / "predictions.json").read_text()) == ["town", "river"] * 40
    with pytest.warns(UserWarning, match="left out of .*: head"):
        BertEncoder.from_huggingface(model)


def test_a_checkpoint_of_another_task_or_with_another_head_is_refused(
    model, tmp_path, data, capsys
):
    refused = {TINY: "has no head of this task", model: "was fine-tuned for labels"}
    for source, wanted in refused.items():
        with pytest.raises(InputError, match=wanted):
            Tagger.from_pretrained(source)
    with pytest.raises(InputError, match="was fine-tuned for labels: give a model of `pretrain`"):
        load_checkpoint(model)
    weights = load_file(model / "model.safetensors")
    bias = "head.classifier.bias"
    cases = {
        "classifier.bias is missing": {},
        "more is surplus": {bias: torch.zeros(2), "head.more": torch.zeros(2)},
        "size mismatch for classifier.bias": {bias: torch.zeros(3)},
    }
    for wanted, changed in cases.items():
        save_file(
            {name: w for name, w in weights.items() if name != bias} | changed,
            model / "model.safetensors",
        )
        with pytest.raises(InputError, match=wanted):
            stranger_task.Labeller.from_pretrained(model)
    (data.parent / "bad.tsv").write_text("town\tA town.\nno tab", encoding="utf-8")
    bad, line = data.parent / "bad.tsv", f"evaluate labels --model {model} --data"
    code, _, wrong = run(capsys, f"{line} {bad} --output {tmp_path / 's'}")
    assert code == 2 and "bad.tsv, line 2" in wrong and not (tmp_path / "s").exists()
