"""Names ranked, pairs told apart, and the experiment that uses both: on small hand-made blocks."""

from collections import Counter

import numpy as np
import pytest
import torch

from research.experiments import span_settings, spans_on_wikipedia
from research.measurements import gap, name_ranks, pair_probe
from research.placebo import Placebo
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.spanbert import name_ranks as name_ranking
from spanbert_tutorial.spanbert.boundary import SpanBoundaryObjective
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.name_ranks import ELSEWHERE, INFERRED, OTHERWISE, Gap, Known
from spanbert_tutorial.spanbert.names import Block, Name, named_blocks

BLOCK = Block(
    np.array([5, 6, 9, 7, 9, 5, 6, 9, 8]),
    [
        Name(0, 1, "TOWN", "a"),
        Name(3, 3, "TOWN", "b"),
        Name(5, 6, "TOWN", "a"),
        Name(8, 8, "TOWN", "b"),
    ],
)
KNOWN = Known(
    {("TOWN", 2): np.array([(5, 6), (5, 7), (8, 8)]), ("TOWN", 1): np.array([(7,), (8,)])},
    {("TOWN", 2): np.array([5, 3, 2]), ("TOWN", 1): np.array([4, 4])},
    {("TOWN", (5, 6)): Counter(b=1), ("TOWN", (5, 7)): Counter(b=3), ("TOWN", (8, 8)): Counter()},
    Counter(a=5, b=4),
)


def gaps(block: Block) -> list[name_ranking.Gap]:
    return [name_ranking.Gap(block, name, name_ranking.where(block, name)) for name in block.names]


def test_where_else_the_block_names_it():
    assert [gap.where for gap in gaps(BLOCK)] == [ELSEWHERE, OTHERWISE, ELSEWHERE, OTHERWISE]
    alone = Block(BLOCK.ids, BLOCK.names[1:3])
    assert [gap.where for gap in gaps(alone)] == [INFERRED, INFERRED]


def test_ranks_by_hand():
    assert name_ranking.rank(np.array([3.0, 1.0, 2.0]), 2) == 2
    assert name_ranking.rank(np.array([1.0, 1.0, 1.0]), 0) == 2  # of three equal ones the middle
    gap = Gap(BLOCK, BLOCK.names[0], ELSEWHERE)
    logs = np.full((2, 10), -9.0)
    logs[0, 5], logs[1, 6], logs[1, 7] = -1.0, -3.0, -2.0
    assert name_ranks.ranked(gap, KNOWN, logs) == 2  # (5, 7) has −3, the true (5, 6) −4, (8, 8) −18
    assert name_ranking.by_frequency(gap, KNOWN) == 1
    assert name_ranking.by_companions(gap, KNOWN) == 2  # documents of (5, 7) hold b more often
    assert name_ranking.by_frequency(Gap(BLOCK, BLOCK.names[1], INFERRED), KNOWN) == 1.5


def test_a_name_that_training_text_lacks_is_not_asked():
    other = Block(np.array([6, 6]), [Name(0, 1, "TOWN", "c")])
    assert [gap.block is BLOCK for gap in name_ranking.asked([BLOCK, other], KNOWN)] == [True] * 4
    found = name_ranks.figures(gaps(BLOCK), np.array([1, 2, 3, 1.0]))
    assert found[ELSEWHERE] == {
        "gaps": 2,
        "first": 50.0,
        "reciprocal": pytest.approx((1 + 1 / 3) / 2),
    }
    assert found[INFERRED]["gaps"] == 0


class Copies(torch.nn.Module):
    """A model that gives each place the token that stands right before the gap's end, so one answer
    is known."""

    def __init__(self, wanted):
        super().__init__()
        self.one = torch.nn.Parameter(torch.zeros(1))
        self.wanted = wanted

    def encoder(self, ids, *, token_type_ids=None, attention_mask=None):
        self.seen = ids
        return torch.arange(ids.shape[1]).repeat(len(ids), 1)[..., None].float()

    def masked_language_model(self, states):
        logits = torch.zeros(len(states), 10)
        for row, place in enumerate(states[:, 0].long().tolist()):
            logits[row, self.wanted[place]] = 5
        return logits


def test_all_tokens_of_a_name_are_hidden_and_scored_at_their_own_places(wordpiece):
    model = Copies({place: token for place, token in enumerate([0, 5, 7, 0, 0, 0, 0, 0, 0, 0, 0])})
    gap = Gap(BLOCK, BLOCK.names[0], ELSEWHERE)
    assert name_ranks.model_ranks(model, wordpiece, [gap], KNOWN).tolist() == [2]  # it says (5, 7)
    assert model.seen[0, 1:3].tolist() == [wordpiece.mask_id] * 2
    assert model.seen[0, 3:10].tolist() == [9, 7, 9, 5, 6, 9, 8]


def test_names_of_the_almanac_are_counted_as_written(wordpiece):
    documents = [
        {
            "text": "Alice Mercer met Bram. Mercer left.",
            "entities": [
                [0, 12, "PERSON", "p1"],
                [17, 21, "PERSON", "p2"],
                [23, 29, "PERSON", "p1"],
            ],
        }
    ] * 2
    known = name_ranking.known_names(documents, wordpiece)
    tokens = {name: tuple(wordpiece.encode(name)) for name in ("Alice Mercer", "Bram", "Mercer")}
    for name, ids in tokens.items():
        row = [tuple(one) for one in known.candidates["PERSON", len(ids)].tolist()].index(ids)
        assert known.counts["PERSON", len(ids)][row] == 2
        assert known.together["PERSON", ids] == Counter({"p1" if name == "Bram" else "p2": 2})
    assert known.documents == {"p1": 2, "p2": 2}


def test_pairs_are_a_word_and_a_name_of_one_kind(wordpiece):
    text = "Yes, Alice Mercer saw Bram Low near Foxley because she liked Foxley."
    mentions = "Alice Mercer", "Bram Low", "Foxley", "she"
    spans = {name: (text.index(name), text.index(name) + len(name)) for name in mentions}
    clusters = [[spans["Alice Mercer"], spans["she"]], [spans["Bram Low"]], [spans["Foxley"]]]
    document = {
        "text": text,
        "clusters": clusters,
        "entities": [
            [*spans["Alice Mercer"], "PERSON", "p1"],
            [*spans["Bram Low"], "PERSON", "p2"],
            [*spans["Foxley"], "TOWN", "t"],
        ],
    }
    found = pair_probe.pairs([document], wordpiece, 60)
    assert found.same.tolist() == [True, False]
    assert found.near[1] > found.near[0] > 0  # Bram Low is nearer
    ids = found.blocks[0].ids
    sides = found.places.transpose(1, 0, 2)
    word, name = ([ids[first : last + 1].tolist() for _, first, last in side] for side in sides)
    assert word == [list(wordpiece.encode("she"))] * 2
    assert name == [list(wordpiece.encode("Alice Mercer")), list(wordpiece.encode("Bram Low"))]
    assert pair_probe.area(found, found.near) == 0.0 and pair_probe.area(found, [1, 0]) == 100.0


def test_the_placebo_reads_the_neighbors_of_another_span():
    selected = np.zeros((2, 12), dtype=bool)
    selected[0, [2, 3, 8]], selected[1, 5] = True, True
    ids = np.arange(24).reshape(2, 12)
    segments = [MaskedBlocks(ids, ids, selected, np.array([12, 12]))]
    true = Boundary().targets(segments, None)
    placebo = Placebo().targets(segments, None)
    assert torch.equal(true["boundary_labels"], placebo["boundary_labels"])
    assert true["boundary_left"].tolist() == [2, 2, 8, 5]
    assert true["boundary_right"].tolist() == [5, 5, 10, 7]
    assert placebo["boundary_left"].tolist() == [8, 8, 5, 2]
    assert placebo["boundary_right"].tolist() == [10, 10, 7, 5]
    assert placebo["boundary_batch"].tolist() == [0, 0, 1, 0]


def test_named_blocks_keep_whom_they_name(wordpiece):
    document = next(iter(almanac.coreference("validation")))
    names = [name for block in named_blocks([document], wordpiece) for name in block.names]
    assert [name.entity for name in names] == [entity for *_, entity in document["entities"]]


# --- on Wikipedia -------------------------------------------------------------------


def test_a_name_of_real_text_has_capitals_and_does_not_begin_a_sentence():
    sentences = "Mary Low saw Great Foxley, Upton and the BBC.", "There Alice Low met Bram McLeod."
    document = spans_on_wikipedia.with_names(sentences)
    found = [
        (document["text"][start:end], entity) for start, end, _, entity in document["entities"]
    ]
    assert found == [("Great Foxley", "Foxley"), ("Upton", "Upton")]


def test_a_pronoun_of_gap_stands_with_the_name_that_it_means(wordpiece):
    text = "In May Alice Mercer met Bram Low because she knew him."
    places = [(said, text.index(said)) for said in ("she", "Alice Mercer", "Bram Low")]
    document = spans_on_wikipedia.as_clusters(
        gap.Row("1", text, places[0], tuple(places[1:]), (True, False))
    )
    found = pair_probe.pairs([document], wordpiece, 60)
    assert found.same.tolist() == [True, False]
    nobody = spans_on_wikipedia.as_clusters(
        gap.Row("1", text, places[0], tuple(places[1:]), (False, False))
    )
    assert len(nobody["clusters"]) == 2 and all(len(cluster) == 1 for cluster in nobody["clusters"])


# --- one setting changed ------------------------------------------------------------


def test_a_weight_multiplies_the_boundary_loss_and_boundaries_alone_see_no_positions():
    torch.manual_seed(0)
    head = SpanBoundaryObjective(8, torch.nn.Parameter(torch.randn(20, 8)))
    hidden = torch.randn(1, 7, 8)
    ids = np.array([[3, 4, 4, 4, 5]])
    selected = np.array([[False, True, True, True, False]])
    batch = Boundary().targets([MaskedBlocks(ids, ids, selected, np.array([5]))], None)
    whole = Boundary().loss(head, hidden, batch)
    changed = span_settings.ChangedBoundary
    assert torch.equal(changed().loss(head, hidden, batch), whole)
    assert torch.allclose(changed(weight=3.0).loss(head, hidden, batch), 3 * whole)
    alone = changed(positions=False).loss(head, hidden, batch)
    assert not torch.allclose(alone, whole)
    alone.backward()
    assert head.positions.weight.grad is None and head.linear1.weight.grad.abs().sum() > 0
    with torch.no_grad():
        head.positions.weight.zero_()
    assert torch.allclose(Boundary().loss(head, hidden, batch), alone)
