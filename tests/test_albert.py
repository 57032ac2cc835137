"""ALBERT's encoder, heads and data against transformers and against their definitions."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from parity import random_batch, random_weights
from transformers import AlbertConfig as TheirConfig
from transformers import AlbertForPreTraining, AlbertModel

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    NextSentenceHead,
)
from spanbert_tutorial.bert.sentence_pairs import sentence_order_pairs
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives.albert import (
    SHARING,
    AlbertConfig,
    AlbertEncoder,
    FactorizedEmbeddings,
)

LAYERS = 3


def config(**changes) -> AlbertConfig:
    sizes = {
        "vocab_size": 101,
        "hidden_size": 64,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
    }
    sizes |= {"intermediate_size": 96, "embedding_size": 32, "max_position_embeddings": 24}
    return AlbertConfig(**{**sizes, **changes})


def size(module: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("hidden_act", ["gelu_new", "gelu"])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_hidden_states_equal_transformers(sharing, hidden_act, dtype, limit):
    encoder = random_weights(AlbertEncoder, config(sharing=sharing, hidden_act=hidden_act)).to(
        dtype
    )
    model = encoder.to_huggingface()
    inputs = random_batch()
    assert model.config.num_hidden_groups == (1 if sharing == "all" else LAYERS)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        for attention in ("sdpa", "eager"):
            model.set_attn_implementation(attention)
            wanted = model(**inputs).last_hidden_state[real]
            assert (encoder(**inputs)[real] - wanted).abs().max() <= limit


def test_gradients_of_what_is_shared_are_summed_as_in_transformers():
    encoder = random_weights(AlbertEncoder, config()).double()
    model = encoder.to_huggingface()
    inputs = random_batch()
    real = inputs["attention_mask"].bool()
    target = torch.randn(
        int(real.sum()), 64, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    (encoder(**inputs)[real] * target).sum().backward()
    (model(**inputs).last_hidden_state[real] * target).sum().backward()
    there = dict(model.named_parameters())[
        "encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"
    ].grad
    assert (encoder.layers[0].expand.weight.grad - there).abs().max() <= 1e-10 * there.abs().max()


@pytest.mark.parametrize("sharing", SHARING)
def test_what_is_shared_is_one_module_and_the_rest_is_not(sharing):
    layers = list(AlbertEncoder(config(sharing=sharing)).layers)
    assert len(layers) == LAYERS
    same_attention = {id(layer.attention.query.weight) for layer in layers}
    same_norm = {id(layer.attention_norm.weight) for layer in layers}
    same_expand = {id(layer.expand.weight) for layer in layers}
    same_last = {id(layer.feed_forward_norm.weight) for layer in layers}
    assert (
        len(same_attention) == len(same_norm) == (1 if sharing in ("all", "attention") else LAYERS)
    )
    assert (
        len(same_expand) == len(same_last) == (1 if sharing in ("all", "feed_forward") else LAYERS)
    )


def test_parameters():
    """ALBERT §3.1: V·H against V·E + E·H; Table 1 and 4 by formula. A projection has a bias,
    too."""
    with torch.device("meta"):
        plain = BertEncoder(EncoderConfig(vocab_size=30_000))
        narrow = FactorizedEmbeddings(AlbertConfig())
        counts = {
            sharing: size(AlbertEncoder(AlbertConfig(sharing=sharing))) for sharing in SHARING
        }
    assert plain.embeddings.word_embeddings.weight.numel() == 23_040_000
    assert narrow.word_embeddings.weight.numel() + narrow.project.weight.numel() == 3_938_304
    attention = 4 * 768**2 + 6 * 768
    feed_forward = 8 * 768**2 + 7 * 768
    around = (30_000 + 512 + 2 + 2) * 128 + 128 * 768 + 768
    wanted = {"all": (1, 1), "attention": (1, 12), "feed_forward": (12, 1), "none": (12, 12)}
    assert counts == {
        name: around + a * attention + f * feed_forward for name, (a, f) in wanted.items()
    }


def test_heads_equal_transformers():
    model = AlbertForPreTraining(
        TheirConfig(
            num_hidden_groups=1,
            **{name: value for name, value in asdict(config()).items() if name != "sharing"},
        )
    ).eval()
    with pytest.warns(UserWarning, match="pooler, predictions, sop_classifier"):
        encoder = AlbertEncoder.from_huggingface(model)
    words = MaskedLanguageModelHead(
        64, encoder.embeddings.word_embeddings.weight, gelu=encoder.config.gelu
    )
    order = NextSentenceHead(64)
    state = model.state_dict()
    words.load_state_dict(
        {
            **{
                f"{here}.{kind}": state[f"predictions.{there}.{kind}"]
                for kind in ("weight", "bias")
                for here, there in (("dense", "dense"), ("layer_norm", "LayerNorm"))
            },
            "embedding_weight": encoder.embeddings.word_embeddings.weight,
            "bias": state["predictions.bias"],
        }
    )
    order.load_state_dict(
        {
            f"{here}.{kind}": state[f"{there}.{kind}"]
            for kind in ("weight", "bias")
            for here, there in (
                ("pooler", "albert.pooler"),
                ("classifier", "sop_classifier.classifier"),
            )
        }
    )
    inputs = random_batch()
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        wanted = model(**inputs)
        hidden = encoder(**inputs)
        assert (words(hidden[real]) - wanted.prediction_logits[real]).abs().max() <= 1e-5
        assert (order(hidden) - wanted.sop_logits).abs().max() <= 1e-5


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_weights_survive_both_ways_and_a_folder(tmp_path, sharing):
    encoder = random_weights(AlbertEncoder, config(sharing=sharing))
    ids = random_batch()["input_ids"]
    encoder.to_huggingface().save_pretrained(tmp_path)
    for source in (encoder.to_huggingface(), tmp_path):
        again = AlbertEncoder.from_huggingface(source)
        assert again.config == encoder.config and size(again) == size(encoder)
        assert torch.equal(again(ids), encoder(ids))
    there = AlbertModel.from_pretrained(tmp_path, add_pooling_layer=False).eval()
    assert (there(ids).last_hidden_state - encoder(ids)).abs().max() <= 1e-5


# --- the order of two segments ------------------------------------------------------


def test_the_same_pairs_for_the_same_numbers_and_others_for_others(almanac_text):
    draws = [
        sentence_order_pairs(almanac_text.held_out, 61, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(draws[0].first, draws[1].first)
    assert np.array_equal(draws[0].labels, draws[1].labels)
    assert not np.array_equal(draws[0].labels[:200], draws[2].labels[:200])


def test_no_pair_at_all_is_refused(almanac_text):
    with pytest.raises(InputError, match="no chunk has two sentences"):
        sentence_order_pairs(almanac_text.held_out, 1, np.random.default_rng(0))


def test_batches_carry_both_orders(almanac_text):
    objective = Objective.named("mlm+sop")
    data = PretrainingData(almanac_text.held_out, almanac_text.wordpiece, objective, 64, 16)
    drawn = next(data.epoch(np.random.default_rng(0)))
    assert set(drawn["sentence_order"].tolist()) == {0, 1} and drawn["input_ids"].shape[0] == 16
    assert drawn["input_ids"].shape[1] <= 64 and (drawn["token_type_ids"].sum(1) > 1).all()
    assert "swapped" in data.report
