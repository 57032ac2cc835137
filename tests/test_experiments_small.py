"""The experiments behind the chapters on masking and on the boundary objective, on a toy size."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from research import grid
from research.experiments import boundary_probe, masking_mini
from research.experiments.boundary_probe import go_on
from research.experiments.masking_mini import with_shares
from research.measurements import two_gaps
from research.measurements.names import Block, Name, named_blocks, with_specials
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.text.encoding import encode_corpus
from spanbert_tutorial.text.sentences import split_sentences

RUN = Run(objective="mlm", steps=3, batch_size=4)


@pytest.fixture(scope="module")
def wordpiece():
    return WordPiece.from_file(data_path("almanac", "vocab.txt"))


@pytest.fixture(scope="module")
def some():
    return [document for document, _ in zip(almanac.read("validation"), range(30), strict=False)]


@pytest.fixture(scope="module")
def text(wordpiece, some, tmp_path_factory):
    sentences = [split_sentences(document["text"]) for document in some]
    folder = tmp_path_factory.mktemp("text")
    parts = [
        encode_corpus(sentences, wordpiece.encode_many, len(wordpiece), folder / name)
        for name in "ab"
    ]
    return EncodedText(*parts, wordpiece)


# --- names in blocks ----------------------------------------------------------------


def test_the_tokens_of_a_name_are_those_of_its_letters(wordpiece, some):
    wanted = [d["text"][a:b] for d in some for a, b, *_ in d["entities"]]
    found = [
        ids[first : last + 1]
        for ids, names in named_blocks(some, wordpiece)
        for first, last, *_ in names
    ]
    assert [wordpiece.encode(name).tolist() for name in wanted] == [
        token_ids.tolist() for token_ids in found
    ]


def test_blocks_keep_every_token_in_order_and_fit(wordpiece, some):
    blocks = list(named_blocks(some, wordpiece))
    assert max(len(block.ids) for block in blocks) <= 62
    every = np.concatenate([wordpiece.encode(document["text"]) for document in some])
    assert (np.concatenate([block.ids for block in blocks]) == every).all()


def test_specials_stand_around_each_row(wordpiece):
    ids, real = with_specials([np.array([7, 8]), np.array([9])], wordpiece)
    cls = wordpiece.cls_id
    sep = wordpiece.sep_id
    pad = wordpiece.pad_id
    assert ids.tolist() == [[cls, 7, 8, sep], [cls, 9, sep, pad]]
    assert real.tolist() == [[True] * 4, [True] * 3 + [False]]


# --- two gaps -----------------------------------------------------------------------


class Knows(torch.nn.Module):
    """A model of six tokens that knows the names (4, 5), seldom, and (2, 3). Asked at once, the
    left gap prefers 4 by a little and the right gap prefers 3; a filled gap decides the other
    one."""

    def encoder(self, ids, *, token_type_ids=None, attention_mask=None):
        return torch.nn.functional.one_hot(ids, 10).float()

    def masked_language_model(self, states):
        left, right = states.argmax(-1).T
        scores = torch.zeros(len(states), 2, 10)
        scores[:, 0, 4], scores[:, 0, 2] = 2.0, 1.9
        scores[:, 1, 3] = 5.0
        scores[right == 3, 0, 2] = 9.0
        scores[right == 5, 0, 4] = 9.0
        scores[left == 4, 1, 5] = 9.0
        return scores


@pytest.fixture
def gaps(wordpiece):
    tools = SimpleNamespace(mask_id=9, cls_id=0, sep_id=1, pad_id=8)
    blocks = [
        Block(np.array([6, 2, 3, 7]), [Name(1, 2, "TOWN")]),
        Block(
            np.array([4, 5, 4, 7]), [Name(0, 1, "TOWN")]
        ),  # one of its tokens stands elsewhere: left out
        Block(np.array([4, 5, 7]), [Name(0, 1, "TOWN"), Name(2, 2, "RIVER")]),
    ]
    return two_gaps.two_gaps(blocks, tools)


def test_both_tokens_of_a_name_that_stands_once_are_hidden(gaps):
    assert gaps.ids.tolist() == [[0, 6, 9, 9, 7, 1], [0, 9, 9, 7, 1, 8]]
    assert gaps.first.tolist() == [2, 1] and gaps.names.tolist() == [[2, 3], [4, 5]]


def test_apart_gives_a_pair_that_does_not_exist_and_one_at_a_time_repairs_it(gaps):
    exists = torch.zeros(10, 10, dtype=torch.bool)
    exists[2, 3] = exists[4, 5] = True
    model = Knows()
    assert two_gaps.apart(model, gaps).tolist() == [[4, 3]] * 2
    assert (
        two_gaps.one_at_a_time(model, gaps).tolist() == [[2, 3]] * 2
    )  # the right gap is the surer one
    assert two_gaps.shares(two_gaps.apart(model, gaps), gaps, exists) == {"exists": 0, "right": 0}
    assert two_gaps.shares(two_gaps.one_at_a_time(model, gaps), gaps, exists) == {
        "exists": 1,
        "right": 0.5,
    }


def test_the_mass_on_names_is_the_sum_over_all_pairs(gaps):
    exists = torch.rand(10, 10, generator=torch.Generator().manual_seed(0)) < 0.3
    left, right = two_gaps.gap_probabilities(Knows(), gaps)[0]
    wanted = sum(left[a] * right[b] for a in range(10) for b in range(10) if exists[a, b])
    assert two_gaps.mass_on_names(Knows(), gaps, exists) == pytest.approx(wanted.item(), abs=1e-6)


def test_what_is_reached_without_looking(text):
    """The share of the commonest chosen token, and of those at which the commonest token of the
    position stands."""
    chosen = [
        (ids[row, place], place)
        for ids, selected, _ in masking_mini.chosen_tokens(text)
        for row, place in zip(*selected.nonzero(), strict=True)
    ]
    ids, places = np.array(chosen).T
    found = masking_mini.without_context(text)
    assert found["one token"] == np.unique(ids, return_counts=True)[1].max() / len(ids)
    data = PretrainingData(text.train, text.wordpiece, Objective.named("mlm"), RUN.max_length, 8)
    tables = unigram_baselines(data).by_position
    assert found["by position"] == np.mean(
        [tables[place + 1].argmax() == token for token, place in chosen]
    )
    assert 0.03 < found["one token"] < 0.2 and 0.03 < found["by position"] < 0.5


def test_known_pairs_are_the_names_of_two_tokens(wordpiece):
    document = {
        "text": "Olga Hobart of Foxley",
        "entities": [[0, 11, "PERSON", "x"], [15, 21, "TOWN", "y"]],
    }
    exists = two_gaps.known_pairs([document], wordpiece)
    assert exists.nonzero().tolist() == [wordpiece.encode("Olga Hobart").tolist()]


# --- other shares, going on ---------------------------------------------------------


def test_the_start_is_the_run_of_the_package(text):
    ours = with_shares(RUN, text, (0.8, 0.1))[0]
    package = runs.pretrain(RUN, text)[0]
    assert all(
        torch.equal(a, b) for a, b in zip(ours.parameters(), package.parameters(), strict=True)
    )


def test_mask_only_hides_every_chosen_token(text):
    data = PretrainingData(
        text.train, text.wordpiece, replace(Objective.named("mlm"), shares=(1.0, 0.0)), 64, 4
    )
    batch = next(data.epoch(np.random.default_rng(0)))
    assert (batch["input_ids"][batch["labels"] != -100] == text.wordpiece.mask_id).all()


def test_both_arms_go_on_from_the_same_weights_with_the_same_masks(text):
    start, _ = with_shares(RUN, text, (0.8, 0.1))
    before = [weight.clone() for weight in start.parameters()]
    losses = {}
    for arm in boundary_probe.GOING_ON:
        run = Run(objective=arm, steps=1, batch_size=4)
        losses[arm] = go_on(start, run, text)[1].losses["mlm"][0]
    assert losses["span"] == pytest.approx(losses["span+sbo"], abs=1e-4)
    assert all(torch.equal(a, b) for a, b in zip(before, start.parameters(), strict=True))


# --- what is measured ---------------------------------------------------------------


def model_of(text):
    torch.manual_seed(0)
    return PretrainingModel(
        EncoderConfig.tiny(vocab_size=len(text.wordpiece)), Objective.named("mlm")
    ).eval()


def test_the_three_inputs_ask_for_the_same_tokens(text, monkeypatch):
    asked = []
    original = masking_mini.assemble

    def spy(segments, wordpiece):
        batch = original(segments, wordpiece)
        asked.append(
            (batch["labels"][batch["labels"] != -100], batch["input_ids"][batch["labels"] != -100])
        )
        return batch

    monkeypatch.setattr(masking_mini, "assemble", spy)
    measured = masking_mini.by_input(model_of(text), text)
    third = len(asked) // 3
    parts = [
        [torch.cat(x) for x in zip(*asked[i * third : (i + 1) * third], strict=True)]
        for i in range(3)
    ]
    (answers, mask), (answers_same, same), (answers_random, random) = parts
    assert torch.equal(answers, answers_same) and torch.equal(answers, answers_random)
    assert (mask == text.wordpiece.mask_id).all() and torch.equal(same, answers)
    assert (random != answers).float().mean() > 0.9 and not (random == text.wordpiece.mask_id).any()
    assert measured["mask"]["loss"] == pytest.approx(np.log(len(text.wordpiece)), abs=1)


def test_a_probe_finds_what_is_there_and_nothing_in_shuffled_labels():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (900,), generator=generator)
    signal = torch.nn.functional.one_hot(labels, 3) + 0.1 * torch.randn(900, 3, generator=generator)
    noise = torch.randn(900, 3, generator=generator)
    assert boundary_probe.probe(signal[:600], labels[:600], signal[600:], labels[600:]) > 0.98
    assert boundary_probe.probe(noise[:600], labels[:600], noise[600:], labels[600:]) < 0.5


def test_the_probe_reads_the_two_neighbors_and_never_the_edge(wordpiece, some):
    blocks = list(named_blocks(some, wordpiece))
    kinds = sorted({label for d in some for *_, label, _ in d["entities"]})
    names = boundary_probe.hidden_names(blocks, wordpiece, kinds, seed=0)
    first, last = names.spans.T
    row = torch.arange(len(first))
    assert (names.ids[row, first] == wordpiece.mask_id).all() and (
        names.ids[row, last] == wordpiece.mask_id
    ).all()
    for place in (first - 1, last + 1):  # a neighbor is a visible token of the text
        neighbor = names.ids[row, place]
        assert not torch.isin(
            neighbor, torch.tensor([wordpiece.mask_id, wordpiece.cls_id, wordpiece.sep_id])
        ).any()
    assert torch.equal((last - first + 1).clamp(max=4) - 1, names.labels["length"])

    def encoder(ids, token_type_ids=None, attention_mask=None):
        return ids[..., None].float()

    outside = boundary_probe.states(encoder, names)["boundary"]
    assert torch.equal(
        outside.long(), torch.stack([names.ids[row, first - 1], names.ids[row, last + 1]], 1)
    )


# --- kept results, and one row of each run again ------------------------------------


def test_an_untrained_row_comes_out_again(wordpiece):
    """The row of the probe that needs no training, with seed 1."""
    kept = json.loads(data_path("results", "boundary_probe.json").read_text(encoding="utf-8"))
    fit, test = boundary_probe.examples(wordpiece)
    untrained = runs.new_model(
        replace(boundary_probe.START, seed=1), EncodedText(None, None, wordpiece)
    ).encoder
    model = SimpleNamespace(encoder=untrained)
    found = boundary_probe.one("untrained", 1, {}, lambda *_: (model, History()), fit, test)
    (row,) = [row for row in kept["rows"] if (row["arm"], row["seed"]) == ("untrained", 1)]
    for place, wanted in row["probe"].items():
        assert found["probe"][place] == pytest.approx(wanted, abs=0.02)


def test_all_arms_of_a_seed_share_one_start(text, wordpiece, tmp_path, monkeypatch):
    """Nothing is trained twice, and with shuffled labels the probe reads the model of the boundary
    objective."""
    trained = []
    original = runs.pretrain
    names = boundary_probe.examples(wordpiece)
    monkeypatch.setattr(
        runs, "pretrain", lambda run, text: trained.append(run.seed) or original(run, text)
    )
    monkeypatch.setattr(boundary_probe, "open_text", lambda *_: text)
    monkeypatch.setattr(boundary_probe, "examples", lambda wordpiece: names)
    settings = boundary_probe.SETTINGS | {"start": RUN, "go_on": RUN}
    grid.run(boundary_probe, tmp_path / "probe.json", seeds=2, settings=settings)
    kept = json.loads((tmp_path / "probe.json").read_text(encoding="utf-8"))
    assert trained == [0, 1] and [row["arm"] for row in kept["rows"]] == 2 * list(
        boundary_probe.ARMS
    )
    assert [len(row["curve"]) for row in kept["rows"][:5]] == [0, 1, 1, 1, 0] and kept[
        "tested_on"
    ] == 1_214


def test_each_share_is_trained_and_measured(text, tmp_path, monkeypatch):
    monkeypatch.setattr(masking_mini, "open_text", lambda *_: text)
    settings = masking_mini.SETTINGS | {"start": RUN}
    grid.run(masking_mini, tmp_path / "shares.json", seeds=1, settings=settings)
    kept = json.loads((tmp_path / "shares.json").read_text(encoding="utf-8"))
    assert [row["variant"] for row in kept["rows"]] == list(masking_mini.ARMS) and kept[
        "hidden_names"
    ] == 1_000
    assert kept["short"]["run"]["steps"] == 3 and set(kept["rows"][0]["shown"]) == set(
        masking_mini.SHOWN
    )


@pytest.mark.parametrize("experiment", [masking_mini, boundary_probe])
def test_kept_results_have_five_seeds(experiment):
    kept = json.loads(
        data_path("results", f"{grid.name_of(experiment)}.json").read_text(encoding="utf-8")
    )
    assert {row["seed"] for row in kept["rows"]} == set(range(5)) == set(range(experiment.SEEDS))
