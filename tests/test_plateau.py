"""Looking inside a run, counting neighbors, and what shortens the wait."""

import numpy as np
import pytest
import torch

from research.experiments import inside_a_run
from research.experiments import leaving_the_plateau as leaving
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.pretraining import plateau
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective


class Tokens:
    """A vocabulary in which 0 to 3 are special and all others are words."""

    pad_id = 0
    cls_id = 1
    sep_id = 2
    mask_id = 3


@pytest.fixture
def batch():
    """Two blocks of 9 and 7 real places; hidden: 5 in the first, 1 in the second."""
    ids = torch.tensor([[1, 10, 11, 12, 13, 3, 15, 16, 2], [1, 3, 21, 22, 23, 24, 2, 0, 0]])
    labels = torch.full_like(ids, -100)
    labels[0, 5], labels[1, 1] = 14, 20
    return {
        "input_ids": ids,
        "token_type_ids": torch.zeros_like(ids),
        "attention_mask": ids != 0,
        "labels": labels,
    }


def test_every_nth_leaves_room_between():
    rng = np.random.default_rng(0)
    selected = plateau.EveryEighth().select_batch(np.ones((50, 40), bool), np.full(50, 33), rng)
    for row in selected:
        assert set(np.diff(np.flatnonzero(row))) == {8}
    assert not selected[:, 33:].any()
    assert len({np.flatnonzero(row)[0] for row in selected}) == 8


def test_hidden_neighbors_by_hand(batch):
    """Special tokens stay, and so does the input of the function."""
    near = plateau.mask_at(batch, 1, Tokens)["input_ids"].tolist()
    assert near[0] == [1, 10, 11, 12, 3, 3, 3, 16, 2]
    assert near[1] == [1, 3, 3, 22, 23, 24, 2, 0, 0]
    far = plateau.mask_at(batch, 3, Tokens)["input_ids"].tolist()
    assert far[0] == [1, 10, 3, 12, 13, 3, 15, 16, 2]
    assert far[1] == [1, 3, 21, 22, 3, 24, 2, 0, 0]
    assert batch["input_ids"][0, 4] == 13


def test_shuffling_keeps_the_words_and_the_hidden_places(batch):
    shuffled = plateau.shuffle_visible(batch, Tokens, np.random.default_rng(1))["input_ids"]
    assert torch.equal(shuffled.sort(1).values, batch["input_ids"].sort(1).values)
    special = batch["input_ids"] <= 3
    assert torch.equal(shuffled[special], batch["input_ids"][special])
    assert not torch.equal(shuffled, batch["input_ids"])


def test_attention_by_distance_is_the_mean_over_chosen_places(batch):
    config = EncoderConfig.preset("tiny", vocab_size=30)
    encoder = BertEncoder(config, torch.Generator().manual_seed(0)).eval()
    found = inside_a_run.attention_by_distance(encoder, batch, most=2)
    maps = encoder.attention_maps(
        batch["input_ids"],
        token_type_ids=batch["token_type_ids"],
        attention_mask=batch["attention_mask"],
    )
    assert found.shape == (2, 2, 5)
    for layer in range(2):
        after = (maps[layer][0, :, 5, 6] + maps[layer][1, :, 1, 2]) / 2
        assert np.allclose(found[layer, :, 3], after.numpy())
        only_first = maps[layer][0, :, 5, 3]  # two before: the second block has no such place
        assert np.allclose(found[layer, :, 0], only_first.numpy())


def test_token_losses_have_the_models_loss_as_their_mean(batch):
    config = EncoderConfig.preset("tiny", vocab_size=30)
    model = PretrainingModel(config, Objective.named("mlm")).eval()
    losses = plateau.token_losses(model, [batch, batch])
    assert losses.shape == (4,) and np.allclose(losses[:2], losses[2:])
    assert losses[:2].mean() == pytest.approx(model(batch)["mlm"].item(), abs=1e-5)


def test_neighbors_are_counted():
    """In 4 5 6 4 5 6 …, 5 always stands between 4 and 6."""
    counts = plateau.BigramModel(np.tile([4, 5, 6], 200), vocabulary=8)
    both = counts.probabilities(4, 6)
    left = counts.probabilities(4, None)
    right = counts.probabilities(None, 6)
    for p in (both, left, right):
        assert p.sum() == pytest.approx(1) and p.argmax() == 5 and (p > 0).all()
    assert both[5] > left[5] > counts.unigram[5]
    assert counts.probabilities(None, None) == pytest.approx(counts.unigram)
    assert counts.probabilities(7, 7).sum() == pytest.approx(1)


def test_left_after_by_hand():
    assert leaving.left_after([6.0, 5.1, 4.9, 4.0], 25, entropy=6.0) == 75
    assert leaving.left_after([6.0, 5.0], 25, entropy=6.0) is None
