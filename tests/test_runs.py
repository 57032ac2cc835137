"""A run from text to model: which text is held out, what the seed fixes, the almanac's
vocabulary."""

import json
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch

from research.almanac.files import VOCABULARY
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import set_dropout
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText, parts
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.presets import Run, preset
from spanbert_tutorial.text.encoding import EncodedCorpus
from spanbert_tutorial.text.sentences import split_sentences


def sentences(split: str) -> list[str]:
    return [sentence for d in almanac.read(split) for sentence in split_sentences(d["text"])]


def test_the_shipped_vocabulary_is_learned_from_the_training_documents():
    learned = WordPiece.train(sentences("train"), VOCABULARY)
    assert (
        learned.vocabulary == data_path("almanac", "vocab.txt").read_text(encoding="utf-8").split()
    )


def test_the_almanac_is_encoded_whole_and_validation_is_held_out(almanac_text):
    """Joined to words again, the encoded tokens are the documents."""
    for corpus, split in [(almanac_text.train, "train"), (almanac_text.held_out, "validation")]:
        assert len(corpus.document_ends) == sum(1 for _ in almanac.read(split))
    first = next(almanac.read("validation"))
    ids = almanac_text.held_out.ids[: almanac_text.held_out.document_ends[0]]
    assert almanac_text.wordpiece.decode(ids).replace(" ", "") == first["text"].replace(" ", "")
    encoded = almanac_text.wordpiece.encode_many(sentences("validation"))
    assert list(chain.from_iterable(encoded)) == almanac_text.held_out.ids.tolist()
    assert (almanac_text.train.ids != almanac_text.wordpiece.unk_id).all()


def test_unigram_entropy_is_that_of_the_training_tokens(almanac_text):
    p = np.bincount(almanac_text.train.ids)
    p = p[p > 0] / p.sum()
    assert np.isclose(almanac_text.unigram_entropy, -(p * np.log(p)).sum())


def test_one_document_in_fifty_of_a_path_is_held_out(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n\n".join(f"Document {i} stands here." for i in range(120)), encoding="utf-8")
    train = list(parts(str(path), held_out=False))
    held_out = list(parts(str(path), held_out=True))
    assert [d[0] for d in held_out] == ["Document 49 stands here.", "Document 99 stands here."]
    assert len(train) == 118 and not {d[0] for d in train} & {d[0] for d in held_out}


def test_every_objective_starts_from_the_same_encoder(almanac_text):
    """So that seeds can be paired; another seed starts elsewhere."""
    states = [
        runs.new_model(Run(objective=name), almanac_text).encoder.state_dict()
        for name in ("mlm", "span+sbo")
    ]
    other = runs.new_model(Run(seed=1), almanac_text).encoder.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(
        states[0]["embeddings.word_embeddings.weight"], other["embeddings.word_embeddings.weight"]
    )


def test_a_short_run_learns_and_is_measured_under_both_ways_of_choosing(almanac_text):
    small = EncodedText(
        almanac_text.train, first_documents(almanac_text.held_out, 5), almanac_text.wordpiece
    )
    run = Run(steps=25)
    model, history = runs.pretrain(run, small)
    assert history.losses["mlm"][0] > 7 > history.mean("mlm", 5)
    figures = held_out_metrics(model, run, small)
    assert set(figures) == {"token", "span"}
    assert set(figures["span"]) == {"loss", "mlm", "sbo", "accuracy"}
    with pytest.raises(InputError, match="the heads boundary: name their objective, not mlm"):
        runs.pretrain(replace(run, objective="mlm"), small, model)


def first_documents(corpus: EncodedCorpus, count: int) -> EncodedCorpus:
    end = corpus.document_ends[count - 1]
    sentence_ends = corpus.sentence_ends[corpus.sentence_ends <= end]
    return EncodedCorpus(corpus.ids[:end], sentence_ends, corpus.document_ends[:count])


PAPERS = {
    key: quoted["value"]
    for key, quoted in json.loads(data_path("papers.json").read_text("utf-8")).items()
}


@pytest.mark.parametrize("size", ["base", "large"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_papers_sizes_have_the_papers_recipe(size, objective):
    """Value by value; SpanBERT's paper has only the large model, its recipe is used for base,
    too."""
    paper = "spanbert" if objective.startswith("span") else "bert"
    said = {
        key.removeprefix(f"{paper}_"): value
        for key, value in PAPERS.items()
        if key.startswith(f"{paper}_")
    }
    run = preset(size, objective)
    recipe = run.recipe()
    assert (run.size, run.objective, run.max_length) == (
        size,
        objective,
        PAPERS["bert_longest_input"],
    )
    assert run.batch_size * run.accumulate == said["batch"] and recipe.accumulate == run.accumulate
    assert recipe.steps == said["steps"] and recipe.warmup_steps == said["warmup_steps"]
    rate = said["learning_rate"] if paper == "spanbert" else said["peak_learning_rate"]
    assert recipe.peak_learning_rate == rate
    assert list(recipe.betas) == said["betas"] and recipe.epsilon == said["epsilon"]
    assert recipe.weight_decay == said["weight_decay"] and run.dropout == said["dropout"]
    assert run.initializer_range == 0.02 and not run.sinusoidal_positions


@pytest.mark.parametrize("start", [None, 0.5])
def test_a_run_trains_with_its_own_dropout(almanac_text, monkeypatch, start):
    """Of a new model, and of one that came with another."""
    monkeypatch.setattr(runs, "train", lambda *_: None)
    run = Run(dropout=0.1)
    given = None if start is None else runs.new_model(run, almanac_text)
    if given is not None:
        set_dropout(given, start)
    trained, _ = runs.pretrain(run, almanac_text, given)
    found = {part.p for part in trained.modules() if isinstance(part, torch.nn.Dropout)}
    found |= {part.dropout_prob for part in trained.modules() if hasattr(part, "dropout_prob")}
    assert found == {0.1}
