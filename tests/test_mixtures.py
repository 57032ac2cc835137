"""Objectives that take turns: shares, order, going on after a stop, several processes, figures."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, save_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.objectives import MIXTURES, Mixture
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.text.encoding import EncodedCorpus

WORDPIECE = WordPiece.from_file(data_path("almanac", "vocab.txt"))
RUN = Run(objective="mix", max_length=32, batch_size=8, steps=8)


def some_corpus(seed: int) -> EncodedCorpus:
    """Forty documents of four sentences."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(6, 15, 160))
    ids = rng.integers(5, len(WORDPIECE), ends[-1]).astype(np.uint16)
    return EncodedCorpus(ids, ends, ends[3::4])


@pytest.fixture(scope="module")
def text() -> EncodedText:
    return EncodedText(some_corpus(0), some_corpus(1), WORDPIECE)


@pytest.fixture
def three(monkeypatch):
    """A mixture with unequal shares, with pairs and with whole words."""
    made = Mixture({"mlm+nsp": 1, "span+sbo": 2, "mlm-wholeword": 1})
    monkeypatch.setitem(MIXTURES, "three", made)
    return replace(RUN, objective="three")


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_parts_take_turns_by_their_shares(text, three):
    turns = runs.batches_of(three, text)
    taken = []
    for _ in islice(turns, 40):
        taken.append(turns.last)
    assert Counter(taken) == {"mlm+nsp": 10, "span+sbo": 20, "mlm-wholeword": 10}
    for start in range(0, 40, 4):  # and never far from them on the way
        assert Counter(taken[start : start + 4])["span+sbo"] == 2
    halves = runs.batches_of(RUN, text)
    assert [halves.last for _ in islice(halves, 4)] == ["mlm", "span+sbo"] * 2


def test_the_parts_read_every_block_once_an_epoch(text):
    """Each part goes through the text by itself: no half of it is left to the other."""
    turns = runs.batches_of(RUN, text)
    epoch = len(turns.parts["mlm"].order)
    seen = {"mlm": 0, "span+sbo": 0}
    for batch in islice(turns, 2 * epoch):
        seen[turns.last] += int(batch["attention_mask"].sum())
    assert set(seen.values()) == {int(turns.parts["mlm"].data.lengths().sum())}


@pytest.mark.parametrize("stop", [0, 1, 7, 30])
def test_going_on_gives_the_same_batches(text, three, stop):
    one, other = (runs.batches_of(replace(three, seed=seed), text) for seed in (1, 2))
    list(islice(one, stop))
    other.load_state_dict(one.state_dict())
    assert all(same(*pair) for pair in islice(zip(one, other, strict=False), 20))


def test_two_processes_see_the_batches_of_one(text, three, monkeypatch):
    from spanbert_tutorial.pretraining import batches as module

    whole = list(islice(runs.batches_of(three, text), 8))

    class Two:
        num_processes = 2

        def __init__(self, index):
            self.process_index = index

    halves = []
    for index in (0, 1):
        monkeypatch.setattr(module, "processes", lambda index=index: Two(index))
        halves.append(list(islice(runs.batches_of(three, text), 8)))
    for batch, first, second in zip(whole, *halves, strict=True):
        joined = torch.cat([first["input_ids"], second["input_ids"]])
        assert torch.equal(joined, torch.cat([batch["input_ids"][0::2], batch["input_ids"][1::2]]))


def test_every_weight_gets_a_gradient_from_each_part(text, three):
    """Several processes wait for the gradient of each weight, also in the turn of an objective that
    has no use for it."""
    model = runs.new_model(three, text).train()
    turns = runs.batches_of(three, text)
    for batch in islice(turns, 4):
        model.zero_grad()
        model(batch)["loss"].backward()
        assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
        unused = model.boundary.linear1.weight.grad
        assert bool(unused.any()) == (turns.last == "span+sbo")


def test_a_head_without_a_turn_does_not_change_the_loss(text, three):
    model = runs.new_model(three, text)
    batch = next(runs.batches_of(three, text))
    assert torch.equal(model.train()(batch)["loss"], model.eval()(batch)["loss"])


def test_held_out_figures_for_each_part(text, three):
    model = runs.new_model(three, text)
    found = held_out_metrics(model, three, text)
    assert found.keys() == {"token", "span", "mlm-wholeword", "pairs"}
    assert "sbo" in found["span"] and "nsp" in found["pairs"] and "nsp" not in found["token"]
    assert held_out_metrics(runs.new_model(RUN, text), RUN, text).keys() == {"token", "span"}


def test_metrics_of_a_part_are_means_over_its_own_steps(text, tmp_path):
    _, history = runs.pretrain(RUN, text, snapshots=Snapshots(tmp_path / "snapshots", {}))
    known = [value for value in history.losses["sbo"] if value == value]
    assert len(history.losses["sbo"]) == RUN.steps and len(known) == RUN.steps / 2
    assert history.mean("sbo", 2) == known[-1]
    line = (tmp_path / "metrics.jsonl").read_text().splitlines()[-1]
    assert '"sbo"' in line and "NaN" not in line


def test_a_checkpoint_of_a_mixture_has_all_heads(text, tmp_path):
    model = runs.new_model(RUN, text).eval()
    save_checkpoint(tmp_path / "model", model, WORDPIECE, "mix", {})
    loaded, _ = load_checkpoint(tmp_path / "model")
    assert {name for name, _ in loaded.named_children()} == {
        "encoder",
        "masked_language_model",
        "boundary",
    }
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name])


@pytest.mark.parametrize("weights", [{"mlm": 1}, {"mlm": float("nan"), "span": 1}])
def test_a_wrong_mixture_is_refused(weights):
    with pytest.raises(InputError, match="two objectives or more, weights above 0"):
        Mixture(weights)
