"""Who took spans up: orders, formats of spans, T5's and UL2's masks."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.pretraining.directions import twin_states
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.relatives import beyond
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


# --- formats ------------------------------------------------------------------------

MASKED = np.isin(np.arange(11), [2, 3, 8])


def test_the_example_of_the_t5_paper():
    source, target = beyond.span_corruption(np.arange(11), MASKED, [100, 101, 102])
    assert source.tolist() == [0, 1, 100, 4, 5, 6, 7, 101, 9, 10]
    assert target.tolist() == [100, 2, 3, 101, 8, 102]
    wanted = [0, 1, 99, 4, 5, 6, 7, 99, 9, 10]
    assert beyond.text_infilling(np.arange(11), MASKED, 99).tolist() == wanted


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_both_formats_can_be_undone(flags):
    ids = np.arange(len(flags))
    selected = np.array(flags)
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


# --- T5's and UL2's masks -----------------------------------------------------------


@given(
    st.integers(2, 200),
    st.sampled_from([(0.15, 3), (0.15, 8), (0.5, 3), (0.5, 8), (0.15, 64), (0.5, 64)]),
    st.integers(0, 9),
)
def test_t5_fixes_how_much_and_how_many(n, denoiser, seed):
    rate, mean = denoiser
    masked = beyond.noise_mask(n, rate, mean, np.random.default_rng(seed))
    tokens = min(max(round(n * rate), 1), n - 1)
    assert len(masked) == n and masked.sum() == tokens and not masked[0] and masked[-1]
    assert len(spans_of(masked)) == min(max(round(tokens / mean), 1), n - tokens)


def test_one_span_is_a_prefix_language_model():
    masked = beyond.noise_mask(512, 0.25, 128, np.random.default_rng(0))
    assert masked.tolist() == [False] * 384 + [True] * 128
