"""ELECTRA against transformers number for number; sampling, labels and losses by hand; what a step
costs."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from parity import LIMIT, random_batch, random_weights

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.relatives.electra import (
    ElectraConfig,
    ElectraDiscriminator,
    ElectraGenerator,
    ElectraPretraining,
    electra_flops,
    encoder_flops,
    mlm_flops,
    replace_tokens,
    sample,
    top_prediction,
)

BOTH = [ElectraDiscriminator, ElectraGenerator]


def config(**changes) -> ElectraConfig:
    return ElectraConfig.tiny(
        **{"vocab_size": 101, "max_position_embeddings": 32, "embedding_size": 48, **changes}
    )


def head_of(encoder):
    return encoder.get_submodule(encoder.head)


def batch_of(chosen: int = 4) -> dict[str, torch.Tensor]:
    """A batch of the objective `mlm`; the last row is shorter, and the first chosen place shows
    another token."""
    batch = random_batch()
    rows = torch.tensor([0, 0, 1, 2])
    places = torch.tensor([3, 7, 2, 4])
    rows, places = rows[:chosen], places[:chosen]
    batch["labels"] = torch.full_like(batch["input_ids"], -100)
    batch["labels"][rows, places] = batch["input_ids"][rows, places]
    batch["input_ids"][0, 3] = 99
    return batch


# --- parity -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [48, 128])
@pytest.mark.parametrize("kind", BOTH)
def test_states_and_heads_equal_transformers(kind, width, dtype):
    encoder = random_weights(kind, config(embedding_size=width)).to(dtype)
    body = encoder.to_huggingface()
    whole = encoder.to_huggingface(with_head=True)
    given = random_batch()
    real = given["attention_mask"].bool()
    with torch.no_grad():
        hidden = encoder(**given)
        logits = head_of(encoder)(hidden)
        states = body(**given).last_hidden_state
        answer = whole(**given).logits
    worst = max(
        (hidden - states)[real].abs().max().item(), (logits - answer)[real].abs().max().item()
    )
    print(f"PARITY {kind.__name__} E {width} {dtype}: {worst:.1e}")
    assert logits.shape == answer.shape and worst <= LIMIT[dtype]


def test_gradients_equal_transformers():
    encoder = random_weights(ElectraGenerator, config()).double()
    # theirs stops them at padding
    model = encoder.to_huggingface(with_head=True)
    ids = random_batch()["input_ids"].clamp(min=1)
    F.cross_entropy(head_of(encoder)(encoder(ids)).flatten(0, 1), ids.flatten()).backward()
    F.cross_entropy(model(ids).logits.flatten(0, 1), ids.flatten()).backward()
    ours = encoder.embeddings.word_embeddings.weight.grad
    theirs = model.electra.embeddings.word_embeddings.weight.grad
    assert (ours - theirs).abs().max() < 1e-10 and ours.abs().max() > 1e-4


# --- checkpoints --------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_a_model_and_its_folder_come_back_with_the_head(kind, tmp_path):
    encoder = random_weights(kind, config())
    ids = random_batch()["input_ids"]
    whole = encoder.to_huggingface(with_head=True)
    whole.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (whole, tmp_path):
            again = kind.from_huggingface(source)
            assert again.config == encoder.config
            assert torch.equal(head_of(again)(again(ids)), head_of(encoder)(encoder(ids)))


# --- sizes --------------------------------------------------------------------------


def test_sizes():
    sizes = {name: ElectraConfig.preset(name) for name in ("tiny", "small", "base", "large")}
    assert {
        name: (c.num_hidden_layers, c.hidden_size, c.embedding_size, c.intermediate_size)
        for name, c in sizes.items()
    } == {
        "tiny": (2, 128, 128, 512),
        "small": (12, 256, 128, 1024),
        "base": (12, 768, 768, 3072),
        "large": (24, 1024, 1024, 4096),
    }
    assert ElectraConfig.small(vocab_size=7) == ElectraConfig.preset("small", vocab_size=7)
    with pytest.raises(InputError, match="no size 'huge'"):
        ElectraConfig.preset("huge")


@pytest.mark.parametrize("name, millions", [("small", 14), ("base", 109)])
def test_parameter_counts(name, millions):
    with torch.device("meta"):
        encoder = ElectraDiscriminator(ElectraConfig.preset(name))
    assert round(sum(weight.numel() for weight in encoder.parameters()) / 1e6) == millions


def test_the_generator_is_narrower_and_as_deep():
    small = ElectraConfig.base().generator()
    assert (small.hidden_size, small.num_attention_heads, small.intermediate_size) == (192, 3, 768)
    assert (small.num_hidden_layers, small.embedding_size) == (12, 768)
    with pytest.raises(InputError, match="126 cannot be divided by 4"):
        config(hidden_size=126).generator()


# --- sampling and labels ------------------------------------------------------------


def test_samples_follow_the_softmax():
    p = torch.tensor([0.6, 0.25, 0.15, 0.0])
    drawn = sample(p.log().expand(40_000, -1), torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    assert (shares - p).abs().max() < 0.01 and shares[3] == 0
    assert (top_prediction(p.log().expand(5, -1), torch.Generator()) == 0).all()


def test_the_chef_by_hand():
    """the(1) chef(2) cooked(3) the(1) meal(4): the generator draws "the" and "ate"(5) for the first
    and third word."""
    batch = {
        "input_ids": torch.tensor([[0, 2, 0, 1, 4]]),
        "labels": torch.tensor([[1, -100, 3, -100, -100]]),
    }
    ids, replaced = replace_tokens(batch, torch.tensor([1, 5]))
    assert ids.tolist() == [[1, 2, 5, 1, 4]]
    assert replaced.tolist() == [[False, False, True, False, False]]
    assert batch["input_ids"].tolist() == [[0, 2, 0, 1, 4]]


# --- training both ------------------------------------------------------------------


def model_of(**changes) -> ElectraPretraining:
    torch.manual_seed(0)
    off = {
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.1,
    }
    return ElectraPretraining(config(**off), mask_id=4, seed=5, **changes)


def test_the_losses_by_hand():
    model = model_of()
    batch = batch_of()
    losses = model(batch)
    masked = batch["input_ids"].clone()
    masked[batch["labels"] != -100] = 4
    states = model.generator(
        masked, token_type_ids=batch["token_type_ids"], attention_mask=batch["attention_mask"]
    )
    logits = model.generator.masked_language_model(states[batch["labels"] != -100])
    ids = batch["input_ids"].clone()
    original = batch["input_ids"].clone()
    original[batch["labels"] != -100] = batch["labels"][batch["labels"] != -100]
    ids[batch["labels"] != -100] = sample(logits, torch.Generator().manual_seed(5))
    scores = model.detect(batch, ids)
    total = 0.0
    for row, length in enumerate((16, 11, 6)):
        for place in range(length):
            p = scores[row, place].sigmoid()
            total = total - (p if ids[row, place] != original[row, place] else 1 - p).log()
    assert losses["rtd"].item() == pytest.approx((total / 33).item(), abs=1e-5)
    assert losses["mlm"].item() == pytest.approx(
        F.cross_entropy(logits, batch["labels"][batch["labels"] != -100]).item(), abs=1e-6
    )
    assert losses["loss"].item() == pytest.approx(
        (losses["mlm"] + 50 * losses["rtd"]).item(), abs=1e-4
    )


def test_the_generator_sees_only_masks_whatever_the_batch_shows():
    batch = batch_of()
    other = batch_of()
    other["input_ids"][other["labels"] != -100] = torch.tensor([50, 51, 52, 53])
    assert torch.equal(model_of()(batch)["loss"], model_of()(other)["loss"])


def test_both_use_one_set_of_embeddings():
    model = model_of()
    ours = model.discriminator.embeddings
    theirs = model.generator.embeddings
    assert ours.word_embeddings is theirs.word_embeddings
    assert ours.position_embeddings is theirs.position_embeddings
    assert model.generator.masked_language_model.embedding_weight is ours.word_embeddings.weight


def gradients(**changes) -> dict[str, torch.Tensor]:
    model = model_of(**changes)
    model(batch_of())["loss"].backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def test_the_discriminator_sends_no_gradient_through_the_sampling():
    alone = gradients(weight=0.0)
    both = gradients()
    own = [name for name in both if name.startswith("generator")]
    assert len(own) > 30
    assert all(torch.equal(alone[name], both[name]) for name in own)
    shared = "discriminator.embeddings.word_embeddings.weight"
    assert alone[shared].any() and not torch.equal(alone[shared], both[shared])


# --- what a step costs --------------------------------------------------------------


def test_flops_by_hand():
    """One layer, H = 4, I = 8, n = 3, V = 10, t = 2. A layer: 4·16 + 2·4·8 + 2·3·4 = 152 products a
    token."""
    tiny = EncoderConfig(
        vocab_size=10,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
    )
    assert encoder_flops(tiny, 3) == 2 * 3 * 152
    assert mlm_flops(tiny, 3, 2) == 3 * (2 * 3 * 152 + 2 * 2 * (4 * 4 + 4 * 10))
    pair = ElectraConfig(
        vocab_size=10,
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        embedding_size=6,
    )
    cost = electra_flops(pair, 3, 2)
    assert cost["discriminator"] == 3 * (2 * 3 * (152 + 6 * 4) + 2 * 3 * (16 + 4))
    # the generator: H = 1, I = 2: 4 + 2·2 + 2·3 = 14 products a token, 6·1 for the projection
    assert cost["generator"] == 3 * (2 * 3 * (14 + 6) + 2 * 2 * 6 * (1 + 10))
