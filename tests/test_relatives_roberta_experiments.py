"""The experiments behind the chapter on RoBERTa, at a toy size; and its kept figures on real
files."""

import json
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from research import grid
from research.experiments import roberta_formats, roberta_masks, roberta_real
from spanbert_tutorial import almanac
from spanbert_tutorial.__main__ import main
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.relatives.byte_bpe import ByteBPE
from spanbert_tutorial.relatives.roberta import FORMATS
from spanbert_tutorial.text.encoding import encode_corpus
from spanbert_tutorial.text.sentences import split_sentences

REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    folder = tmp_path_factory.mktemp("text")
    sentences = [
        split_sentences(document["text"]) for document in islice(almanac.read("train"), 12)
    ]
    parts = [
        encode_corpus(sentences, wordpiece.encode_many, len(wordpiece), folder / name)
        for name in "ab"
    ]
    return EncodedText(*parts, wordpiece)


def test_the_first_documents(text):
    part = roberta_masks.first_documents(text.train, 3)
    assert len(part.document_ends) == 3 and part.document_ends[-1] == part.sentence_ends[-1] == len(
        part.ids
    )
    assert (part.ids == text.train.ids[: len(part.ids)]).all()


def test_the_ways_start_alike_and_then_differ(text):
    run = Run(objective="mlm", steps=5, batch_size=16)  # 40 blocks: an epoch is 3 steps
    losses = {
        way: roberta_masks.pretrain(way, run, text)[1].losses["mlm"] for way in roberta_masks.ARMS
    }
    assert losses["static"][:3] == losses["ten copies"][:3] == losses["dynamic"][:3]
    assert (
        len({tuple(values) for values in losses.values()}) == 2
    )  # the second copy is also dynamic's second draw
    assert losses["static"][3:] != losses["dynamic"][3:]


def test_every_model_is_measured_with_the_same_new_masks(text):
    run = Run(objective="mlm", steps=1, batch_size=16)
    model = runs.new_model(run, text).eval()
    figures = roberta_masks.losses(model, run, text)
    assert figures == roberta_masks.losses(model, run, text)
    assert figures["held out"] == figures["trained on"]  # here both parts are the same text
    assert figures["held out"]["loss"] == pytest.approx(np.log(2_000), abs=0.8)


def test_a_stopped_command_goes_on_where_it_was(text, tmp_path, monkeypatch):
    trained = []

    def pretrain(way, run, text):
        trained.append((way, run.seed))
        return None, History([1], {"mlm": [1.0]})

    monkeypatch.setattr(roberta_masks, "small", lambda whole, *counts: text)
    monkeypatch.setattr(roberta_masks, "open_text", lambda *given: text)
    monkeypatch.setattr(roberta_masks, "pretrain", pretrain)
    monkeypatch.setattr(
        roberta_masks, "losses", lambda model, run, text: {"held out": {"loss": 2.0}}
    )
    output = tmp_path / "results.json"
    for seeds in (1, 2):
        grid.run(roberta_masks, output, seeds)
    ways = list(roberta_masks.ARMS)
    assert trained == [
        ("dynamic", 0),
        *[(way, seed) for seed in range(2) for way in ways],
    ]  # first what a chapter does
    kept = json.loads(output.read_text())
    assert len(kept["rows"]) == 6 and kept["epochs"] == kept["run"]["steps"] / -(
        -kept["blocks"] // 16
    )
    with pytest.raises(InputError, match="run, max_length: 64 there, 32 now"):
        other = roberta_masks.SETTINGS | {"run": replace(roberta_masks.RUN, max_length=32)}
        grid.run(roberta_masks, output, settings=other)


def test_the_kept_runs_are_forty_epochs():
    kept = json.loads(data_path("results", "roberta_masks.json").read_text(encoding="utf-8"))
    assert (
        roberta_masks.RUN.steps == kept["run"]["steps"] == kept["epochs"] * -(-kept["blocks"] // 16)
    )
    assert kept["epochs"] == roberta_masks.EPOCHS


def test_models_are_measured_in_every_format(text, tmp_path, monkeypatch):
    settings = {"run": replace(roberta_formats.RUN, steps=1, batch_size=4), "measured": 12}
    monkeypatch.setattr(roberta_masks, "open_text", lambda *given: text)
    output = tmp_path / "results.json"
    grid.run(roberta_formats, output, 1, settings=settings)
    kept = json.loads(output.read_text())
    assert [row["format"] for row in kept["rows"]] == list(FORMATS)
    for row in kept["rows"]:
        assert set(row["held_out"]) == set(FORMATS) and 50 < row["tokens_a_step"] < 300
        assert ("nsp" in row["held_out"]["SEGMENT-PAIR+NSP"]) == ("NSP" in row["format"])
    grid.run(roberta_formats, output, 1, settings=settings)
    assert json.loads(output.read_text()) == kept


def test_all_formats_start_from_the_same_encoder(text):
    run = replace(roberta_formats.RUN, steps=1)
    starts = [
        runs.new_model(replace(run, objective=name), text).encoder.parameters()
        for name in ("mlm", "mlm+nsp")
    ]
    assert all(torch.equal(a, b) for a, b in zip(*starts, strict=True))


def test_tokens_of_both_kinds(text):
    byte_bpe = ByteBPE.train(["the river runs past the mill"] * 3, 280)
    found = roberta_real.cut({"a": "the mill 한", "b": " the"}, text.wordpiece, byte_bpe)
    assert (
        found["a"]["unknown"] == 1
        and found["a"]["wordpiece"][-1] == "[UNK]"
        and not found["a"]["wordpiece_back"]
    )
    assert (
        found["a"]["byte_bpe_back"]
        and found["b"]["byte_bpe_back"]
        and not found["b"]["wordpiece_back"]
    )
    assert roberta_real.hangul("나는 a 한") == 3


def test_missing_files_are_named(tmp_path, capsys):
    given = ["--data", str(tmp_path), "--output", str(tmp_path / "x.json")]
    assert main(["experiment", "roberta_real", *given]) == 2
    assert "gpt2-encoder.json.xz" in capsys.readouterr().err


@pytest.mark.real_data
def test_the_kept_figures_are_those_of_the_real_files():
    kept = json.loads(data_path("results", "roberta_real.json").read_text(encoding="utf-8"))
    wordpiece, byte_bpe = roberta_real.vocabularies(REAL / "vocab")
    assert roberta_real.cut(roberta_real.TEXTS, wordpiece, byte_bpe) == kept["texts"]
    found = roberta_real.format_statistics(REAL / "wikipedia" / "valid.jsonl.xz", wordpiece)
    assert roberta_real.rounded(found) == kept["wikipedia"]
