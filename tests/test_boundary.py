"""The span boundary objective: the targets by hand and by rule, the head against plain
arithmetic."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.masking import corrupt
from spanbert_tutorial.spanbert.boundary import (
    BoundaryTargets,
    SpanBoundaryObjective,
    boundary_loss,
    boundary_targets,
)
from spanbert_tutorial.spanbert.span_masking import SpanMasking, spans_of


def one_block(pattern: str, max_targets: int = 15, length: int | None = None) -> BoundaryTargets:
    """Targets of a block drawn as "..##.": # is masked. Its ids are 100, 101, 102, …"""
    selected = np.array([[sign == "#" for sign in pattern]])
    lengths = np.array([len(pattern) if length is None else length])
    return boundary_targets(selected, 100 + np.arange(len(pattern))[None], lengths, max_targets)


def real(targets: BoundaryTargets) -> list[list[int]]:
    """The targets of each row without its padding."""
    return [[value for value in row if value != NO_TARGET] for row in targets.targets.tolist()]


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
    assert rows.batch.tolist() == [0] and rows.pairs.tolist() == [[4, 9]]
    assert real(rows) == [[104, 105, 106, 107]]
    assert rows.targets[0, 3 - 1] == 100 + 7 - 1  # p3 is column 2; x7 is the block's place 6


@pytest.mark.parametrize("pattern", ["##...", "...##", "#####", "#", "", ".....", "##.##"])
def test_a_span_at_the_edge_gives_no_row(pattern):
    rows = one_block(pattern)
    assert rows.batch.shape == (0,) and rows.pairs.shape == (0, 2) and rows.targets.shape == (0, 15)


def test_touching_spans_are_one():
    """Drawn as two spans, places 1–2 and 3–4: one row, with the neighbors of the whole run."""
    selected = np.zeros((1, 6), dtype=bool)
    selected[0, 1:3] = selected[0, 3:5] = True
    rows = boundary_targets(selected, np.arange(6)[None], np.array([6]))
    assert rows.pairs.tolist() == [[1, 6]] and real(rows) == [[1, 2, 3, 4]]


def test_two_spans_may_share_a_boundary_token():
    rows = one_block(".##.#.")
    assert rows.pairs.tolist() == [[1, 4], [4, 6]] and real(rows) == [[101, 102], [104]]


@pytest.mark.parametrize("masked, expected", [(14, 14), (15, 15), (16, 15), (40, 15)])
def test_long_spans_are_cut_at_max_targets(masked, expected):
    """The cut concerns targets only: the right boundary is still the token after the whole span."""
    rows = one_block("." + "#" * masked + ".")
    assert rows.pairs.tolist() == [[1, masked + 2]]
    assert real(rows) == [list(range(101, 101 + expected))] and rows.targets.shape == (1, 15)


def parts_of(rows: BoundaryTargets) -> tuple[torch.Tensor, ...]:
    return rows.batch, rows.pairs, rows.targets


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint16])
def test_everything_is_int64_and_padded_with_no_target(kind):
    rows = boundary_targets(
        np.array([[0, 1, 1, 0]], dtype=bool), np.array([[5, 6, 7, 8]], dtype=kind), np.array([4])
    )
    assert all(part.dtype == torch.int64 for part in parts_of(rows))
    assert rows.targets.tolist() == [[6, 7] + [-100] * 13] and NO_TARGET == -100
    assert nn.CrossEntropyLoss().ignore_index == NO_TARGET


def test_targets_are_the_originals_also_where_the_input_keeps_or_replaces_them():
    """All spans replaced by [MASK], by random tokens, or kept: the rows do not change."""
    rng = np.random.default_rng(0)
    ids = np.arange(50, 90)[None]
    selected = np.zeros((1, 40), dtype=bool)
    selected[0, 3:6] = selected[0, 20:22] = True
    rows = boundary_targets(selected, ids, np.array([40]))
    inputs = set()
    for _ in range(60):
        seen = corrupt(ids, selected, rng, mask_id=4, random_ids=np.arange(5, 10), unit="span")
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
    selected = np.array(draw(st.lists(blocks, min_size=rows, max_size=rows)), dtype=bool).reshape(
        rows, n
    )
    lengths = np.array(draw(st.lists(st.integers(0, n), min_size=rows, max_size=rows)), dtype=int)
    ids = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1000, (rows, n))
    return selected, ids, lengths, draw(st.integers(1, 20))


@settings(max_examples=200)
@given(batches())
def test_rows_are_the_inner_runs_and_boundary_tokens_are_never_masked(batch):
    selected, ids, lengths, max_targets = batch
    rows = boundary_targets(*batch)
    expected = []
    for row, length in enumerate(lengths):
        for first, last in spans_of(selected[row, :length]):
            if first > 0 and last < length - 1:
                wanted = ids[row, first : last + 1][:max_targets].tolist()
                expected.append((row, [first, last + 2], wanted))
    assert list(zip(rows.batch.tolist(), rows.pairs.tolist(), real(rows), strict=True)) == expected
    for row, pair in zip(rows.batch, rows.pairs, strict=True):
        places = pair - 1  # back to the block
        assert (
            not selected[row, places].any()
            and (places >= 0).all()
            and (places < lengths[row]).all()
        )


@pytest.mark.parametrize("complete_words", [True, False])
def test_with_span_masking_boundary_tokens_are_free_and_nearly_all_masked_tokens_are_targets(
    complete_words,
):
    rng = np.random.default_rng(3)
    lengths = np.full(300, 128)
    starts = np.ones((300, 128), dtype=bool)
    selected = SpanMasking(complete_words=complete_words).select_batch(starts, lengths, rng)
    rows = boundary_targets(selected, np.arange(300 * 128).reshape(300, 128), lengths)
    assert not selected[rows.batch[:, None], rows.pairs - 1].any()
    share = sum(map(len, real(rows))) / selected.sum()
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
    assert (
        sum(value is embedding.weight for value in both.parameters()) == 1
    )  # counted and trained once
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
    for block, (left, right), ids in zip(*(part.tolist() for part in parts_of(rows)), strict=True):
        for offset in [place for place, target in enumerate(ids) if target != NO_TARGET]:
            vector = np.concatenate(
                [hidden[block, left], hidden[block, right], weights["positions.weight"][offset]]
            )
            for step in ("1", "2"):
                vector = weights[f"linear{step}.weight"] @ vector + weights[f"linear{step}.bias"]
                vector = np.array([gelu(value) for value in vector])
                vector = layer_norm(
                    vector, weights[f"norm{step}.weight"], weights[f"norm{step}.bias"]
                )
            logits.append(weights["embedding_weight"] @ vector + weights["bias"])
    return np.array(logits)


def two_blocks() -> tuple[torch.Tensor, BoundaryTargets, np.ndarray]:
    """hidden float64 [2,10,8] ([CLS], 8 tokens, [SEP]); rows; selected [2,8]: four spans, one at an
    edge."""
    selected = np.array([[0, 1, 1, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 1]], dtype=bool)
    rows = boundary_targets(selected, np.arange(16).reshape(2, 8), np.array([8, 8]), max_targets=6)
    hidden = torch.randn(2, 10, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return hidden, rows, selected


def test_the_head_equals_plain_arithmetic():
    hidden, rows, _ = two_blocks()
    head = head_of(max_targets=6, position_dim=5)
    logits = head(hidden, rows)
    expected = plain_logits(head, hidden.numpy(), rows)
    assert logits.shape == (6, 30) and np.abs(logits.detach().numpy() - expected).max() < 1e-12
    swapped = BoundaryTargets(
        rows.batch, rows.pairs.flip(1), rows.targets
    )  # right, left: another result
    assert np.abs(plain_logits(head, hidden.numpy(), swapped) - expected).max() > 0.1


def test_logits_come_row_by_row_in_the_order_of_the_targets():
    hidden, rows, _ = two_blocks()
    head = head_of(max_targets=6)
    whole = head(hidden, rows)
    parts = [
        BoundaryTargets(*(part[k : k + 1] for part in parts_of(rows)))
        for k in range(len(rows.batch))
    ]
    assert torch.allclose(
        torch.cat([head(hidden, part) for part in parts]), whole, atol=1e-12, rtol=0
    )
    assert rows.targets[rows.targets != NO_TARGET].tolist() == [1, 2, 4, 11, 12, 13]


def test_only_boundary_states_reach_the_logits():
    hidden, rows, selected = two_blocks()
    hidden.requires_grad_()
    head_of(max_targets=6)(hidden, rows).square().sum().backward()
    reached = hidden.grad.abs().sum(dim=2) > 0  # [B, n]
    expected = torch.zeros(2, 10, dtype=torch.bool)
    expected[rows.batch[:, None], rows.pairs] = True
    assert torch.equal(reached, expected)
    assert not reached[:, 1:-1][
        torch.from_numpy(selected)
    ].any()  # never a masked token's own state
    assert not reached[:, 0].any() and not reached[:, -1].any()  # nor [CLS], [SEP]


# --- loss ---------------------------------------------------------------------------


def test_both_normalisations_by_hand():
    """Probabilities 1/2, 1/4 and 1/8 for the three targets, with five masked tokens."""
    rows = one_block(".##.#.")
    rows = BoundaryTargets(rows.batch, rows.pairs, torch.where(rows.targets > 0, 0, rows.targets))
    probability = torch.tensor([1 / 2, 1 / 4, 1 / 8])
    logits = torch.stack([probability, 1 - probability], dim=1).log()
    total = math.log(2) + math.log(4) + math.log(8)
    assert boundary_loss(logits, rows, 5).item() == pytest.approx(total / 5, abs=1e-6)
    assert boundary_loss(logits, rows, 5, "released").item() == pytest.approx(
        total / (3 + 1), abs=1e-6
    )
    assert boundary_loss(logits, rows, 5, "paper").item() == boundary_loss(logits, rows, 5).item()


def test_half_precision_logits_give_a_float32_loss():
    rows = one_block(".#.")
    loss = boundary_loss(torch.zeros(1, 128, dtype=torch.bfloat16), rows, 1)
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(math.log(128), abs=1e-6)
