"""The span boundary objective: the targets by hand and by rule, the head against plain
arithmetic."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spanbert_tutorial.bert.masking import corrupt
from spanbert_tutorial.spanbert.boundary import (
    BoundaryTargets,
    SpanBoundaryObjective,
    boundary_loss,
    boundary_targets,
)
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of


def one_block(pattern: str, max_offset: int = 15, length: int | None = None) -> BoundaryTargets:
    """Targets of a block drawn as "..##.": # is masked. Its ids are 100, 101, 102, …"""
    masked = np.array([[sign == "#" for sign in pattern]], dtype=bool)
    lengths = np.array([len(pattern) if length is None else length])
    return boundary_targets(masked, 100 + np.arange(len(pattern))[None], lengths, max_offset)


def grouped(rows: BoundaryTargets) -> dict[tuple[int, int, int], list[int]]:
    """(block, left, right) of each span -> its labels, in order. The offsets count from 0."""
    spans: dict[tuple[int, int, int], list[int]] = {}
    for block, left, right, offset, label in zip(*(part.tolist() for part in rows), strict=True):
        labels = spans.setdefault((block, left, right), [])
        assert offset == len(labels)
        labels.append(label)
    return spans


def pairs(rows: BoundaryTargets) -> list[list[int]]:
    """Left and right boundary token of each span."""
    return [[left, right] for _, left, right in grouped(rows)]


def real(rows: BoundaryTargets) -> list[list[int]]:
    """The labels of each span."""
    return list(grouped(rows).values())


def head_of(hidden: int = 8, vocabulary: int = 30, **options: int) -> SpanBoundaryObjective:
    torch.manual_seed(0)
    head = SpanBoundaryObjective(
        hidden, nn.Parameter(torch.randn(vocabulary, hidden)), **options
    ).double()
    for parameter in head.parameters():  # so that biases and norms matter, too
        nn.init.normal_(parameter, std=0.5)
    return head


# --- targets: worked by hand --------------------------------------------------------


def test_the_football_example():
    """Super Bowl 50 was [an American football game] to …: boundary x4 and x9, football is x7 =
    p3."""
    rows = one_block("....####....")
    assert grouped(rows) == {(0, 4, 9): [104, 105, 106, 107]}
    assert rows.labels[rows.offset == 3 - 1] == 100 + 7 - 1  # x7 = p3 is the block's position 6


@pytest.mark.parametrize("pattern", ["##...", "...##", "#####", "#", "", ".....", "##.##"])
def test_a_span_at_the_edge_gives_no_row(pattern):
    rows = one_block(pattern)
    assert all(part.shape == (0,) for part in rows)


def test_touching_spans_are_one():
    """Drawn as two spans, places 1–2 and 3–4: one row, with the neighbors of the whole run."""
    masked = np.zeros((1, 6), dtype=bool)
    masked[0, 1:3] = masked[0, 3:5] = True
    rows = boundary_targets(masked, np.arange(6)[None], np.array([6]))
    assert pairs(rows) == [[1, 6]] and real(rows) == [[1, 2, 3, 4]]


def test_two_spans_may_share_a_boundary_token():
    rows = one_block(".##.#.")
    assert pairs(rows) == [[1, 4], [4, 6]] and real(rows) == [[101, 102], [104]]


@pytest.mark.parametrize("masked, expected", [(14, 14), (15, 15), (16, 15), (40, 15)])
def test_long_spans_are_cut_at_max_offset(masked, expected):
    """The cut concerns targets only: the right boundary is still the token after the whole span."""
    rows = one_block("." + "#" * masked + ".")
    assert pairs(rows) == [[1, masked + 2]]
    assert real(rows) == [list(range(101, 101 + expected))]


def test_max_offset_sets_the_number_of_rows():
    assert real(one_block(".####.", max_offset=2)) == [[101, 102]]


def test_targets_are_the_originals_also_where_the_input_keeps_or_replaces_them():
    """All spans replaced by [MASK], by random tokens, or kept: the rows do not change."""
    rng = np.random.default_rng(0)
    ids = np.arange(50, 90)[None]
    masked = np.zeros((1, 40), dtype=bool)
    masked[0, 3:6] = masked[0, 20:22] = True
    rows = boundary_targets(masked, ids, np.array([40]))
    inputs = set()
    for _ in range(60):
        seen = corrupt(ids, masked, rng, mask_id=4, random_ids=np.arange(5, 10), unit="span")
        inputs |= {tuple(seen[0, 3:6])}
    assert {(4, 4, 4), (53, 54, 55)} < inputs and len(
        inputs
    ) > 2  # masked, kept and random spans did occur
    assert real(rows) == [[53, 54, 55], [70, 71]]


# --- targets: properties ------------------------------------------------------------


@st.composite
def batches(draw):
    n = draw(st.integers(0, 40))
    rows = draw(st.integers(0, 4))
    blocks = st.lists(st.booleans(), min_size=n, max_size=n)
    masked = np.array(draw(st.lists(blocks, min_size=rows, max_size=rows)), dtype=bool).reshape(
        rows, n
    )
    lengths = np.array(draw(st.lists(st.integers(0, n), min_size=rows, max_size=rows)), dtype=int)
    ids = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1000, (rows, n))
    return masked, ids, lengths, draw(st.integers(1, 20))


@settings(max_examples=200)
@given(batches())
def test_rows_are_the_inner_runs_and_boundary_tokens_are_never_masked(batch):
    masked, ids, lengths, max_offset = batch
    rows = boundary_targets(*batch)
    expected = {}
    for row, length in enumerate(lengths):
        for first, last in spans_of(masked[row, :length]):
            if first > 0 and last < length - 1:
                wanted = ids[row, first : last + 1][:max_offset].tolist()
                expected[row, first, last + 2] = wanted
    assert grouped(rows) == expected and list(grouped(rows)) == list(expected)
    for side in (rows.left, rows.right):
        assert not masked[rows.batch, side - 1].any()  # - 1: back to the block
        assert (side >= 1).all() and (side.numpy() <= lengths[rows.batch]).all()


@pytest.mark.parametrize("complete_words", [True, False])
def test_with_span_masking_boundary_tokens_are_free_and_nearly_all_masked_tokens_are_targets(
    complete_words,
):
    rng = np.random.default_rng(3)
    lengths = np.full(300, 128)
    starts = np.ones((300, 128), dtype=bool)
    masked = SpanMasking(complete_words=complete_words).select_batch(starts, lengths, rng)
    rows = boundary_targets(masked, np.arange(300 * 128).reshape(300, 128), lengths)
    assert not masked[rows.batch, rows.left - 1].any()
    assert not masked[rows.batch, rows.right - 1].any()
    share = sum(map(len, real(rows))) / masked.sum()
    assert share == pytest.approx(0.965, abs=0.02)  # the released code: 0.965 of the masked tokens


# --- head ---------------------------------------------------------------------------


@pytest.mark.parametrize("hidden, expected", [(1024, 3_388_668), (768, 1_959_676)])
def test_parameter_counts_of_the_released_sizes(hidden, expected):
    """Beyond the tied embedding; the vocabulary's bias is 28,996 of them."""
    embedding = nn.Parameter(torch.empty(28_996, hidden))
    head = SpanBoundaryObjective(hidden, embedding)
    own = {name: value.numel() for name, value in head.named_parameters() if value is not embedding}
    assert sum(own.values()) == expected and own["bias"] == 28_996
    assert own["positions.weight"] == 15 * 200


def test_the_embedding_is_tied_and_the_bias_is_its_own():
    embedding = nn.Embedding(30, 8)
    head = SpanBoundaryObjective(8, embedding.weight)
    assert head.embedding_weight is embedding.weight
    assert head.bias.shape == (30,) and not head.bias.any()
    both = nn.ModuleList([embedding, head])
    # counted and trained once
    assert sum(value is embedding.weight for value in both.parameters()) == 1
    assert not any(isinstance(part, nn.Dropout) for part in head.modules())


def gelu(value: float) -> float:
    return 0.5 * value * (1 + math.erf(value / math.sqrt(2)))


def layer_norm(values: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / np.sqrt(values.var() + 1e-12) * scale + shift


def plain_logits(
    head: SpanBoundaryObjective, hidden: np.ndarray, rows: BoundaryTargets
) -> np.ndarray:
    """The head by single numbers: left, right, position; one target after the other."""
    weights = {name: value.detach().numpy() for name, value in head.state_dict().items()}
    logits = []
    for block, left, right, offset, _ in zip(*(part.tolist() for part in rows), strict=True):
        vector = np.concatenate(
            [hidden[block, left], hidden[block, right], weights["positions.weight"][offset]]
        )
        for step in ("1", "2"):
            vector = weights[f"linear{step}.weight"] @ vector + weights[f"linear{step}.bias"]
            vector = np.array([gelu(value) for value in vector])
            vector = layer_norm(vector, weights[f"norm{step}.weight"], weights[f"norm{step}.bias"])
        logits.append(weights["embedding_weight"] @ vector + weights["bias"])
    return np.array(logits)


def two_blocks() -> tuple[torch.Tensor, BoundaryTargets, np.ndarray]:
    """hidden float64 [2,10,8] ([CLS], 8 tokens, [SEP]); rows; masked [2,8]: four spans, one at an
    edge."""
    masked = np.array([[0, 1, 1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 1]], dtype=bool)
    rows = boundary_targets(masked, np.arange(16).reshape(2, 8), np.array([8, 8]), max_offset=6)
    hidden = torch.randn(2, 10, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return hidden, rows, masked


def test_the_head_equals_plain_arithmetic():
    hidden, rows, _ = two_blocks()
    head = head_of(max_offset=6, position_dim=5)
    logits = head(hidden, rows)
    expected = plain_logits(head, hidden.numpy(), rows)
    assert logits.shape == (6, 30) and np.abs(logits.detach().numpy() - expected).max() < 1e-12
    swapped = rows._replace(left=rows.right, right=rows.left)  # another result
    assert np.abs(plain_logits(head, hidden.numpy(), swapped) - expected).max() > 0.1


def test_logits_come_row_by_row_in_the_order_of_the_targets():
    hidden, rows, _ = two_blocks()
    head = head_of(max_offset=6)
    whole = head(hidden, rows)
    parts = [BoundaryTargets(*(part[k : k + 1] for part in rows)) for k in range(len(rows.labels))]
    assert torch.allclose(
        torch.cat([head(hidden, part) for part in parts]), whole, atol=1e-12, rtol=0
    )
    assert rows.labels.tolist() == [1, 2, 4, 11, 12, 13]


def test_only_boundary_states_reach_the_logits():
    hidden, rows, masked = two_blocks()
    hidden.requires_grad_()
    head_of(max_offset=6)(hidden, rows).square().sum().backward()
    reached = hidden.grad.abs().sum(dim=2) > 0  # [B, n]
    expected = torch.zeros(2, 10, dtype=torch.bool)
    expected[rows.batch, rows.left] = expected[rows.batch, rows.right] = True
    assert torch.equal(reached, expected)
    assert not reached[:, 1:-1][torch.from_numpy(masked)].any()  # never a masked token's own state
    assert not reached[:, 0].any() and not reached[:, -1].any()  # nor [CLS], [SEP]


# --- loss ---------------------------------------------------------------------------


def test_the_loss_by_hand():
    """Probabilities 1/2, 1/4 and 1/8 for the three targets, with five masked tokens."""
    rows = one_block(".##.#.")
    rows = rows._replace(labels=torch.zeros_like(rows.labels))
    probability = torch.tensor([1 / 2, 1 / 4, 1 / 8])
    logits = torch.stack([probability, 1 - probability], dim=1).log()
    total = math.log(2) + math.log(4) + math.log(8)
    assert boundary_loss(logits, rows, 5).item() == pytest.approx(total / 5, abs=1e-6)


def test_half_precision_logits_give_a_float32_loss():
    rows = one_block(".#.")
    loss = boundary_loss(torch.zeros(1, 128, dtype=torch.bfloat16), rows, 1)
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(math.log(128), abs=1e-6)
