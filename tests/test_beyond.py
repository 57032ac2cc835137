"""Ways beyond BERT: one encoder in two ways, orders, formats for hidden spans, attention by
distance, the table."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from environment import ROOT
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.pretraining.directions import twin_states
from spanbert_tutorial.pretraining.encoded_text import open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives import beyond, systems
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of

# words 0, 1, 2
CLS = 3
MASK = 4
WORDS = 3


def small(seed=0, vocabulary=5):
    """A masked language model with clear preferences, in float64."""
    torch.manual_seed(seed)
    config = EncoderConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=8,
        initializer_range=0.4,
    )
    return PretrainingModel(config, Objective.named("mlm")).double().eval()


def every_text(length):
    """[3**length, 1 + length], [CLS] in front."""
    texts = list(itertools.product(range(WORDS), repeat=length))
    return torch.cat([torch.full((len(texts), 1), CLS), torch.tensor(texts)], dim=1)


# --- orders -------------------------------------------------------------------------


def test_order_patterns_by_hand():
    content, query = beyond.order_patterns([2, 0, 3, 1])
    assert content.int().tolist() == [[1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 1, 1]]
    assert query.int().tolist() == [[0, 0, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]]


@given(st.permutations(range(6)))
def test_order_patterns_follow_the_order(order):
    content, query = beyond.order_patterns(order)
    for i, j in itertools.product(range(6), repeat=2):
        earlier = order.index(j) < order.index(i)
        assert query[i, j] == earlier and content[i, j] == (earlier or i == j)


def in_order(model, ids, order):
    """log P of every text [B] by the chain rule in this order; [CLS] comes first and is given."""
    content, query = beyond.order_patterns(order)
    query[0, 0] = True  # the twin of [CLS] predicts nothing, but softmax needs something
    states = twin_states(model.encoder, ids, MASK, content, query)
    # words only, so that the sum can be 1
    logits = model.masked_language_model(states[:, 1:])[..., :WORDS]
    return logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).sum(dim=(1, 2))


@torch.no_grad()
def test_in_every_order_the_texts_share_one_probability():
    model = small()
    texts = every_text(3)
    totals = []
    firsts = []
    for order in itertools.permutations([1, 2, 3]):
        p = in_order(model, texts, [0, *order]).exp()
        totals.append(p.sum().item())
        firsts.append(p[0].item())
    assert np.allclose(totals, 1) and np.ptp(firsts) > 1e-4


# --- two ways -----------------------------------------------------------------------


def test_the_chain_rule_adds_up_to_one():
    model = beyond.LeftToRight(small())
    ids = torch.cat(
        [torch.full((125, 1), CLS), torch.tensor(list(itertools.product(range(5), repeat=3)))],
        dim=1,
    )
    log_p = model.chain_rule(ids)  # [125,3], over the whole vocabulary of 5
    assert log_p.shape == (125, 3) and abs(log_p.sum(1).exp().sum().item() - 1) < 1e-9
    assert torch.allclose(model.chain_rule(ids, first=3), log_p[:, 2:])


@torch.no_grad()
def test_left_to_right_looks_left():
    model = beyond.LeftToRight(small())
    ids = torch.tensor([[CLS, 0, 1, 2, 0]])
    changed = ids.clone()
    changed[0, 3] = 1
    same = (model.states(ids) - model.states(changed)).abs().amax(-1)[0]
    assert same[:3].max() == 0 and same[3:].min() > 1e-6


def batch():
    return {
        "input_ids": torch.tensor([[CLS, MASK, 1, 2], [CLS, 2, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]),
        "labels": torch.tensor([[-100, 0, -100, -100], [-100, 1, -100, -100]]),
    }


@pytest.mark.parametrize("every, kept", [(True, [0, 1, 2, 3]), (False, [0, 3])])
def test_the_loss_of_the_original_text(every, kept):
    model = beyond.LeftToRight(small(), every)
    given_batch = batch()
    before = given_batch["input_ids"].clone()
    loss = model(given_batch)["loss"].item()
    whole = model.chain_rule(torch.tensor([[CLS, 0, 1, 2], [CLS, 1, 0, 0]]))
    wanted = torch.cat([whole[0], whole[1, :1]])  # three pairs of the first row, one of the second
    assert abs(loss + wanted[kept].mean().item()) < 1e-9
    assert torch.equal(given_batch["input_ids"], before)  # the batch is left as it was


def test_both_ways_share_their_weights():
    model = small()
    other = beyond.LeftToRight(model)
    assert {id(p) for p in other.parameters()} == {id(p) for p in model.parameters()}


@torch.no_grad()
def test_a_gap_by_bayes_rule():
    model = beyond.LeftToRight(small())
    ids = torch.tensor([CLS, 0, MASK, 2, 1])
    rows = ids.repeat(5, 1)
    rows[:, 2] = torch.arange(5)
    joint = model.chain_rule(rows).sum(1).exp()
    found = beyond.gap_by_chain_rule(model, ids, 2)
    assert torch.allclose(found, joint / joint.sum())
    end = beyond.gap_by_chain_rule(model, ids, 4)  # nothing on the right: the next token
    assert torch.allclose(
        end, model.masked_language_model(model.states(ids[None])[0, 3]).softmax(-1)
    )


@torch.no_grad()
def test_pseudo_log_likelihood_one_token_at_a_time():
    model = small()
    ids = torch.tensor([CLS, 0, 2, 1, 3])
    alone = []
    for place in (1, 2, 3):
        seen = ids.clone()
        seen[place] = MASK
        alone.append(
            model.masked_language_model(model.encoder(seen[None])[0, place]).log_softmax(-1)[
                ids[place]
            ]
        )
    assert torch.allclose(beyond.pseudo_log_likelihood(model, ids, MASK), torch.stack(alone))


def test_pseudo_likelihoods_do_not_add_up_to_one():
    model = small()
    rows = [torch.tensor([CLS, *text, 3]) for text in itertools.product(range(5), repeat=3)]
    total = sum(beyond.pseudo_log_likelihood(model, row, MASK).sum().exp().item() for row in rows)
    assert abs(total - 1) > 1e-3


# --- formats ------------------------------------------------------------------------

HIDDEN = np.isin(np.arange(11), [2, 3, 8])


def test_the_example_of_the_t5_paper():
    source, target = beyond.span_corruption(np.arange(11), HIDDEN, [100, 101, 102])
    assert source.tolist() == [0, 1, 100, 4, 5, 6, 7, 101, 9, 10]
    assert target.tolist() == [100, 2, 3, 101, 8, 102]
    assert beyond.text_infilling(np.arange(11), HIDDEN, 99).tolist() == [
        0,
        1,
        99,
        4,
        5,
        6,
        7,
        99,
        9,
        10,
    ]


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_both_formats_can_be_undone(hidden):
    ids = np.arange(len(hidden))
    selected = np.array(hidden)
    marks = list(range(100, 100 + len(spans_of(selected)) + 1))
    source, target = beyond.span_corruption(ids, selected, marks)
    parts = np.split(target, np.flatnonzero(target >= 100))
    restored = []
    behind = {int(part[0]): part[1:].tolist() for part in parts if len(part)}
    for token in source.tolist():
        restored += behind[token] if token >= 100 else [token]
    assert restored == ids.tolist()
    assert len(source) + len(target) == len(ids) + 2 * len(spans_of(selected)) + 1
    infilled = beyond.text_infilling(ids, selected, 99)
    assert (infilled == 99).sum() == len(spans_of(selected)) and len(infilled) == len(source)


def test_the_book_s_spans_give_short_targets():
    selected = SpanMasking().select(np.ones(512, dtype=bool), np.random.default_rng(0))
    _, target = beyond.span_corruption(np.arange(512), selected, list(range(600, 700)))
    assert len(target) == 77 + len(spans_of(selected)) + 1


# --- attention by content and by distance -------------------------------------------


def test_distances_of_four_tokens():
    assert beyond.distance_rows(4, 2).tolist() == [
        [2, 1, 0, 0],
        [3, 2, 1, 0],
        [3, 3, 2, 1],
        [3, 3, 3, 2],
    ]


def test_scores_in_a_loop():
    torch.manual_seed(0)
    n = 5
    d = 4
    k = 3
    query, key, distance_query, distance_key = (
        torch.randn(2, n, d).unbind() + torch.randn(2, 2 * k, d).unbind()
    )
    parts = beyond.disentangled_scores(query, key, distance_query, distance_key)
    for i, j in itertools.product(range(n), repeat=2):
        there = min(max(i - j + k, 0), 2 * k - 1)
        back = min(max(j - i + k, 0), 2 * k - 1)
        wanted = query[i] @ key[j], query[i] @ distance_key[there], key[j] @ distance_query[back]
        assert torch.allclose(
            torch.stack([part[i, j] for part in parts.values()]), torch.stack(wanted), atol=1e-6
        )


@pytest.mark.parametrize("heads", [1, 2])
@torch.no_grad()
def test_the_weights_of_deberta_in_transformers(heads):
    from transformers import DebertaV2Config, DebertaV2Model

    torch.manual_seed(0)
    config = DebertaV2Config(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=heads,
        intermediate_size=16,
        relative_attention=True,
        max_relative_positions=3,
        type_vocab_size=0,
        pos_att_type=["c2p", "p2c"],
        initializer_range=0.8,
        max_position_embeddings=8,
        attn_implementation="eager",
    )
    model = DebertaV2Model(config).eval()
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    wanted = model(ids, output_attentions=True).attentions[0][0]  # [A,n,n]
    layer = model.encoder.layer[0].attention.self
    hidden = model.embeddings(ids)[0]
    table = model.encoder.rel_embeddings
    inputs = (
        (layer.query_proj, hidden),
        (layer.key_proj, hidden),
        (layer.pos_query_proj, table.weight),
        (layer.pos_key_proj, table.weight),
    )
    found = {}
    for released in (True, False):
        rows = []
        for head in range(heads):
            width = slice(head * 8 // heads, (head + 1) * 8 // heads)
            parts = beyond.disentangled_scores(
                *(part(x)[:, width] for part, x in inputs), as_released=released
            )
            rows.append((sum(parts.values()) / math.sqrt(3 * 8 / heads)).softmax(-1))
        found[released] = (torch.stack(rows) - wanted).abs().max()
    # the code takes the row of i - j in the third part, too
    assert found[True] < 1e-5 and found[False] > 1e-3


# --- the table ----------------------------------------------------------------------


def test_sizes_are_those_of_the_quoted_papers():
    papers = json.loads((ROOT / "data" / "papers.json").read_text(encoding="utf-8"))
    size = {name: row["size"].text for name, row in systems.SYSTEMS.items()}
    assert size["BERT"] == "{} M, {} M".format(*papers["bert_parameters_millions"]["value"])
    assert size["ELECTRA"].startswith(
        "{} M, {} M".format(
            papers["electra_table1_small_millions"]["value"],
            papers["electra_table1_base_millions"]["value"],
        )
    )
    t5 = papers["t5_sizes_millions"]["value"]
    assert size["T5"] == ", ".join(f"{m} M" if m < 1000 else f"{m / 1000:g} B" for m in t5)
    gpt3 = papers["gpt3_sizes"]["value"]
    assert size["GPT-3"] == f"{gpt3['smallest_millions']} M to {gpt3['largest_billions']} B"
    assert size["DeBERTa"].endswith(f"{papers['deberta_large_version']['value']['billions']} B")
    layers = papers["bart_layers"]["value"].values()
    assert size["BART"] == ", ".join("{} + {} layers".format(*pair) for pair in layers)


# --- the experiment -----------------------------------------------------------------


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return open_text("almanac", tmp_path_factory.mktemp("almanac"))
