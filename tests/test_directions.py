"""Attention patterns, their reach, language models by pattern, probes."""

import numpy as np
import pytest
import torch

from research.measurements import frozen_states
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.pretraining import directions
from spanbert_tutorial.pretraining.directions import DIRECTIONS, direction_mask, reach

REAL = torch.tensor([[True] * 4, [True] * 3 + [False]])


def small(layers: int = 2) -> BertEncoder:
    sizes = {"vocab_size": 12, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    sizes |= {"num_hidden_layers": layers, "max_position_embeddings": 8}
    config = EncoderConfig(**sizes, initializer_range=0.3)
    return BertEncoder(config, torch.Generator().manual_seed(0)).eval()


@torch.no_grad()
def measured_reach(states, ids: torch.Tensor, other: int) -> torch.Tensor:
    """bool [n,n]: whether the state of the row changes when the column's token becomes `other`."""
    n = len(ids)
    changed = ids.repeat(n, 1)
    changed[torch.arange(n), torch.arange(n)] = other
    difference = states(changed) - states(ids.repeat(n, 1))  # [n,n,H]
    return (difference.abs().amax(dim=-1) > 1e-5).T


def test_masks_by_hand():
    found = {name: direction_mask(name, REAL).int().tolist() for name in DIRECTIONS}
    assert found["left-to-right"][0] == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    assert found["right-to-left"][1] == [[1, 1, 1, 0], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert found["both ways"][1] == [[1, 1, 1, 0]] * 3 + [[0, 0, 0, 1]]
    assert found["all but yourself"][1] == [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("name", DIRECTIONS)
@pytest.mark.parametrize("layers", [1, 2])
def test_measured_reach_is_the_matrix_power(name, layers):
    allowed = direction_mask(name, REAL[:1])
    encoder = small(layers)
    found = measured_reach(
        lambda ids: encoder(ids, attention_mask=allowed.expand(len(ids), -1, -1)),
        torch.arange(4),
        11,
    )
    assert torch.equal(found, reach(allowed[0], layers))


def test_reach_of_neighbors_grows_by_one_a_layer():
    place = torch.arange(7)
    near = (place[:, None] - place).abs() <= 1
    for layers in (1, 2, 3):
        assert torch.equal(reach(near, layers), (place[:, None] - place).abs() <= layers)


@pytest.mark.parametrize("layers, leak", [(1, False), (2, True)])
def test_twins_leak_in_the_second_layer(layers, leak):
    n = 4
    encoder = small(layers)
    every = torch.ones(n, n, dtype=torch.bool)
    others = ~torch.eye(n, dtype=torch.bool)
    found = measured_reach(
        lambda ids: directions.twin_states(encoder, ids, 10, every, others), torch.arange(n), 11
    )
    by_power = reach(directions.twin_mask(every, others), layers)[n:, :n]
    assert torch.equal(found, by_power) and found.diagonal().all() == leak and found[others].all()


def test_batches_and_losses():
    model = directions.new_language_model("both ways", 12, seed=3)
    same = directions.new_language_model("left-to-right", 12, seed=3)
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), same.state_dict().values(), strict=True)
    )
    batch = {"input_ids": torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]]), "attention_mask": REAL}
    for direction in ("left-to-right", "right-to-left", "both ways"):
        model.direction = direction
        loss = model(batch)["loss"]
        batch["input_ids"][1, 3] = 9  # padding changes nothing
        assert torch.equal(model(batch)["loss"], loss)
        batch["input_ids"][1, 3] = 0


def test_a_left_to_right_loss_by_hand():
    model = directions.new_language_model("left-to-right", 12, seed=0).eval()
    ids = torch.tensor([[1, 5, 6, 2]])
    alone = []
    for k in range(3):  # the tokens that come later are not even there
        seen = torch.ones(1, k + 1, k + 1).tril()
        state = model.encoder(ids[:, : k + 1], attention_mask=seen)[0, k]
        alone.append(model.head(state).log_softmax(-1)[ids[0, k + 1]])
    loss = model({"input_ids": ids, "attention_mask": torch.ones_like(ids, dtype=torch.bool)})[
        "loss"
    ]
    assert abs(loss.item() + torch.stack(alone).mean().item()) < 1e-5


def test_batches_of_text_begin_with_cls_and_fit(almanac_text):
    batch = next(directions.text_batches(almanac_text, np.random.default_rng(0)))
    assert batch["input_ids"].shape == batch["attention_mask"].shape
    assert batch["input_ids"].shape[1] <= 32
    assert (batch["input_ids"][:, 0] == almanac_text.wordpiece.cls_id).all()


def test_scored_tokens_are_never_special(almanac_text):
    wordpiece = almanac_text.wordpiece
    first, again = (list(directions.scored_tokens(almanac_text, batches=3)) for _ in range(2))
    for (ids, real, chosen), other in zip(first, again, strict=True):
        assert torch.equal(chosen, other[2])
        assert not (chosen & ~real).any()
        assert 0.05 < chosen.double().mean() < 0.2
        assert not torch.isin(
            ids[chosen], torch.tensor([wordpiece.cls_id, wordpiece.sep_id, wordpiece.pad_id])
        ).any()


# What the states hold.


def test_probe():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 5, generator=generator) * torch.tensor([1, 10, 0.1, 1, 1]) + 3
    y = (x[:, 1] > 0).long() + (x[:, 1] > 8).long()
    probe = frozen_states.linear_probe(x, y)
    assert frozen_states.accuracy(probe, x, y) > 0.9
    shuffled = y[torch.randperm(200, generator=generator)]
    assert frozen_states.accuracy(frozen_states.linear_probe(x, shuffled), x, y) < 0.6
