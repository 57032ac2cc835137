"""`book/workshop/paper_code_here`: for each row of its table a fixture that tells the readings
apart.

Each test names every reading with its exact result on a small input, checks that they differ, and
asserts the one that the project follows. Probabilities are exact by hand; 4,000 draws decide
between them.
"""

import inspect
import json
import math
import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from chapter_cells import cells

from environment import ROOT
from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.inputs import collate, frame
from spanbert_tutorial.bert.masking import (
    Blocks,
    MaskedBlocks,
    TokenMasking,
    WholeWordMasking,
    corrupt,
)
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import presets
from spanbert_tutorial.pretraining import train as train_module
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import model_state
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.pretraining.presets import BERT, RUNS, preset
from spanbert_tutorial.pretraining.runs import training_data
from spanbert_tutorial.pretraining.train import TrainingConfig
from spanbert_tutorial.spanbert import span_masking
from spanbert_tutorial.spanbert.boundary import (
    SpanBoundaryObjective,
    boundary_loss,
    boundary_targets,
)
from spanbert_tutorial.spanbert.labeled_masking import ENTITY, LabeledMasking
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, spans_of
from spanbert_tutorial.tasks import windows
from spanbert_tutorial.tasks.windows import encode
from spanbert_tutorial.text.encoding import EncodedCorpus

PAGE = ROOT / "book" / "workshop" / "paper_code_here.ipynb"
PAPERS = {
    k: v["value"]
    for k, v in json.loads(data_path("papers.json").read_text(encoding="utf-8")).items()
}
PAPER = SpanMasking()
RELEASED = SpanMasking(complete_words=False)
DRAWS = 4000


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def block_of(sizes) -> np.ndarray:
    """Word starts of words with these numbers of tokens."""
    starts = np.zeros(sum(sizes), dtype=bool)
    starts[np.cumsum(sizes) - sizes] = True
    return starts


def decide(here, **readings):
    """The project's reading by name. Readings that agree would decide nothing."""
    values = list(readings.values())
    assert all(a != b for i, a in enumerate(values) for b in values[:i]), (
        "the readings do not differ"
    )
    found = [name for name, value in readings.items() if value == here]
    assert found, f"{here} is none of {readings}"
    return found[0]


def decide_probability(share: float, **readings: float) -> str:
    """The one reading within five standard errors of a share of DRAWS draws."""
    near = [
        n
        for n, p in readings.items()
        if abs(share - p) < 5 * math.sqrt(max(p * (1 - p), 1e-3) / DRAWS)
    ]
    assert len(near) == 1, f"{share} fits {near} of {readings}"
    return near[0]


def share_first_hidden(scheme, sizes) -> float:
    """How often the first token of the block is hidden."""
    rng = generator(3)
    starts = block_of(sizes)
    return float(np.mean([scheme.select(starts, rng)[0] for _ in range(DRAWS)]))


@pytest.fixture(scope="module")
def wordpiece() -> WordPiece:
    return WordPiece.from_file(data_path("almanac", "vocab.txt"))


@pytest.fixture(scope="module")
def model() -> PretrainingModel:
    return PretrainingModel(EncoderConfig.tiny(vocab_size=2000), Objective.named("span+sbo"))


@pytest.fixture(scope="module")
def measured() -> dict[str, np.ndarray]:
    """2,000 blocks of 128 tokens with 1.37 tokens to a word, masked in both modes."""
    sizes = generator(7).choice(4, p=[0.72, 0.205, 0.06, 0.015], size=(2000, 128)) + 1
    blocks = np.stack([block_of(row)[:128] for row in sizes])
    full = np.full(2000, 128)
    modes = {"paper": PAPER, "released": RELEASED}
    return {"blocks": blocks} | {
        n: s.select_batch(blocks, full, generator(8)) for n, s in modes.items()
    }


# --- masking ------------------------------------------------------------------------


def test_01_clipped_means_cut_off():
    lengths = np.arange(1, 11)
    unclipped = 0.2 * 0.8 ** np.arange(9)
    heaped = round(float(np.append(unclipped, 0.8**9) @ lengths), 3)
    readings = {"heaped": heaped, "cut off": round(33099485 / 8717049, 3), "not at all": 5.0}
    assert heaped == 4.463
    assert decide(round(float(clipped_geometric() @ lengths), 3), **readings) == "cut off"
    assert decide(round(float(clipped_geometric()[-1]), 3), cut_off=0.03, heaped=0.134) == "cut_off"


def test_02_the_mean_of_3_8_is_that_of_drawn_lengths(measured):
    drawn = clipped_geometric() @ np.arange(1, 11)
    runs = sum(len(spans_of(mask)) for mask in measured["released"])
    words = (measured["released"] & measured["blocks"]).sum() / runs
    assert round(drawn, 1) == PAPERS["spanbert_span_mean"] == 3.8
    assert words == pytest.approx(3.39, abs=0.12) and drawn - words > 0.25
    assert measured["released"].sum() / runs == pytest.approx(4.867, abs=0.2)


@pytest.mark.parametrize("complete", [True, False])
def test_03_lengths_count_words_and_the_budget_counts_tokens(complete):
    scheme = SpanMasking(0.125, p=1.0, complete_words=complete)  # lengths of 1, a budget of 3 of 24
    for seed in range(20):
        spans = spans_of(scheme.select(block_of([3] * 8), generator(seed)))
        runs = tuple((spans[:, 1] - spans[:, 0] + 1).tolist())
        assert decide(runs, words=(3,), tokens=(1, 1, 1), budget_in_words=(9,)) == "words"


def test_04_the_budget_is_rounded_up_without_specials():
    readings = {"up": 19, "down": 18, "with specials": 20}
    assert decide(PAPER.budget(126), **readings) == "up"
    for scheme in (PAPER, RELEASED):
        assert (
            decide(int(scheme.select(np.ones(126, dtype=bool), generator()).sum()), **readings)
            == "up"
        )
    assert decide(PAPER.budget(20), exact=3, float_error=4) == "exact"


def test_05_here_the_last_word_stays_whole(measured):
    words = block_of([3] * 4)
    for seed in range(20):
        hidden = {
            name: int(s.select(words, generator(seed)).sum())
            for name, s in (("p", PAPER), ("r", RELEASED))
        }
        assert decide(hidden["p"], complete=0, broken=2, over_budget=3) == "complete"
        assert decide(hidden["r"], complete=0, broken=2, over_budget=3) == "broken"
    assert OBJECTIVES["span+sbo"].masking.complete_words
    edges = {
        n: (measured[n][:, 1:] != measured[n][:, :-1]) & ~measured["blocks"][:, 1:]
        for n in ("paper", "released")
    }
    assert not edges["paper"].any()
    assert edges["released"].any(axis=1).mean() == pytest.approx(0.31, abs=0.05)


def test_06_here_starts_are_uniform_over_words():
    shares = {
        c: share_first_hidden(SpanMasking(0.5, max_words=1, complete_words=c), [2, 1, 1])
        for c in (True, False)
    }
    assert decide_probability(shares[True], words=1 / 3, tokens=5 / 6) == "words"
    assert decide_probability(shares[False], words=1 / 3, tokens=5 / 6) == "tokens"


@pytest.mark.parametrize("mode", ["paper", "released"])
def test_07_the_first_tokens_are_hidden_less_often(measured, mode):
    share = measured[mode].mean(axis=0)
    assert 0.03 < share[0] < 0.075 and share[30:100].mean() == pytest.approx(0.165, abs=0.02)


def test_08_touching_spans_are_one(measured):
    selected = np.array([[0, 0, 1, 1, 1, 0, 0, 0]], dtype=bool)  # drawn as places 2–3 and 4
    rows = boundary_targets(selected, np.arange(8)[None], [8])
    assert decide(pairs(rows), fused=[[2, 6]], apart=[[2, 5], [4, 6]]) == "fused"
    long = [
        b[a : e + 1].sum() > 10
        for b, m in zip(measured["blocks"], measured["released"], strict=True)
        for a, e in spans_of(m)
    ]
    assert 0.002 < np.mean(long) < 0.012


def test_09_a_fused_span_has_one_fate():
    ids = np.ones(4, dtype=int)
    selected = np.array([False, True, True, False])
    mixed = {}
    for name, unit in (("default", {}), ("token", {"unit": "token"})):
        rng = generator(4)
        seen = [
            corrupt(ids, selected, rng, mask_id=0, random_ids=[-1], **unit) for _ in range(DRAWS)
        ]
        mixed[name] = float(np.mean([row[1] != row[2] for row in seen]))
    assert (
        decide_probability(mixed["default"], span=0.0, token=0.34) == "span"
    )  # 1 − 0.8² − 0.1² − 0.1²
    assert decide_probability(mixed["token"], span=0.0, token=0.34) == "token"
    assert (OBJECTIVES["mlm"].unit, OBJECTIVES["span"].unit, OBJECTIVES["span+sbo"].unit) == (
        "token",
        "span",
        "span",
    )


def test_10_random_tokens_follow_the_corpus_each_by_itself():
    corpus = np.array([7] * 9 + [8])
    rng = generator(5)
    ids = np.ones(4, dtype=int)
    selected = np.array([False, True, True, False])
    pairs = []
    while len(pairs) < DRAWS:
        seen = corrupt(ids, selected, rng, mask_id=0, random_ids=corpus)
        pairs += [seen[1:3].tolist()] if seen[1] > 1 else []
    assert (
        decide_probability(np.mean([a == 7 for a, _ in pairs]), frequency=0.9, kinds=0.5)
        == "frequency"
    )
    assert (
        decide_probability(np.mean([a != b for a, b in pairs]), own_draw=0.18, one_draw=0.0)
        == "own_draw"
    )


def test_10_pretraining_draws_from_the_corpus(wordpiece, monkeypatch):
    corpus = EncodedCorpus(np.array([40] * 60), np.array([30, 60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span"], 32, 2)
    seen = np.concatenate(
        [data.batch(np.arange(2), generator(s))["input_ids"].numpy().ravel() for s in range(60)]
    )
    assert set(seen.tolist()) == {
        40,
        *(getattr(wordpiece, f"{x}_id") for x in ("cls", "sep", "mask")),
    }


def test_11_each_segment_has_its_own_budget(wordpiece):
    ids = np.arange(100, 132)
    corpus = EncodedCorpus(ids, np.array([8, 16, 24, 32]), np.array([16, 32]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["mlm+nsp"].mask_only, 19, 1)
    eights = [row for row in range(len(data)) if all(np.diff(s[row]) == 8 for s in data.segments)]
    chosen = len(data.batch(np.array(eights[:1]), generator())["masked_positions"])
    assert decide(chosen, own=2 + 2, together=3) == "own"


def test_12_whole_words_are_drawn_as_words_and_pass_over_what_does_not_fit():
    readings = {"words": 1 / 4, "spans of one word, from tokens": 19 / 20}
    assert (
        decide_probability(share_first_hidden(WholeWordMasking(0.5), [3, 1, 1, 1]), **readings)
        == "words"
    )
    spans = SpanMasking(0.5, max_words=1, complete_words=False)
    assert (
        decide_probability(share_first_hidden(spans, [3, 1, 1, 1]), **readings)
        == "spans of one word, from tokens"
    )


def test_13_the_other_half_of_named_entity_masking_needs_a_longest_length_of_one():
    """Runs by the released rules in blocks of words of one token, with a small budget, so that few
    of them touch."""
    blocks = np.ones((4000, 512), dtype=bool)
    found = {}
    for longest in (1, 10):
        scheme = SpanMasking(0.02, max_words=longest, complete_words=False)
        masks = scheme.select_batch(blocks, np.full(4000, 512), generator(6))
        mean = masks.sum() / sum(len(spans_of(mask)) for mask in masks)
        readings = {
            "words": 1.02,
            "spans": 3.16,
            "all_of_ten_words": 10.0,
        }  # 0.08: four standard errors
        found[longest] = [name for name, reading in readings.items() if abs(mean - reading) < 0.08]
    assert found == {1: ["words"], 10: ["spans"]}
    entities = np.array(
        [(row, 50, 53, ENTITY) for row in range(4000)]
    )  # ours: an entity, or one word
    masks = LabeledMasking(0.01).select_blocks(
        Blocks(blocks, np.full(4000, 512), blocks * 1, entities), generator(6)
    )
    runs = Counter(int(end - start) + 1 for mask in masks for start, end in spans_of(mask))
    assert (runs[1] + runs[4]) / runs.total() > 0.97 and min(runs[1], runs[4]) > 3000


# --- the span boundary objective ----------------------------------------------------


def test_14_cls_and_sep_are_no_boundary_tokens(measured):
    selected = np.array([[1, 1, 0, 0, 1, 0, 0, 1]], dtype=bool)
    rows = boundary_targets(selected, np.arange(8)[None], [8])
    assert decide(pairs(rows), inner=[[4, 6]], all=[[0, 3], [4, 6], [7, 9]]) == "inner"
    edge = [a == 0 or e == 127 for m in measured["released"] for a, e in spans_of(m)]
    assert np.mean(edge) == pytest.approx(0.048, abs=0.015)


def test_15_p1_is_row_0():
    torch.manual_seed(0)
    head = SpanBoundaryObjective(8, torch.nn.Parameter(torch.randn(12, 8)))
    selected = np.arange(12)[None] // 4 == 1  # x5 to x8
    rows = boundary_targets(selected, np.arange(12)[None], [12])
    hidden = torch.randn(1, 14, 8)
    assert pairs(rows) == [[4, 9]] and rows.labels[2] == 6  # football, counted from 0
    moved = []
    with torch.no_grad():
        before = head(hidden, rows)[2].clone()
        for row in range(15):
            head.positions.weight[row] += 1
            moved += [row] if (head(hidden, rows)[2] - before).abs().max() > 1e-3 else []
            head.positions.weight[row] -= 1
    assert (
        decide(moved, from_the_left_from_0=[2], from_1=[3], from_the_right=[1])
        == "from_the_left_from_0"
    )


def test_16_a_long_span_has_fifteen_targets():
    selected = (np.arange(20) > 1) & (np.arange(20) < 19)
    rows = boundary_targets(selected[None], np.arange(20)[None], [20])
    assert decide(len(rows.labels), first=15, default_of_the_code=17, no_row=0) == "first"
    assert rows.labels.tolist() == list(range(2, 17))


def test_17_kept_tokens_are_targets_of_both_heads(wordpiece):
    ids = np.arange(10, 18)[None]
    selected = np.array([[0, 0, 0, 1, 1, 1, 0, 0]], dtype=bool)
    random = np.where(selected, 99, ids)
    for seen in (ids.copy(), random):
        batch = collate([MaskedBlocks(ids, seen, selected, np.array([8]))], wordpiece)
        readings = {"originals": [13, 14, 15], "what stands there": [99, 99, 99], "only [MASK]": []}
        assert decide(batch["labels"][batch["labels"] != -100].tolist(), **readings) == "originals"
        rows = boundary_targets(selected, ids, [8])
        assert decide(rows.labels.tolist(), **readings) == "originals"


def test_17_pretraining_hands_the_originals_to_both_heads(wordpiece):
    corpus = EncodedCorpus(np.array([40, 41] * 30), np.array([60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span+sbo"], 62, 1)
    found = []
    for seed in range(40):
        batch = data.batch(np.arange(1), generator(seed))
        masked = batch["labels"][0] != -100
        places = masked.nonzero()[:, 0]
        assert (batch["labels"][0, masked] == 40 + (places - 1) % 2).all()
        # left boundary token, [CLS] counted: the span's first position in the block
        here = batch["boundary_left"] + batch["boundary_offset"]
        assert (batch["boundary_labels"] == 40 + here % 2).all()
        found.append(bool((batch["input_ids"][0, masked] != wordpiece.mask_id).any()))
    assert any(found)  # the fixture did meet kept or random spans


def test_18_f_ends_in_layer_norm_and_its_linear_steps_have_biases():
    torch.manual_seed(0)
    head = SpanBoundaryObjective(8, torch.nn.Parameter(torch.randn(12, 8)))
    rows = boundary_targets(np.arange(12)[None] == 5, np.arange(12)[None], [12])
    found = []
    head.norm2.register_forward_hook(lambda *call: found.append(call[-1]))
    head(torch.randn(1, 14, 8), rows)
    (y,) = found
    ends_in = "GELU" if y.min() > -0.17001 else "LayerNorm"
    assert ends_in == "LayerNorm" and y.mean().abs() < 1e-5
    assert [layer.bias.shape for layer in (head.linear1, head.linear2)] == [(8,), (8,)]


def test_19_one_matrix_and_two_biases(model):
    table = model.encoder.embeddings.words.weight
    assert (
        model.masked_language_model.embedding_weight is table
        and model.boundary.embedding_weight is table
    )
    assert model.masked_language_model.bias is not model.boundary.bias
    count = len({id(p) for p in model.parameters() if p.shape[:1] == (2000,)})
    assert (
        decide(count, one_matrix_two_biases=3, one_of_each=2, three_matrices=5)
        == "one_matrix_two_biases"
    )


# --- loss and training --------------------------------------------------------------


@pytest.fixture
def uniform() -> tuple:
    """One row of 3 targets; a head that knows nothing of 4 kinds of tokens; 6 masked tokens."""
    rows = boundary_targets(
        np.array([[0, 1, 1, 1, 0]], dtype=bool), np.array([[0, 1, 2, 3, 0]]), [5]
    )
    return torch.zeros(3, 4), rows, 6


def test_20_both_losses_are_divided_by_the_masked_tokens(uniform):
    nats = math.log(4)
    readings = {
        "masked tokens": 3 * nats / 6,
        "targets + 1": 3 * nats / 4,
        "targets": nats,
        "spans + 1": 3 * nats / 2,
    }
    readings = {name: round(value, 3) for name, value in readings.items()}
    assert decide(round(boundary_loss(*uniform).item(), 3), **readings) == "masked tokens"


def test_20_pretraining_adds_both_parts_with_the_weight_one(model, wordpiece):
    corpus = EncodedCorpus(np.arange(100, 160), np.array([60]), np.array([60]))
    data = PretrainingData(corpus, wordpiece, OBJECTIVES["span+sbo"], 62, 1)
    # a batch with a masked token that has no row: otherwise the readings agree
    batch = next(
        b for seed in range(50) if 0 < _targets(b := data.batch(np.arange(1), generator(seed))) < 9
    )
    with torch.no_grad():
        losses = model.eval()(batch)
        hidden = model.encoder(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )
        rows = boundary_targets(*_selected_of(batch, 60))
        sbo = boundary_loss(model.boundary(hidden, rows), rows, len(batch["masked_positions"]))
        a_target = boundary_loss(model.boundary(hidden, rows), rows, len(rows.labels))
    assert 0 < len(rows.labels) < len(batch["masked_positions"]) == 9
    assert losses["sbo"].item() == pytest.approx(a_target.item(), abs=1e-5)  # what is shown
    assert losses["loss"].item() == pytest.approx(losses["mlm"].item() + sbo.item(), abs=1e-5)


def _targets(batch) -> int:
    return len(batch["boundary_labels"])


def _selected_of(batch, n):
    selected = np.zeros((1, n), dtype=bool)
    selected[0, (batch["labels"][0] != -100).nonzero()[:, 0].numpy() - 1] = True
    return selected, np.arange(100, 100 + n)[None], [n]


def test_21_losses_are_in_nats(uniform):
    loss = boundary_loss(torch.zeros(3, 4), uniform[1], 3).item()
    assert decide(round(loss, 3), nats=1.386, bits=2.0) == "nats"


def test_22_weight_decay_is_the_papers_at_base_and_large_and_on_matrices(model):
    readings = {
        "paper": PAPERS["spanbert_weight_decay"],
        "released": PAPERS["spanbert_code_weight_decay"],
    }
    here = {
        size: decide(preset(size, "span+sbo").recipe().weight_decay, **readings) for size in RUNS
    }
    assert here == {
        "tiny": "released",
        "mini": "released",
        "small": "released",
        "base": "paper",
        "large": "paper",
    }
    groups = train_module.adamw(model, TrainingConfig(1, 1.0, 0)).param_groups
    decayed = {id(p) for group in groups if group["weight_decay"] for p in group["params"]}
    assert (
        decide(id(model.boundary.norm2.weight) in decayed, every_parameter=True, matrices=False)
        == "matrices"
    )
    assert (
        id(model.boundary.linear2.weight) in decayed
        and id(model.boundary.linear2.bias) not in decayed
    )
    left = [round(math.exp(-1e-4 * 2_400_000 / 2 * decay), 6) for decay in readings.values()]
    assert left == [6e-6, 0.301194]


def test_23_epsilon_and_the_second_beta_are_the_papers_at_base_and_large():
    """Told by what AdamW does with a recipe: the first step for a gradient of 1e-7, as a share of
    the learning rate."""
    for size in RUNS:
        recipe = preset(size, "span+sbo").recipe()
        weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        weight.grad = torch.full_like(weight, 1e-7)
        torch.optim.AdamW(
            [weight], lr=1.0, betas=recipe.betas, eps=recipe.epsilon, weight_decay=0
        ).step()
        readings = {"spanbert": 0.91, "bert": 0.09}
        wanted = "spanbert" if size in ("base", "large") else "bert"
        assert decide(round(-weight.item(), 2), **readings) == wanted
        readings = {"spanbert": PAPERS["spanbert_betas"][1], "roberta": PAPERS["roberta_beta2"]}
        assert decide(recipe.betas[1], **readings) == (
            "spanbert" if wanted == "spanbert" else "roberta"
        )
    assert [PAPERS[f"{name}_epsilon"] for name in ("spanbert", "bert")] == [1e-8, 1e-6]


def test_24_a_batch_is_a_number_of_blocks_at_tiny_size_and_of_tokens_above(wordpiece):
    """What the training itself draws: 8 short blocks of 6 tokens and 8 long ones of 32, for batches
    of 2 × 32."""
    ends = np.cumsum([4, 30] * 8)
    corpus = EncodedCorpus(np.arange(100, 100 + ends[-1]), ends, ends)
    text = EncodedText(corpus, corpus, wordpiece)
    here = {}
    for size in RUNS:
        data = training_data(replace(preset(size, "span"), max_length=32, batch_size=2), text)
        batches = data.batches(generator())
        tokens = [batch["attention_mask"].sum(1) for batch in islice(batches, len(batches.order))]
        assert sum(map(len, tokens)) == 16 and max(int(each.sum()) for each in tokens) < 2 * 32 + 32
        blocks = sorted(map(len, tokens))
        here[size] = decide(
            blocks,
            blocks=[2] * 8,
            tokens=[1, 2, 2, 2, 9],
            tokens_with_padding=[1, 1, 2, 2, 2, 2, 6],
        )
    assert here == {
        "tiny": "blocks",
        "mini": "tokens",
        "small": "tokens",
        "base": "tokens",
        "large": "tokens",
    }
    assert 256 * 512 == math.prod(PAPERS["spanbert_code_batch"]) == 131072
    assert round(131072 / PAPERS["spanbert_mean_sequences"]) == 336


def test_25_packing_loses_no_text():
    documents = [[6, 12, 5], [4, 4, 12, 12], [3, 3]]
    ends = np.cumsum(sum(documents, []))
    packed = single_sequence_blocks(
        EncodedCorpus(np.arange(61), ends, np.array([23, 55, 61])), np.ones(61, dtype=bool), 10
    )
    covered = np.concatenate([np.arange(*row) for row in packed.ranges])
    # what waits before the two long sentences is lost, too; it would not be if a long sentence
    # closed the block
    assert decide(len(covered), all=61, released=6 + 5, closed_by_the_long_one=6 + 8 + 5) == "all"
    assert sorted(covered.tolist()) == list(range(61)) and {23, 55} <= set(
        packed.ranges[:, 1].tolist()
    )


def test_26_specials_and_segment_0_stay_and_the_pooler_goes(wordpiece, model):
    ids = np.arange(10, 18)[None]
    batch = collate([(ids, ids, np.zeros((1, 8), dtype=bool), np.array([8]))], wordpiece)
    assert decide(batch["input_ids"].shape[1], with_specials=10, without=8) == "with_specials"
    assert batch["input_ids"][0, [0, -1]].tolist() == [wordpiece.cls_id, wordpiece.sep_id]
    assert batch["token_type_ids"].unique().tolist() == [0]
    assert not any("pooler" in name for name in model_state(model))
    pairs = PretrainingModel(EncoderConfig.tiny(vocab_size=2000), Objective.named("mlm+nsp"))
    assert any("pooler" in name for name in model_state(pairs))


def test_27_the_defaults_are_the_recipe():
    readings = {"recipe": 3.797, "defaults of the code": 3.043}
    default = clipped_geometric(PAPERS["spanbert_code_span_p_default"]) @ np.arange(1, 11)
    assert round(float(default), 3) == readings["defaults of the code"]
    assert decide(round(float(clipped_geometric() @ np.arange(1, 11)), 3), **readings) == "recipe"
    assert (
        decide(SpanMasking().p, recipe=0.2, code=PAPERS["spanbert_code_span_p_default"]) == "recipe"
    )
    width = inspect.signature(boundary_targets).parameters["max_offset"].default
    assert decide(width, recipe=15, code=PAPERS["spanbert_code_max_targets_default"]) == "recipe"
    assert RUNS["tiny"].objective == "span+sbo"


# --- tables -------------------------------------------------------------------------


def test_28_the_ablations_have_half_the_steps():
    assert (
        PAPERS["spanbert_steps"]
        == 2 * PAPERS["spanbert_ablation_steps"]
        == preset("large", "span").steps
    )
    for key in ("spanbert_table7_1seq_sbo_coreference", "spanbert_table6_spans_coreference"):
        note = json.loads(data_path("papers.json").read_text(encoding="utf-8"))[key]["note"]
        assert "development set" in note and "1.2 M steps" in note
    test = PAPERS["spanbert_table3_spanbert_coreference"]
    development = PAPERS["spanbert_table7_1seq_sbo_coreference"]
    assert decide(test, table_3=79.6, table_7=development) == "table_3"


def test_29_the_base_model_saw_as_many_sequences():
    steps, times, rate = PAPERS["spanbert_code_base_recipe"]
    assert (steps, times, rate) == (300_000, 8, 5e-4)
    assert steps * times == PAPERS["spanbert_steps"]


def test_30_one_ceaf_score_does_not_follow_from_its_precision_and_recall():
    precision, recall, printed = PAPERS["spanbert_table3_our_bert_ceaf"]
    implied = round(2 * precision * recall / (precision + recall), 1)
    assert decide(printed, implied=implied, as_printed=73.9) == "as_printed" and implied == 73.4
    assert round(2 * precision * 72.9 / (precision + 72.9), 1) == printed
    assert round(np.mean(PAPERS["spanbert_table3_our_bert_f1s"]), 1) == 78.2
    assert PAPERS["spanbert_table3_our_bert_average"] == 78.3


@pytest.mark.parametrize(
    "place, name", list(enumerate(["google_bert", "our_bert", "our_bert_1seq", "spanbert"]))
)
def test_31_the_glue_average_includes_wnli(place, name):
    tasks = [np.mean(scores) for scores in PAPERS[f"spanbert_table5_{name}"]]
    readings = {
        "with": np.mean([*tasks, PAPERS["spanbert_table5_wnli"]]),
        "without": np.mean(tasks),
    }
    readings = {reading: round(float(value), 1) for reading, value in readings.items()}
    assert decide(PAPERS["spanbert_table5_averages"][place], **readings) == "with"


def test_32_the_question_comes_first(wordpiece):
    encoded = encode(wordpiece, "Who founded Bramley?", "Alice Mercer founded Bramley in 1605.")
    (window,) = windows.windows(encoded, wordpiece, 64, 32)
    question = encoded.question.tolist()
    passage = encoded.context.tolist()
    ids = window.ids.tolist()
    specials = ([wordpiece.cls_id], [wordpiece.sep_id])
    assert (
        decide(
            ids,
            question_first=sum((specials[0], question, specials[1], passage, specials[1]), []),
            passage_first=sum((specials[0], passage, specials[1], question, specials[1]), []),
        )
        == "question_first"
    )
    assert window.first == len(question) + 2 and PAPERS["spanbert_question_after_passage"]


# --- the page -----------------------------------------------------------------------


def test_every_row_has_a_section_and_a_test():
    found = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in found if cell["cell_type"] == "markdown")
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    headings = re.findall(r"^## (\d+)(?: and (\d+))?\. ", text, re.MULTILINE)
    sections = [int(number) for pair in headings for number in pair if number]
    tests = {int(name[5:7]) for name in dir(sys.modules[__name__]) if re.match(r"test_\d\d_", name)}
    assert rows == sections == list(range(1, 33)) == sorted(tests)


# --- what the page asserts fails for a wrong value ----------------------------------

PLACE = "workshop/paper_code_here"


@pytest.fixture(scope="module")
def page() -> dict:
    """What the cells below need of those before them."""
    names: dict = {}
    exec(
        cells(
            PLACE,
            "new_rng = np.random.default_rng",
            "def block_of",
            "paper, released = ",
            "table = model.encoder",
            "pairs = PretrainingData(",
            "def first_step(recipe",
        ),
        names,
    )
    return names


def floored(self, n: int) -> int:
    return math.floor(self.mask_ratio * n)


def decay_everything(model, config):
    return torch.optim.AdamW(model.parameters(), weight_decay=config.weight_decay)


def passage_first(question, passage, **specials):
    return frame(passage, question, **specials)


def pairs(rows):
    """Left and right boundary token of each span."""
    return [
        list(x) for x in dict.fromkeys(zip(rows.left.tolist(), rows.right.tolist(), strict=True))
    ]


EACH = "each = [segment.count(0)"
HALF = "thin, in_runs = "
ADAM = "large, tiny = recipes.values()"
BATCH = "batches = data.batches"
WRONG = {
    "11, a budget rounded down": (EACH, TokenMasking, "budget", floored),
    "11, one segment only": (EACH, PretrainingData, "masked_segment", None),
    "13, another law": (
        HALF,
        span_masking,
        "clipped_geometric",
        lambda p, most: clipped_geometric(0.4, most),
    ),
    "13, lengths of one word": (
        HALF,
        span_masking,
        "clipped_geometric",
        lambda p, most: clipped_geometric(1, most),
    ),
    "22, decay of the small sizes": (ADAM, RUNS, "tiny", replace(RUNS["tiny"], weight_decay=0.1)),
    "22, decay of every parameter": (ADAM, train_module, "adamw", decay_everything),
    "23, epsilon of the small sizes": (ADAM, RUNS, "tiny", replace(RUNS["tiny"], epsilon=1e-8)),
    "23, beta of the small sizes": (ADAM, RUNS, "tiny", replace(RUNS["tiny"], beta2=0.999)),
    "23, epsilon of the large size": (ADAM, presets.PAPERS, "span", BERT),
    "24, the small size by tokens": (BATCH, RUNS, "tiny", replace(RUNS["tiny"], by_length=True)),
    "24, the large size by blocks": (BATCH, RUNS, "large", replace(RUNS["large"], by_length=False)),
    "32, the passage first": ("encoded = encode(wordpiece", windows, "frame", passage_first),
}


@pytest.mark.parametrize("text", sorted({row[0] for row in WRONG.values()}))
def test_the_cells_pass_as_they_are(page, text):
    exec(cells(PLACE, text), dict(page))


@pytest.mark.parametrize("name", WRONG)
def test_a_cell_fails_for_a_wrong_value(page, monkeypatch, name):
    text, where, what, value = WRONG[name]
    if name == "11, one segment only":
        right = PretrainingData.masked_segment

        def value(self, ranges, rng):
            blocks = right(self, ranges, rng)
            return blocks._replace(masked=blocks.masked & (ranges is self.segments[0]))

    (monkeypatch.setitem if isinstance(where, dict) else monkeypatch.setattr)(where, what, value)
    with pytest.raises(AssertionError):
        exec(cells(PLACE, text), dict(page))
