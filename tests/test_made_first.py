"""The experiment on made questions, on a toy size."""

import json
import os
from pathlib import Path

import pytest
import torch

from research import grid
from research.experiments import made_first, squad_real
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.squad import read
from spanbert_tutorial.tasks.squad_files import write

WORDPIECE = WordPiece.from_file(data_path("checkpoints", "bert-mini", "tokenizer.json"))
QUESTIONS = [question for question in read(data_path("reader", "reader.json")) if question.answers]


def tiny(name="spanbert-mini", seed=0):
    config = EncoderConfig.tiny(
        vocab_size=len(WORDPIECE), max_position_embeddings=256, num_hidden_layers=1
    )
    return BertEncoder(config, torch.Generator().manual_seed(seed)), WORDPIECE


GROUPS = {
    "real": QUESTIONS[:40],
    "made": QUESTIONS[50:80],
    "easy": QUESTIONS[80:100],
    "test": QUESTIONS[40:50],
}


@pytest.mark.parametrize("arm", made_first.ARMS)
def test_both_arms_read_the_same_number_of_tokens(arm):
    row = made_first.trained(arm, 0, *tiny(), GROUPS, tokens=16_384)
    assert [stage["questions"] for stage in row["stages"]] == [
        name for name, _, _ in made_first.ARMS[arm]
    ]
    read_tokens = sum(
        stage["steps"] * stage["settings"]["batch_size"] * stage["settings"]["max_length"]
        for stage in row["stages"]
    )
    assert read_tokens == pytest.approx(16_384, rel=0.1)  # whole steps
    assert 0 <= row["score"]["exact"] <= row["score"]["f1"] <= 100


def test_a_stopped_command_goes_on_and_seeds_repeat(tmp_path, monkeypatch):
    monkeypatch.setattr(made_first, "split", lambda folder: (QUESTIONS[:40], QUESTIONS[40:50]))
    monkeypatch.setattr(squad_real, "start", tiny)
    output, *files = (tmp_path / f"{name}.json" for name in ("first", "easy", "made"))
    for file in files:
        write(file, GROUPS[file.stem], "made")
    settings = made_first.SETTINGS | {"tokens": 2_000}
    inputs = {"data": tmp_path} | {file.stem: file for file in files}
    grid.run(made_first, output, 1, settings=settings, **inputs)
    first = json.loads(output.read_text(encoding="utf-8"))
    assert [row["arm"] for row in first["rows"]] == list(made_first.ARMS)
    output.write_text(json.dumps({**first, "rows": first["rows"][1:]}), encoding="utf-8")
    grid.run(made_first, output, 1, settings=settings, **inputs)
    again = json.loads(output.read_text(encoding="utf-8"))["rows"]
    assert again == first["rows"]
    with pytest.raises(InputError, match="of other settings"):
        grid.run(made_first, output, 1, settings=settings | {"tokens": 1}, **inputs)
    write(files[0], GROUPS["made"], "easy")
    with pytest.raises(InputError, match=r"of other settings \(fingerprint"):
        grid.run(made_first, output, 1, settings=settings, **inputs)


def test_a_missing_folder_is_named(tmp_path, capsys):
    options = [f"--{name}={tmp_path / name}" for name in ("data", "easy", "made", "output")]
    assert main(["experiment", "made_first", *options]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.real_data
def test_no_article_is_trained_on_and_scored():
    train, test = made_first.split(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"], "squad"))
    assert not {question.title for question in train} & {question.title for question in test}
    assert len(test) == made_first.HELD_OUT and len(train) > 25_000
