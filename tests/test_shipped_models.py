"""The shipped model of Wikipedia: what its card says is true."""

import json
import os
import re
from pathlib import Path

import pytest
from transformers import AutoTokenizer, BertModel

from spanbert_tutorial import runs
from spanbert_tutorial.checkpoints import continue_from, load_checkpoint
from spanbert_tutorial.corpora import documents, encode_corpus
from spanbert_tutorial.data_files import data_path
from spanbert_tutorial.pretraining import fill

FOLDER = data_path("checkpoints", "mini-start")
CARD = (FOLDER / "README.md").read_text(encoding="utf-8")
REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))


@pytest.fixture(scope="module")
def model():
    return load_checkpoint(FOLDER)[0]


@pytest.fixture(scope="module")
def wordpiece():
    return load_checkpoint(FOLDER)[1]


def test_sizes(model, wordpiece):
    config = model.encoder.config
    assert (config.num_hidden_layers, config.hidden_size, len(wordpiece)) == (4, 256, 8_000)
    assert (FOLDER / "model.safetensors").stat().st_size <= 12e6
    assert continue_from(FOLDER, "span+sbo")[1] == ["boundary"]


def test_the_card_repeats_the_metrics():
    for part, file in (("short", "short.jsonl"), ("long", "metrics.jsonl")):
        line = json.loads((FOLDER / file).read_text(encoding="utf-8").splitlines()[-1])
        (row,) = re.findall(rf"^\| {part} .*$", CARD, flags=re.MULTILINE)
        assert f"| {line['step']:,} | {line['tokens'] / 1e6:.1f} M | {line['seconds'] / 3600:.2f} |" in row
        assert f"--steps {line['step']} " in CARD
    assert "CC BY-SA 3.0" in CARD and "/tmp" not in CARD


def test_the_examples_of_the_card_are_what_the_head_says(model, wordpiece):
    examples = re.findall(r"^- `(.*)`: (.*)$", CARD, flags=re.MULTILINE)
    assert len(examples) == 6
    for text, said in examples:
        (span,) = fill(model, wordpiece, text, top=1)
        assert " ".join(guess[0][0] for guess in span.mlm) == said


def test_transformers_opens_encoder_and_tokenizer(model, wordpiece):
    theirs, tokenizer = BertModel.from_pretrained(FOLDER).eval(), AutoTokenizer.from_pretrained(FOLDER)
    text = "The old bridge crosses the river."
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    assert ids[0, 1:-1].tolist() == wordpiece.encode(text).tolist()
    assert (theirs(ids).last_hidden_state - model.encoder(ids)).abs().max() < 1e-4


@pytest.mark.real_data
def test_the_losses_of_the_card_are_measured_again(model, wordpiece, tmp_path):
    file = REAL / "wikipedia" / "valid.jsonl.xz"
    corpus = encode_corpus(documents(str(file)), wordpiece.encode_many, len(wordpiece), tmp_path)
    run = runs.Run(objective="mlm", length=256, batch_size=16)
    figures = runs.held_out(model, run, runs.Text(corpus, corpus, wordpiece), 20)
    for way, values in figures.items():
        (line,) = re.findall(rf"^- valid, {way} masking: (.*)$", CARD, flags=re.MULTILINE)
        stated = {key: float(value) for key, value in (part.split() for part in line.split(", "))}
        assert stated == pytest.approx(values, abs=0.003)


def test_the_plateau_is_left_far_behind():
    """At least 3 nats below the unigram entropy on held-out articles, tokens hidden one by one."""
    (line,) = re.findall(r"^- held out, token masking: .*mlm ([\d.]+)", CARD, flags=re.MULTILINE)
    (unigram,) = re.findall(r"unigram entropy ([\d.]+)", CARD)
    assert float(line) < float(unigram) - 3
