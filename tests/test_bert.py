"""The encoder against transformers' BertModel, number for number; weights in and out; bad input."""

import json
import warnings
from dataclasses import asdict

import pytest
import torch
from parity import LIMIT, difference, random_batch, random_weights
from transformers import BertConfig, BertForPreTraining, BertModel

from spanbert_tutorial.bert import encoder, fast_attention
from spanbert_tutorial.bert.config import PRESETS
from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    NextSentenceHead,
    initialize,
)
from spanbert_tutorial.bert.weights import from_huggingface_names, to_huggingface_names
from spanbert_tutorial.errors import InputError

# A released SpanBERT's config.json: no model_type, keys for a pooler that is not there.
RELEASED = {
    "directionality": "bidi",
    "hidden_act": "gelu",
    "pooler_fc_size": 768,
    "pooler_type": "first_token_transform",
    "pooler_num_attention_heads": 12,
    "pooler_size_per_head": 128,
}


def config(name: str = "tiny", **changes) -> EncoderConfig:
    return EncoderConfig.preset(
        name, **{"vocab_size": 101, "max_position_embeddings": 32, **changes}
    )


@pytest.fixture(scope="module", params=list(PRESETS))
def pair(request):
    """An encoder of each size and transformers' model; of large, a quarter of its equal layers."""
    fewer = {"num_hidden_layers": 6} if request.param == "large" else {}
    encoder = random_weights(BertEncoder, config(request.param, **fewer))
    return encoder, encoder.to_huggingface()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hidden_states_equal_transformers(pair, dtype):
    encoder, model = pair
    encoder.to(dtype)
    model.load_state_dict(to_huggingface_names(encoder.state_dict()), assign=True)
    inputs = random_batch()
    worst = []
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        full = encoder(inputs["input_ids"])
        padded = encoder(**inputs)[real]
        for attention in ("sdpa", "eager"):
            model.set_attn_implementation(attention)
            worst.append(
                max(
                    difference(full, model(inputs["input_ids"]).last_hidden_state),
                    difference(padded, model(**inputs).last_hidden_state[real]),
                )
            )
    sizes = f"{encoder.config.num_hidden_layers}x{encoder.config.hidden_size}"
    print(f"PARITY {sizes} {dtype}: sdpa {worst[0]:.1e}, eager {worst[1]:.1e}")
    assert max(worst) <= LIMIT[dtype]


def test_gradients_equal_transformers():
    encoder = random_weights(BertEncoder, config("mini")).double()
    model = encoder.to_huggingface()
    inputs = random_batch()
    real = inputs["attention_mask"].bool()
    target = torch.randn(
        3, 16, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )[real]
    (encoder(**inputs)[real] * target).sum().backward()
    (model(**inputs).last_hidden_state[real] * target).sum().backward()
    here = to_huggingface_names({name: weight.grad for name, weight in encoder.named_parameters()})
    there = {name: weight.grad for name, weight in model.named_parameters()}
    assert here.keys() == there.keys()
    # transformers passes no gradient to the row of [PAD]; here it is a word like any other
    # (SpanBERT's code).
    here["embeddings.word_embeddings.weight"][0] = 0
    # A key's bias moves all scores of a row alike and softmax cancels it: zero gradient, but for
    # rounding.
    for name in [name for name in here if name.endswith("self.key.bias")]:
        assert max(here.pop(name).abs().max(), there.pop(name).abs().max()) < 1e-10
    worst = max(
        difference(here[name], there[name]) / there[name].abs().max().item() for name in here
    )
    print(f"PARITY gradients {worst:.1e}")
    assert worst <= 1e-8


@pytest.mark.parametrize("masked", [False, True])
def test_the_way_without_the_fused_kernel_gives_its_numbers(monkeypatch, masked):
    """Output and gradients; in float64, so that no rounding hides a difference."""
    torch.manual_seed(0)
    attention = encoder.SelfAttention(EncoderConfig.mini(vocab_size=50)).double()
    hidden = torch.randn(3, 20, 256, dtype=torch.float64)
    mask = (torch.arange(20) < torch.tensor([20, 7, 1])[:, None])[:, None, None] if masked else None
    results = []
    for way in (False, True):
        monkeypatch.setattr(fast_attention, "unfused_is_faster", lambda value, way=way: way)
        attention.zero_grad()
        attention.eval()(hidden, mask).square().sum().backward()
        results.append([weight.grad.clone() for weight in attention.parameters()])
    for fused, unfused in zip(*results, strict=True):
        assert torch.allclose(fused, unfused, rtol=1e-10, atol=1e-8)


def test_attention_maps_equal_eager_transformers():
    encoder = random_weights(BertEncoder, config("mini")).double()
    inputs = random_batch()
    model = encoder.to_huggingface()
    model.set_attn_implementation("eager")
    wanted = model(**inputs, output_attentions=True).attentions
    maps = encoder.attention_maps(**inputs)
    assert [tuple(part.shape) for part in maps] == [(3, 4, 16, 16)] * 4
    worst = max(difference(here, there) for here, there in zip(maps, wanted, strict=True))
    print(f"PARITY attention maps {worst:.1e}")
    assert worst <= 1e-10
    assert all(
        torch.allclose(part.sum(-1), torch.ones(3, 4, 16, dtype=part.dtype)) for part in maps
    )
    assert maps[0][1, :, :, 11:].abs().max() == 0  # nothing is taken from padding


def test_heads_equal_transformers():
    chosen = config("mini")
    model = BertForPreTraining(BertConfig(**asdict(chosen))).eval().double()
    with pytest.warns(UserWarning, match="cls, pooler"):
        encoder = BertEncoder.from_huggingface(model).double()
    words = MaskedLanguageModelHead(256, encoder.embeddings.word_embeddings.weight)
    next_head = NextSentenceHead(256)
    state = model.state_dict()
    words.load_state_dict(
        {
            "dense.weight": state["cls.predictions.transform.dense.weight"],
            "dense.bias": state["cls.predictions.transform.dense.bias"],
            "layer_norm.weight": state["cls.predictions.transform.LayerNorm.weight"],
            "layer_norm.bias": state["cls.predictions.transform.LayerNorm.bias"],
            "embedding_weight": encoder.embeddings.word_embeddings.weight,
            "bias": state["cls.predictions.bias"],
        }
    )
    next_head.load_state_dict(
        {
            f"{here}.{kind}": state[f"{there}.{kind}"]
            for kind in ("weight", "bias")
            for here, there in (
                ("pooler", "bert.pooler.dense"),
                ("classifier", "cls.seq_relationship"),
            )
        }
    )
    inputs = random_batch()
    real = inputs["attention_mask"].bool()
    wanted = model(**inputs)
    hidden = encoder(**inputs)
    tokens = difference(words.double()(hidden[real]), wanted.prediction_logits[real])
    pairs = difference(next_head.double()(hidden), wanted.seq_relationship_logits)
    print(f"PARITY heads {tokens:.1e} {pairs:.1e}")
    # float32 keeps the weights that transformers drew in float32, so nothing is lost on the way
    assert max(tokens, pairs) <= 1e-10


def test_decoder_is_the_embedding_matrix():
    encoder = BertEncoder(config())
    head = MaskedLanguageModelHead(128, encoder.embeddings.word_embeddings.weight)
    head(torch.randn(2, 128)).sum().backward()
    assert encoder.embeddings.word_embeddings.weight.grad is not None
    whole = torch.nn.ModuleList([encoder, head]).double()
    assert whole[1].embedding_weight is whole[0].embeddings.word_embeddings.weight


def test_weights_survive_both_ways():
    encoder = random_weights(BertEncoder, config())
    again = BertEncoder.from_huggingface(encoder.to_huggingface())
    assert again.config == encoder.config and not again.training
    for name, weight in encoder.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)
    ours, others = from_huggingface_names(
        to_huggingface_names(encoder.state_dict(), prefix="bert.")
    )
    assert ours.keys() == encoder.state_dict().keys() and not others
    again.embeddings.word_embeddings.weight.data.zero_()  # a copy: the model it came from keeps its weights
    assert encoder.embeddings.word_embeddings.weight.abs().max() > 0


def released(folder, encoder, old_names=False, extra=None, half=False):
    """A folder in the layout of the released SpanBERT: `bert.` in front, no pooler, no heads, a
    .bin file."""
    state = to_huggingface_names(encoder.state_dict(), prefix="bert.")
    if old_names:
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new in old:
            state = {name.replace(new, old[new]): weight for name, weight in state.items()}
    state = {name: weight.half() if half else weight for name, weight in state.items()} | (
        extra or {}
    )
    (folder / "config.json").write_text(json.dumps(asdict(encoder.config) | RELEASED))
    torch.save(state, folder / "pytorch_model.bin")
    return folder


@pytest.mark.parametrize("old_names", [False, True])
def test_released_layout(tmp_path, old_names):
    encoder = random_weights(BertEncoder, config())
    ids = random_batch()["input_ids"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = BertEncoder.from_huggingface(released(tmp_path, encoder, old_names))
    assert torch.equal(loaded(ids), encoder(ids))
    if not old_names:  # transformers reads the same folder
        model = BertModel.from_pretrained(
            tmp_path, add_pooling_layer=False, dtype=torch.float32
        ).eval()
        assert difference(model(ids).last_hidden_state, encoder(ids)) <= 1e-5


def test_folder_written_by_transformers(tmp_path):
    encoder = random_weights(BertEncoder, config())
    ids = random_batch()["input_ids"]
    encoder.to_huggingface().save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    assert torch.equal(BertEncoder.from_huggingface(tmp_path)(ids), encoder(ids))


def test_heads_are_named_in_one_warning(tmp_path):
    extra = {
        "bert.pooler.dense.weight": torch.zeros(128, 128),
        "qa_outputs.bias": torch.zeros(2),
        "boundary.bias": torch.zeros(101),
        "cls.predictions.bias": torch.zeros(101),
    }
    with pytest.warns(UserWarning, match="boundary, cls, pooler, qa_outputs") as caught:
        BertEncoder.from_huggingface(
            released(tmp_path, random_weights(BertEncoder, config()), extra=extra)
        )
    assert len(caught) == 1


def test_sizes():
    shape = {
        name: (c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.intermediate_size)
        for name, c in ((name, EncoderConfig.preset(name)) for name in PRESETS)
    }
    assert shape == {
        "tiny": (2, 128, 2, 512),
        "mini": (4, 256, 4, 1024),
        "small": (4, 512, 8, 2048),
        "base": (12, 768, 12, 3072),
        "large": (24, 1024, 16, 4096),
    }
    assert EncoderConfig.tiny(vocab_size=7) == EncoderConfig.preset("tiny", vocab_size=7)
    assert EncoderConfig.base() == EncoderConfig() == EncoderConfig.preset("base")
    assert EncoderConfig.mini(hidden_size=64).intermediate_size == 256


@pytest.mark.parametrize("name, count", [("base", 107_719_680), ("large", 332_529_664)])
def test_parameter_counts(name, count):
    with torch.device("meta"):
        encoder = BertEncoder(EncoderConfig.preset(name))
    assert sum(weight.numel() for weight in encoder.parameters()) == count


def test_config_from_dict():
    assert EncoderConfig.from_dict(BertConfig().to_dict()) == EncoderConfig(vocab_size=30_522)
    assert EncoderConfig.from_dict(asdict(config()) | RELEASED) == config()
    assert EncoderConfig.from_dict(asdict(config()) | {"unheard_of": {"anything": 1}}) == config()


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"hidden_size": 130, "num_attention_heads": 4}, "130 cannot be shared evenly among 4"),
        ({"vocab_size": 0}, "vocab_size is 0: give a whole number of at least 1"),
        ({"hidden_dropout_prob": 1.5}, "hidden_dropout_prob is 1.5"),
    ],
)
def test_configs_that_do_not_fit(change, sentence):
    with pytest.raises(InputError, match=sentence):
        EncoderConfig.from_dict(asdict(config()) | change)
    with pytest.raises(InputError, match="no size 'huge': choose one of tiny, mini, small, base"):
        EncoderConfig.preset("huge")


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"input_ids": torch.full((3, 16), 101)}, "ids: the value 101 is outside 0 to 100; take"),
        ({"input_ids": torch.zeros(3, 16)}, "input_ids have the type torch.float32"),
        ({"input_ids": torch.zeros(16, dtype=torch.long)}, r"shape \(16,\): give a batch"),
        ({"input_ids": torch.zeros(3, 33, dtype=torch.long)}, "33 tokens is longer than 32"),
        ({"token_type_ids": torch.full((3, 16), 2)}, "token_type_ids: the value 2 is outside 0"),
        ({"attention_mask": torch.ones(3, 15)}, r"attention_mask: shape \(3, 15\)"),
        ({"attention_mask": torch.zeros(3, 16)}, "a row of attention_mask is all 0"),
    ],
)
def test_inputs_that_do_not_fit(change, sentence):
    with pytest.raises(InputError, match=sentence):
        BertEncoder(config())(**(random_batch() | change))


def test_kinds_of_masks_and_ids_agree():
    encoder = random_weights(BertEncoder, config())
    inputs = random_batch()
    wanted = encoder(**inputs)
    for kind in (torch.bool, torch.int32, torch.float32):
        assert torch.equal(
            encoder(**inputs | {"attention_mask": inputs["attention_mask"].to(kind)}), wanted
        )
    assert torch.equal(encoder(**inputs | {"input_ids": inputs["input_ids"].int()}), wanted)
    no_segments = torch.zeros(3, 16, dtype=torch.long)
    assert torch.allclose(
        encoder(inputs["input_ids"]),
        encoder(inputs["input_ids"], token_type_ids=no_segments),
        atol=1e-6,
    )


def test_padding_and_neighbors_change_nothing():
    encoder = random_weights(BertEncoder, config()).double()
    inputs = random_batch()
    together = encoder(**inputs)
    for row, length in enumerate(inputs["attention_mask"].sum(1).tolist()):
        alone = encoder(
            inputs["input_ids"][row : row + 1, :length],
            token_type_ids=inputs["token_type_ids"][row : row + 1, :length],
        )
        assert difference(alone[0], together[row, :length]) < 1e-10


def test_start_values():
    encoder = BertEncoder(config("mini"), torch.Generator().manual_seed(3))
    for name, weight in encoder.named_parameters():
        if name.endswith("bias"):
            assert not weight.any()
        elif "norm" in name:
            assert (weight == 1).all()
        elif weight.numel() > 10_000:
            assert abs(weight.std().item() - 0.02) < 0.001 and abs(weight.mean().item()) < 0.001
    again = BertEncoder(config("mini"), torch.Generator().manual_seed(3))
    assert torch.equal(encoder.layers[3].expand.weight, again.layers[3].expand.weight)
    initialize(again, 0.1, torch.Generator().manual_seed(4))
    assert abs(again.layers[0].expand.weight.std().item() - 0.1) < 0.005


def test_a_square_mask_says_who_may_look_at_whom():
    encoder = BertEncoder(
        EncoderConfig.tiny(vocab_size=50), torch.Generator().manual_seed(0)
    ).eval()
    ids = torch.arange(1, 9).expand(2, -1).clone()
    left_to_right = torch.ones(2, 8, 8).tril()
    before = encoder(ids, attention_mask=left_to_right)
    ids[:, 5] = 40
    after = encoder(ids, attention_mask=left_to_right)
    # what comes later does not reach the earlier positions
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])
    for maps in encoder.attention_maps(ids, attention_mask=left_to_right):
        assert (maps.triu(1) == 0).all()
    same = torch.ones(2, 8, 8)
    same[:, :, 6:] = 0
    assert torch.allclose(
        encoder(ids, attention_mask=same), encoder(ids, attention_mask=same[:, 0]), atol=1e-6
    )
    with pytest.raises(InputError, match="every row needs a token"):
        encoder(ids, attention_mask=torch.ones(2, 8, 8).tril(-1))
    with pytest.raises(InputError, match=r"wanted \(2, 8, 8\)"):
        encoder(ids, attention_mask=torch.ones(2, 7, 8))
