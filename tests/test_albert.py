"""ALBERT's encoder, heads and data against transformers and against their definitions."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from transformers import AlbertConfig as TheirConfig
from transformers import AlbertForPreTraining, AlbertModel, BertConfig, BertModel

from research import grid
from research.experiments import albert_sharing, albert_sop
from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    NextSentenceHead,
)
from spanbert_tutorial.bert.sentence_pairs import (
    IN_ORDER,
    SWAPPED,
    document_sentences,
    sentence_order_pairs,
)
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import open_text
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives.albert import (
    SHARING,
    AlbertConfig,
    AlbertEncoder,
    FactorisedEmbeddings,
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


def random_encoder(chosen: AlbertConfig, seed: int = 0) -> AlbertEncoder:
    """Every weight random, biases and LayerNorm too: a swapped pair of names would show."""
    generator = torch.Generator().manual_seed(seed)
    encoder = AlbertEncoder(chosen, generator)
    with torch.no_grad():
        for weight in encoder.parameters():
            if weight.dim() == 1:
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return encoder.eval()


def batch(rows: int = 3, length: int = 16) -> dict[str, torch.Tensor]:
    """ids, segments and a mask with another length in each row."""
    generator = torch.Generator().manual_seed(1)
    place = torch.arange(length)
    lengths = torch.tensor([length - 5 * row for row in range(rows)])
    return {
        "input_ids": torch.randint(0, 101, (rows, length), generator=generator),
        "token_type_ids": (place >= length // 3).long().expand(rows, -1).contiguous(),
        "attention_mask": (place < lengths[:, None]).long(),
    }


def theirs(inputs: dict) -> dict:
    return {
        "input_ids": inputs["input_ids"],
        "token_type_ids": inputs["token_type_ids"],
        "attention_mask": inputs["attention_mask"],
    }


def size(module: torch.nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("hidden_act", ["gelu_new", "gelu"])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_hidden_states_equal_transformers(sharing, hidden_act, dtype, limit):
    encoder = random_encoder(config(sharing=sharing, hidden_act=hidden_act)).to(dtype)
    model = encoder.to_huggingface()
    inputs = batch()
    assert model.config.num_hidden_groups == (1 if sharing == "all" else LAYERS)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        for attention in ("sdpa", "eager"):
            model.set_attn_implementation(attention)
            wanted = model(**theirs(inputs)).last_hidden_state[real]
            assert (encoder(**inputs)[real] - wanted).abs().max() <= limit


def test_a_wide_embedding_and_base_sizes_are_alike_too():
    for chosen in (
        config(embedding_size=96),
        config(num_hidden_layers=1),
        AlbertConfig(vocab_size=101),
    ):
        encoder = random_encoder(chosen)
        ids = batch()["input_ids"]
        with torch.no_grad():
            assert (
                encoder(ids) - encoder.to_huggingface()(ids).last_hidden_state
            ).abs().max() <= 1e-5


def test_the_two_gelus_differ():
    ids = batch()["input_ids"]
    exact, by_tanh = (random_encoder(config(hidden_act=name))(ids) for name in ("gelu", "gelu_new"))
    assert 1e-6 < (exact - by_tanh).abs().max() < 1e-2


def test_gradients_of_what_is_shared_are_summed_as_in_transformers():
    encoder = random_encoder(config()).double()
    model = encoder.to_huggingface()
    inputs = batch()
    real = inputs["attention_mask"].bool()
    target = torch.randn(
        int(real.sum()), 64, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    (encoder(**inputs)[real] * target).sum().backward()
    (model(**theirs(inputs)).last_hidden_state[real] * target).sum().backward()
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


def test_sharing_stays_through_a_training_step():
    encoder = AlbertEncoder(config(sharing="attention")).train()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-2)
    encoder(batch()["input_ids"]).square().sum().backward()
    optimizer.step()
    first, *others = (layer.attention.query.weight for layer in encoder.layers)
    assert all(other is first for other in others)


@pytest.mark.parametrize("sharing", ["all", "attention"])
def test_one_graph_for_the_compiler_applies_every_layer(sharing):
    encoder = random_encoder(config(sharing=sharing))
    inputs = batch()
    compiled = torch.compile(encoder, fullgraph=True, backend="eager")
    assert (compiled(**inputs) - encoder(**inputs)).abs().max() < 1e-5


def test_parameters():
    """ALBERT §3.1: V·H against V·E + E·H; Table 1 and 4 by formula. A projection has a bias,
    too."""
    with torch.device("meta"):
        plain = BertEncoder(EncoderConfig(vocab_size=30_000))
        narrow = FactorisedEmbeddings(AlbertConfig())
        counts = {
            sharing: size(AlbertEncoder(AlbertConfig(sharing=sharing))) for sharing in SHARING
        }
    assert plain.embeddings.words.weight.numel() == 23_040_000
    assert narrow.words.weight.numel() + narrow.project.weight.numel() == 3_938_304
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
    words = MaskedLanguageModelHead(64, encoder.embeddings.words.weight, gelu=encoder.config.gelu)
    order = NextSentenceHead(64)
    state = model.state_dict()
    words.load_state_dict(
        {
            **{
                f"{here}.{kind}": state[f"predictions.{there}.{kind}"]
                for kind in ("weight", "bias")
                for here, there in (("dense", "dense"), ("layer_norm", "LayerNorm"))
            },
            "embedding_weight": encoder.embeddings.words.weight,
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
    inputs = batch()
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        wanted = model(**theirs(inputs))
        hidden = encoder(**inputs)
        assert (words(hidden[real]) - wanted.prediction_logits[real]).abs().max() <= 1e-5
        assert (order(hidden) - wanted.sop_logits).abs().max() <= 1e-5


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_weights_survive_both_ways_and_a_folder(tmp_path, sharing):
    encoder = random_encoder(config(sharing=sharing))
    ids = batch()["input_ids"]
    encoder.to_huggingface().save_pretrained(tmp_path)
    for source in (encoder.to_huggingface(), tmp_path):
        again = AlbertEncoder.from_huggingface(source)
        assert again.config == encoder.config and size(again) == size(encoder)
        assert torch.equal(again(ids), encoder(ids))
    there = AlbertModel.from_pretrained(tmp_path, add_pooling_layer=False).eval()
    assert (there(ids).last_hidden_state - encoder(ids)).abs().max() <= 1e-5


def test_partly_shared_weights_are_written_as_copies():
    encoder = random_encoder(config(sharing="attention"))
    ids = batch()["input_ids"]
    again = AlbertEncoder.from_huggingface(encoder.to_huggingface())
    assert again.config == replace(encoder.config, sharing="none")
    assert torch.equal(again(ids), encoder(ids))


def test_released_config_keys_are_known():
    """Those of the released folders that are no sizes."""
    extra = {
        "model_type": "albert",
        "inner_group_num": 1,
        "num_hidden_groups": 1,
        "gap_size": 0,
        "down_scale_factor": 1,
        "net_structure_type": 0,
        "num_memory_blocks": 0,
        "classifier_dropout_prob": 0.1,
    }
    settings = {name: value for name, value in asdict(config()).items() if name != "sharing"}
    assert AlbertConfig.from_dict({**settings, **extra}) == config()
    assert AlbertConfig.from_dict(asdict(config(sharing="attention"))) == config(
        sharing="attention"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_groups": 2}, "num_hidden_groups is 2: this encoder has 1"),
        (
            {"inner_group_num": 2},
            "inner_group_num is 2: this encoder computes only inner_group_num = 1",
        ),
        ({"hidden_act": "relu"}, "hidden_act is 'relu': choose one of gelu, gelu_new"),
        ({"sharing": "ffn"}, "sharing is 'ffn': choose one of all, attention, feed_forward, none"),
        ({"embedding_size": 0}, "embedding_size is 0: give a whole number"),
    ],
)
def test_settings_that_do_not_fit(changes, message):
    with pytest.raises(InputError, match=message):
        AlbertConfig.from_dict({**asdict(config()), **changes})


def test_another_kind_of_checkpoint_is_refused_by_name(tmp_path):
    albert = random_encoder(config()).to_huggingface()
    albert.save_pretrained(tmp_path)
    for source in (albert, tmp_path):
        with pytest.raises(
            InputError,
            match="model_type is 'albert': this encoder computes only model_type = 'bert'",
        ):
            BertEncoder.from_huggingface(source)
    bert = BertModel(
        BertConfig(vocab_size=101, hidden_size=64, num_hidden_layers=1, num_attention_heads=4)
    )
    with pytest.raises(
        InputError, match="model_type is 'bert': this encoder computes only model_type = 'albert'"
    ):
        AlbertEncoder.from_huggingface(bert)


def test_a_folder_without_a_kind_or_a_weight_is_refused(tmp_path):
    model = random_encoder(config()).to_huggingface()
    model.save_pretrained(tmp_path)
    content = json.loads((tmp_path / "config.json").read_text())
    del content["model_type"]
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="this encoder computes only hidden_act = 'gelu'"):
        BertEncoder.from_huggingface(tmp_path)
    model.encoder.embedding_hidden_mapping_in = torch.nn.Identity()
    with pytest.raises(
        InputError, match="lacks the weight encoder.embedding_hidden_mapping_in.weight"
    ):
        AlbertEncoder.from_huggingface(model)


def test_bad_input_is_refused_as_by_bert():
    with pytest.raises(InputError, match="longer than 24"):
        random_encoder(config())(torch.zeros(1, 25, dtype=torch.long))


# --- the order of two segments ------------------------------------------------------


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return open_text("almanac", tmp_path_factory.mktemp("almanac"))


def test_pairs_are_neighbors_of_one_document_in_one_of_two_orders(text):
    corpus = text.held_out
    pairs = sentence_order_pairs(corpus, 61, np.random.default_rng(0))
    swapped = pairs.labels == SWAPPED
    assert 0.45 < swapped.mean() < 0.55 and set(pairs.labels) == {IN_ORDER, SWAPPED}
    earlier = np.where(swapped[:, None], pairs.second, pairs.first)
    later = np.where(swapped[:, None], pairs.first, pairs.second)
    assert (
        (earlier[:, 1] <= later[:, 0]).all()
        and (np.diff(earlier) > 0).all()
        and (np.diff(later) > 0).all()
    )
    home = [
        np.searchsorted(corpus.document_ends, part[:, 0], side="right") for part in (earlier, later)
    ]
    assert (home[0] == home[1]).all()
    lengths = np.diff(earlier)[:, 0] + np.diff(later)[:, 0]
    assert lengths.max() == 61 and pairs.borrowed_truncated == 0
    # each token stands in one pair, was cut, or belongs to a sentence that is alone
    assert 0 < len(corpus.ids) - lengths.sum() - pairs.truncated < 61 * pairs.alone


def test_the_same_pairs_for_the_same_numbers_and_others_for_others(text):
    draws = [
        sentence_order_pairs(text.held_out, 61, np.random.default_rng(seed)) for seed in (0, 0, 1)
    ]
    assert np.array_equal(draws[0].first, draws[1].first) and np.array_equal(
        draws[0].labels, draws[1].labels
    )
    assert not np.array_equal(draws[0].labels[:200], draws[2].labels[:200])


def test_without_a_cut_a_pair_is_the_whole_chunk(text):
    """A chunk as long as any document: one pair a document, and nothing is lost."""
    corpus = text.held_out
    pairs = sentence_order_pairs(corpus, 10_000, np.random.default_rng(0))
    assert len(pairs.labels) + pairs.alone == len(corpus.document_ends) and pairs.truncated == 0
    swapped = pairs.labels == SWAPPED
    middle = np.where(swapped, pairs.first[:, 0], pairs.second[:, 0])
    assert (np.where(swapped, pairs.second[:, 1], pairs.first[:, 1]) == middle).all()
    assert set(middle) <= set(np.concatenate(document_sentences(corpus)))


def test_no_pair_at_all_is_refused(text):
    with pytest.raises(InputError, match="no chunk has two sentences"):
        sentence_order_pairs(text.held_out, 1, np.random.default_rng(0))


def test_batches_carry_both_orders(text):
    objective = Objective.named("mlm+sop")
    data = PretrainingData(text.held_out, text.wordpiece, objective, 64, 16)
    drawn = next(data.epoch(np.random.default_rng(0)))
    assert set(drawn["sentence_order"].tolist()) == {0, 1} and drawn["input_ids"].shape[0] == 16
    assert drawn["input_ids"].shape[1] <= 64 and (drawn["token_type_ids"].sum(1) > 1).all()
    assert "swapped" in data.report


# --- the experiments, made small ----------------------------------------------------


def test_all_kinds_of_sharing_start_alike(text):
    models = [albert_sharing.new_model(albert_sharing.RUN, text, sharing) for sharing in SHARING]
    for model in models[1:]:
        for mine, first in zip(
            model.encoder.embeddings.parameters(),
            models[0].encoder.embeddings.parameters(),
            strict=True,
        ):
            assert torch.equal(mine, first)
        assert torch.equal(
            model.encoder.layers[0].expand.weight, models[0].encoder.layers[0].expand.weight
        )
    last = [list(model.encoder.layers)[-1].expand.weight for model in models]
    assert torch.equal(last[0], last[2]) and not torch.equal(last[0], last[3])


def test_a_stopped_experiment_goes_on(tmp_path, monkeypatch, text):
    output = tmp_path / "sharing.json"
    short = replace(albert_sharing.RUN, steps=2, batch_size=4)
    monkeypatch.setattr(albert_sharing, "ARMS", ("all", "none"))
    monkeypatch.setattr(albert_sharing, "held_out_metrics", lambda *_: {"token": {"loss": 1.0}})
    monkeypatch.setattr(grid, "open_text", lambda *_: text)
    for seeds in (1, 2):
        grid.run(albert_sharing, output, seeds, settings=albert_sharing.SETTINGS | {"start": short})
    rows = json.loads(output.read_text())["rows"]
    assert [(row["sharing"], row["seed"]) for row in rows] == [
        (s, n) for n in (0, 1) for s in ("all", "none")
    ]
    assert rows[0]["in_layers"] * 2 == rows[1]["in_layers"]


@pytest.fixture(scope="module")
def pairs(text):
    """Both kinds of whole pairs, of the held-out text only: it is short."""
    return {
        task: albert_sop.whole(task, replace(text, train=text.held_out))
        for task in albert_sop.TASKS
    }


def test_whole_pairs_are_balanced_and_hide_nothing(text, pairs):
    for data, _ in pairs.values():
        assert data.labels.mean() == 0.5 and len(data) > 800
        drawn = next(data.epoch(np.random.default_rng(0)))
        assert (
            len(drawn["masked_positions"]) == 0 and text.wordpiece.mask_id not in drawn["input_ids"]
        )


def test_shared_tokens_do_not_know_the_order(pairs):
    """Swapped segments give the same product of bags; two bags side by side can tell."""
    data = pairs["SOP"][0]
    shared, labels = albert_sop.bags(data, "shared", 50)
    beside, _ = albert_sop.bags(data, "side by side", 50)
    half = beside.shape[1] // 2
    assert torch.equal(shared, beside[:, :half] * beside[:, half:]) and len(labels) == 50
    known = [
        albert_sop.bag_of_words(data, data, reader) for reader in albert_sop.READERS
    ]  # fitted to the asked pairs
    assert known[0] < 0.9 and known[1] > 0.95


def test_each_model_is_asked_both_questions(tmp_path, monkeypatch, text):
    short = replace(albert_sop.START, steps=2)
    output = tmp_path / "sop.json"
    monkeypatch.setattr(albert_sop, "open_text", lambda *_: replace(text, train=text.held_out))
    settings = {"start": short, "task": short, "probed": 64}
    for _ in range(2):  # the second time nothing is left to do
        grid.run(albert_sop, output, 1, settings=settings)
    with pytest.raises(InputError, match="probed: 64 there, 65 now"):
        grid.run(albert_sop, output, 1, settings=settings | {"probed": 65})
    content = json.loads(output.read_text())
    assert [row["trained"] for row in content["rows"]] == ["none", "NSP", "SOP"]
    for row in content["rows"]:
        assert {name: set(found) for name, found in row["asked"].items()} == {
            name: {"head", "probe"} for name in albert_sop.TASKS
        }
    first, second, third = (row["asked"]["NSP"] for row in content["rows"])
    assert first != second or second != third


def test_a_new_head_stands_on_the_same_encoder(text):
    start = runs.new_model(replace(albert_sop.START, objective="mlm", seed=5), text)
    model = albert_sop.with_head(start, albert_sop.TASK, text)
    assert all(
        torch.equal(weight, model.state_dict()[name]) for name, weight in start.state_dict().items()
    )
    assert [task.name for task in model.tasks] == ["next_sentence"]
