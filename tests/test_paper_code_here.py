"""`book/workshop/paper_code_here`: for each row of its table a fixture that tells the readings
apart.

Each test names every reading with its exact result on a small input, checks that they differ, and
asserts the one that the project follows. Probabilities are exact by hand; 4,000 draws decide
between them.
"""

import json
import math

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.masking import WholeWordMasking, corrupt
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import train as train_module
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.pretraining.presets import RUNS, preset
from spanbert_tutorial.pretraining.train import TrainingConfig
from spanbert_tutorial.spanbert.boundary import boundary_loss, boundary_targets
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, spans_of
from spanbert_tutorial.text.encoding import EncodedCorpus

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
    # 1 − 0.8² − 0.1² − 0.1²
    assert decide_probability(mixed["default"], span=0.0, token=0.34) == "span"
    assert decide_probability(mixed["token"], span=0.0, token=0.34) == "token"
    assert (OBJECTIVES["mlm"].unit, OBJECTIVES["span"].unit, OBJECTIVES["span+sbo"].unit) == (
        "token",
        "span",
        "span",
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


# --- the span boundary objective ----------------------------------------------------


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
