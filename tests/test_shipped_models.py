"""The shipped models of Wikipedia: what their cards say is true."""

import json
import lzma
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kept import kept, settings
from transformers import AutoTokenizer, BertModel

from research.__main__ import main as research
from research.experiments import shipped_losses
from spanbert_tutorial.commands.run_state import read_titles
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    load_checkpoint,
    read_vocabulary,
)
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import GAPS_SEED, evaluate, held_out_data
from spanbert_tutorial.pretraining.model import fill_masks
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import encode_corpus

REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))
OBJECTIVES = shipped_losses.OBJECTIVES
BELOW = {"bert-mini": 4.1, "spanbert-mini": 1.2}  # nats below both tables without context, at least
FROZEN = data_path("results", "shipped_losses.csv")
MADE = settings("copying_and_answers")["finished_models"]


def folder(name):
    return data_path("checkpoints", name)


def card(name) -> str:
    return (folder(name) / "README.md").read_text(encoding="utf-8")


def lines(text: str, start: str) -> dict[str, dict[str, float]]:
    """way of hiding → name → figure, of the lines of a card that begin with `start`."""
    found = re.findall(
        rf"^- {start}(token|span) masking( of pairs)?: (.*)$", text, flags=re.MULTILINE
    )
    return {
        "pairs" if pairs else way: {
            name: float(value) for name, value in map(str.split, said.split(", "))
        }
        for way, pairs, said in found
    }


@pytest.fixture(scope="module", params=OBJECTIVES)
def shipped(request):
    """(name, model, vocabulary)."""
    return request.param, *load_checkpoint(folder(request.param))


def test_sizes_and_heads(shipped):
    name, model, wordpiece = shipped
    config = model.encoder.config
    assert (config.num_hidden_layers, config.hidden_size, len(wordpiece)) == (4, 256, 8_000)
    assert (folder(name) / "model.safetensors").stat().st_size <= 12e6
    assert continue_from(folder(name), OBJECTIVES[name])[1] == []
    second = {"spanbert-mini": ["boundary"], "bert-mini": ["next_sentence"]}
    assert [task.name for task in model.tasks] == second.get(name, [])


def test_the_two_were_trained_alike_but_for_the_objective():
    bert, spanbert = (
        re.findall(r"-m spanbert_tutorial pretrain .*?--output \S+", card(name), flags=re.DOTALL)
        for name in ("bert-mini", "spanbert-mini")
    )
    assert len(bert) == 2 and bert[0] == spanbert[0]  # the common start
    assert (
        bert[1].replace("mlm+nsp", "span+sbo").replace("bert-mini", "spanbert-mini") == spanbert[1]
    )
    for part in ("batch_size", "max_length"):
        assert f"--{part.replace('_', '-')} {MADE[part]} " in bert[1]


def test_the_examples_of_the_card_are_what_the_heads_say(shipped):
    name, model, wordpiece = shipped
    examples = re.findall(r"^- `(.*)`: (.*)$", card(name), flags=re.MULTILINE)
    assert len(examples) == 6
    for text, said in examples:
        (span,) = fill_masks(model, wordpiece, text, top=1)
        heads = {head.upper(): predictions for head, predictions in span.predictions.items()}
        now = {
            head: " ".join(guess[0][0] for guess in predictions)
            for head, predictions in heads.items()
            if predictions
        }
        assert said in (now["MLM"], "; ".join(f"{head} {words}" for head, words in now.items()))
        assert ("SBO" in said) == (name == "spanbert-mini")


def test_transformers_opens_encoder_and_tokenizer(shipped):
    name, model, wordpiece = shipped
    theirs = BertModel.from_pretrained(folder(name)).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder(name))
    text = "The old bridge crosses the river."
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    assert ids[0, 1:-1].tolist() == wordpiece.encode(text).tolist()
    assert (theirs(ids).last_hidden_state - model.encoder(ids)).abs().max() < 1e-4


@pytest.fixture(scope="module")
def valid(tmp_path_factory) -> EncodedText:
    """Articles that neither model has read; both have one vocabulary."""
    wordpiece = read_vocabulary(folder("bert-mini"))
    texts = documents(str(REAL / "wikipedia" / "valid.jsonl.xz"))
    place = tmp_path_factory.mktemp("valid")
    corpus = encode_corpus(texts, wordpiece.encode_many, len(wordpiece), place)
    return EncodedText(corpus, corpus, wordpiece)


@pytest.mark.real_data
def test_the_losses_of_the_card_are_measured_again(shipped, valid):
    """Each model in the way in which it was trained."""
    name, model, _ = shipped
    way = {"bert-mini": "token", "spanbert-mini": "span"}[name]
    data = held_out_data(shipped_losses.run_of(name), valid)[way]
    most = shipped_losses.MOST["valid"]
    values = evaluate(model, data, np.random.default_rng(GAPS_SEED), most)
    stated = lines(card(name), "valid, ")[way]
    assert {key: stated[key] for key in values} == pytest.approx(values, abs=0.003)
    without_context = min(stated[table] for table in ("frequency", "by_position"))
    assert values["mlm"] < without_context - BELOW[name]  # measured, not read


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_card_repeats_the_kept_losses(name):
    for part in ("held out", "valid"):
        losses = kept("shipped_losses", name)[part]
        stated = lines(card(name), f"{part}, ")
        assert stated.keys() == losses.keys()
        for way, values in losses.items():
            assert stated[way] == {key: float(f"{value:.3f}") for key, value in values.items()}
    train = kept("shipped_losses")["train"]
    assert f"{train['documents']:,} documents, {train['tokens']:,} tokens" in card(name)


def test_the_command_measures_the_models_again(tmp_path):
    """On a small text; what the models reach on the book's own articles does not depend on it, the
    tables do."""
    sentence = "The old bridge of {0} was built in {1}. It crosses the river near the town of {0}."
    for folder, first, count in (("corpus", 0, 120), ("valid", 120, 5)):
        (tmp_path / folder).mkdir()
        rows = [
            json.dumps({"title": f"Bridge {i}", "text": sentence.format("ABCDE"[i % 5], 1800 + i)})
            for i in range(first, first + count)
        ]
        (tmp_path / folder / "texts.jsonl").write_text("\n".join(rows), encoding="utf-8")
    given = ["--corpus", tmp_path / "corpus", "--valid", tmp_path / "valid" / "texts.jsonl"]
    given += ["--output", tmp_path / "f.csv"]
    assert research(["shipped_losses", *map(str, given)]) == 0
    found, frozen = (pd.read_csv(path) for path in (tmp_path / "f.csv", FROZEN))
    keys = ["condition", "measure"]
    both = found.merge(frozen, on=keys, how="outer", suffixes=(" now", " kept"))
    of_reader = both[both.measure.str.startswith("reader/")]
    own = ~of_reader.measure.str.endswith(("frequency", "by_position"))
    assert len(of_reader) and both["value now"].notna().all() and both["value kept"].notna().all()
    assert of_reader[own]["value now"].tolist() == pytest.approx(
        of_reader[own]["value kept"].tolist(), abs=0.003
    )


@pytest.mark.real_data
@pytest.mark.parametrize("part", ["dev-v1.1-half", "dev-v2.0-half"])
def test_the_titles_left_out_are_those_of_the_development_sets(part):
    titles = read_titles(str(data_path("squad_dev_titles.txt")))
    with lzma.open(REAL / "squad" / f"{part}.json.xz", "rt", encoding="utf-8") as file:
        articles = [article["title"].replace("_", " ") for article in json.load(file)["data"]]
    assert len(articles) > 10 and set(articles) <= titles
    for name in OBJECTIVES:
        assert card(name).count("--leave-out data/squad_dev_titles.txt") == 1
