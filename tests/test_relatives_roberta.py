"""RoBERTa: parity with transformers, positions, and masks that return."""

from dataclasses import asdict
from functools import partial
from itertools import count, islice

import numpy as np
import pytest
import torch
from parity import LIMIT, difference, random_weights
from transformers import RobertaConfig as TheirConfig
from transformers import RobertaForMaskedLM

from spanbert_tutorial.bert.encoder import EncoderConfig, MaskedLanguageModelHead
from spanbert_tutorial.bert.weights import to_huggingface_names
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives import roberta
from spanbert_tutorial.relatives.roberta import (
    RobertaConfig,
    RobertaEncoder,
    mask_epochs,
    position_numbers,
)

PAD = 1


def config(name="tiny", **changes) -> RobertaConfig:
    return RobertaConfig.preset(
        name, **{"vocab_size": 101, "max_position_embeddings": 34, **changes}
    )


def batch(length=16) -> dict[str, torch.Tensor]:
    """A full row, one padded on the right, one padded in the middle, one on the left."""
    ids = torch.randint(2, 101, (4, length), generator=torch.Generator().manual_seed(1))
    ids[1, 11:] = ids[2, 5:9] = ids[3, :3] = PAD
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


# --- parity -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, dtype",
    [("tiny", torch.float64), ("mini", torch.float64), ("mini", torch.float32)]
    + [("base", torch.float32)],
)
def test_hidden_states_equal_transformers(name, dtype):
    encoder = random_weights(RobertaEncoder, config(name)).to(dtype)
    model = encoder.to_huggingface()
    inputs = batch()
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        for attention in ("sdpa", "eager"):
            model.set_attn_implementation(attention)
            masked = model(**inputs).last_hidden_state
            full = model(inputs["input_ids"]).last_hidden_state
            zeros = torch.zeros_like(inputs["input_ids"])
            worst = max(
                difference(encoder(**inputs)[real], masked[real]),
                difference(encoder(inputs["input_ids"]), full),
                difference(encoder(inputs["input_ids"], token_type_ids=zeros), full),
            )
            print(f"PARITY RoBERTa {name} {dtype} {attention}: {worst:.1e}")
            assert worst <= LIMIT[dtype]


def test_the_longest_input_is_two_less_than_the_position_table():
    encoder = random_weights(RobertaEncoder, config())
    model = random_weights(RobertaEncoder, config()).to_huggingface()
    ids = torch.randint(2, 101, (1, 32))
    assert RobertaConfig().longest == 512 and EncoderConfig().longest == 512
    assert difference(encoder(ids), model(ids).last_hidden_state) <= 1e-5
    with pytest.raises(InputError, match="33 tokens is longer than 32"):
        encoder(torch.randint(2, 101, (1, 33)))


def test_gradients_equal_transformers():
    encoder = random_weights(RobertaEncoder, config()).double()
    inputs = batch()
    model = encoder.to_huggingface()
    real = inputs["attention_mask"].bool()
    encoder(**inputs)[real].square().sum().backward()
    model(inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state[
        real
    ].square().sum().backward()
    here = to_huggingface_names(
        {name: weight.grad for name, weight in encoder.named_parameters()}, layout=roberta.ROBERTA
    )
    there = {name: weight.grad for name, weight in model.named_parameters()}
    for name in ("word", "position"):  # transformers passes no gradient to the rows of padding
        here[f"embeddings.{name}_embeddings.weight"][PAD] = 0
    assert here.keys() == there.keys()
    assert max(difference(here[name], there[name]) for name in here) < 1e-8


def test_the_masked_language_model_head_is_berts():
    model = RobertaForMaskedLM(TheirConfig(**asdict(config()))).eval().double()
    with pytest.warns(UserWarning, match="lm_head"):
        encoder = RobertaEncoder.from_huggingface(model).double()
    state = model.state_dict()
    head = MaskedLanguageModelHead(128, encoder.embeddings.word_embeddings.weight, 1e-5).double()
    head.load_state_dict(
        {
            name: state[f"lm_head.{name}"]
            for name in (
                "dense.weight",
                "dense.bias",
                "layer_norm.weight",
                "layer_norm.bias",
                "bias",
            )
        }
        | {"embedding_weight": encoder.embeddings.word_embeddings.weight}
    )
    inputs = batch()
    real = inputs["attention_mask"].bool()
    wanted = model(inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[real]
    assert difference(head(encoder(**inputs)[real]), wanted) <= 1e-10


def test_weights_survive_both_ways(tmp_path):
    encoder = random_weights(RobertaEncoder, config())
    ids = batch()["input_ids"]
    encoder.to_huggingface().save_pretrained(tmp_path)
    for source in (encoder.to_huggingface(), tmp_path):
        again = RobertaEncoder.from_huggingface(source)
        assert again.config == encoder.config and type(again.config) is RobertaConfig
        assert torch.equal(again(ids), encoder(ids))


# --- positions ----------------------------------------------------------------------


def test_positions_count_real_tokens_from_two():
    ids = torch.tensor([[0, 5, 6, 2], [0, 5, 2, PAD], [0, PAD, PAD, 2], [PAD, PAD, 7, 8]])
    assert position_numbers(ids, PAD).tolist() == [
        [2, 3, 4, 5],
        [2, 3, 4, 1],
        [2, 1, 1, 3],
        [1, 1, 2, 3],
    ]
    # [PAD] 0, as in the almanac's vocabulary
    assert position_numbers(torch.tensor([[0, 3]]), 0).tolist() == [[0, 1]]


def test_padding_anywhere_changes_no_real_state():
    encoder = random_weights(RobertaEncoder, config()).double()
    ids = batch()["input_ids"][:1, :10]
    for places in ([0, 1], [4, 5, 6], [10]):
        wide = torch.full((1, 10 + len(places)), PAD)
        real = torch.ones(10 + len(places), dtype=torch.bool)
        real[places] = False
        wide[0, real] = ids[0]
        assert (
            difference(encoder(wide, attention_mask=real[None].long())[0, real], encoder(ids)[0])
            < 1e-12
        )


def test_a_pretraining_model_takes_this_encoder():
    encoder = RobertaEncoder(config(pad_token_id=0))
    model = PretrainingModel(encoder.config, Objective.named("mlm"), encoder)
    inputs = batch()
    labels = torch.full_like(inputs["input_ids"], -100)
    labels[0, 3], labels[1, 4] = 7, 8
    inputs |= {"labels": labels}
    model(inputs)["loss"].backward()
    assert encoder.embeddings.position_embeddings.weight.grad[1:17].abs().sum(1).min() > 0


# --- masks --------------------------------------------------------------------------


def test_static_masks_return_40_times_and_ten_copies_4_times_each():
    def epochs(copies):
        draws = count()
        return list(islice(mask_epochs(lambda: next(draws), copies), 40))

    assert epochs(1) == [0] * 40
    assert epochs(10) == list(range(10)) * 4
    assert epochs(None) == list(range(40))


def test_all_three_ways_begin_with_the_same_masks():
    masks = [
        next(mask_epochs(partial(np.random.default_rng(0).random, 8), copies))
        for copies in (1, 10, None)
    ]
    assert np.array_equal(masks[0], masks[1]) and np.array_equal(masks[0], masks[2])
