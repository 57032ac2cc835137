"""`book/workshop/paper_code_here` states the readings of the paper and tells them apart; here is what
pre-training itself does with them."""

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.spanbert.boundary import boundary_loss, boundary_targets
from spanbert_tutorial.text.encoding import EncodedCorpus


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def model() -> PretrainingModel:
    return PretrainingModel(EncoderConfig.tiny(vocab_size=2000), Objective.named("span+sbo"))


# --- masking ------------------------------------------------------------------------


def test_10_pretraining_draws_from_the_corpus(wordpiece):
    corpus = EncodedCorpus(np.array([40] * 60), np.array([30, 60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span"], 32, 2)
    seen = np.concatenate(
        [data.batch(np.arange(2), generator(s))["input_ids"].numpy().ravel() for s in range(60)]
    )
    assert set(seen.tolist()) == {
        40,
        *(getattr(wordpiece, f"{x}_id") for x in ("cls", "sep", "mask")),
    }


# --- the span boundary objective ----------------------------------------------------


def test_17_pretraining_hands_the_originals_to_both_heads(wordpiece):
    corpus = EncodedCorpus(np.array([40, 41] * 30), np.array([60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span+sbo"], 62, 1)
    found = []
    for seed in range(40):
        batch = data.batch(np.arange(1), generator(seed))
        masked = batch["labels"][0] != -100
        places = masked.nonzero()[:, 0]
        assert (batch["labels"][0, masked] == 40 + (places - 1) % 2).all()
        # left boundary token, [CLS] counted: the span's first position in the block
        here = batch["boundary_left"] + batch["boundary_offset"]
        assert (batch["boundary_labels"] == 40 + here % 2).all()
        found.append(bool((batch["input_ids"][0, masked] != wordpiece.mask_id).any()))
    assert any(found)  # the fixture did meet kept or random spans


# --- loss and training --------------------------------------------------------------


def test_20_pretraining_adds_both_parts_with_the_weight_one(model, wordpiece):
    corpus = EncodedCorpus(np.arange(100, 160), np.array([60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span+sbo"], 62, 1)
    # a batch with a masked token that has no row: otherwise the readings agree
    batch = next(
        b for seed in range(50) if 0 < _targets(b := data.batch(np.arange(1), generator(seed))) < 9
    )
    with torch.no_grad():
        losses = model.eval()(batch)
        hidden = model.encoder(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )
        rows = boundary_targets(*_selected_of(batch, 60))
        sbo = boundary_loss(model.boundary(hidden, rows), rows, len(batch["masked_positions"]))
        a_target = boundary_loss(model.boundary(hidden, rows), rows, len(rows.labels))
    assert 0 < len(rows.labels) < len(batch["masked_positions"]) == 9
    assert losses["sbo"].item() == pytest.approx(a_target.item(), abs=1e-5)  # what is shown
    assert losses["loss"].item() == pytest.approx(losses["mlm"].item() + sbo.item(), abs=1e-5)


def _targets(batch) -> int:
    return len(batch["boundary_labels"])


def _selected_of(batch, n):
    selected = np.zeros((1, n), dtype=bool)
    selected[0, (batch["labels"][0] != -100).nonzero()[:, 0].numpy() - 1] = True
    return selected, np.arange(100, 100 + n)[None], [n]
