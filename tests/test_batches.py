"""The order of batches: epochs, batches of equal length, going on in the middle."""

import itertools

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.batches import PretrainingData, grouped_by_length
from spanbert_tutorial.pretraining.objectives import OBJECTIVES, Objective
from spanbert_tutorial.text.encoding import EncodedCorpus


def data(name: str = "span+sbo", **changes) -> PretrainingData:
    """300 documents of one to eight sentences of 2 to 24 tokens."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, 300)
    ends = np.cumsum(rng.integers(2, 25, counts.sum()))
    corpus = EncodedCorpus(
        rng.integers(5, 2_000, ends[-1]).astype(np.uint16), ends, ends[np.cumsum(counts) - 1]
    )
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    return PretrainingData(
        corpus, wordpiece, Objective.named(name), max_length=64, batch_size=8, **changes
    )


def epoch(made: PretrainingData, seed: int = 0) -> list[dict]:
    batches = made.batches(np.random.default_rng(seed))
    return list(itertools.islice(batches, len(batches.order)))


def places(tensors: list[torch.Tensor]) -> float:
    """Share of the places that hold a token."""
    return sum(int(one.sum()) for one in tensors) / sum(one.numel() for one in tensors)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("by_length", [False, True])
def test_an_epoch_holds_every_block_once(name, by_length):
    made = data(name, by_length=by_length)
    order = np.concatenate(made.batches(np.random.default_rng(0)).order)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(made)))
    masks = [batch["attention_mask"] for batch in epoch(made)]
    assert sum(len(mask) for mask in masks) == len(made)
    tokens = np.concatenate([mask.sum(1).numpy() for mask in masks])
    np.testing.assert_array_equal(tokens, made.lengths()[order])


def test_batches_by_length_hold_as_many_tokens_and_hardly_any_padding():
    plain, grouped = (
        [batch["attention_mask"] for batch in epoch(data(by_length=way))] for way in (False, True)
    )
    assert places(plain) < 0.8 and places(grouped) > 0.95
    tokens = np.array([int(mask.sum()) for mask in grouped])
    assert (tokens <= 8 * 64 + 64).all() and np.median(tokens) > 8 * 64 - 64


def test_batches_by_length_come_in_random_order():
    lengths = np.random.default_rng(0).integers(4, 65, 2_000)
    batches = grouped_by_length(np.arange(2_000), lengths, 8, 64, np.random.default_rng(1))
    means = np.array([lengths[batch].mean() for batch in batches])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3
    assert max(len(batch) for batch in batches) > 3 * min(len(batch) for batch in batches[:-1])


@pytest.mark.parametrize("by_length", [False, True])
@pytest.mark.parametrize("stop", [0, 3, 60])
def test_batches_go_on_where_they_were(by_length, stop):
    made = data(by_length=by_length)
    one, other = (made.batches(np.random.default_rng(seed)) for seed in (1, 2))
    list(itertools.islice(one, stop))
    other.load_state_dict(one.state_dict())
    for first, second in itertools.islice(zip(one, other, strict=False), 50):
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_whole_words_are_chosen_whole():
    """Of the objective `mlm-wholeword`: a token is chosen with all others of its word; of `mlm`
    often it is not."""
    broken = {}
    for name in ("mlm", "mlm-wholeword"):
        made, broken[name] = data(name), 0
        for batch in epoch(made)[:20]:
            chosen = torch.zeros_like(batch["attention_mask"])
            chosen[batch["labels"] != -100] = True
            originals = batch["input_ids"].clone()
            originals[batch["labels"] != -100] = batch["labels"][batch["labels"] != -100]
            # a token that continues a word
            inside = torch.from_numpy(~made.wordpiece.starts[originals.numpy()])
            inside[:, :2] = False  # [CLS], and a block may begin inside a word
            broken[name] += int((inside[:, 1:] & (chosen[:, 1:] != chosen[:, :-1])).sum())
    assert broken["mlm-wholeword"] == 0 < broken["mlm"]
