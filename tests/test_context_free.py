"""Tables without context: by hand, as probabilities, and on the tokens that they are asked for."""

import numpy as np
import pytest
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.baselines import STRENGTHS, places, unigram_baselines
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.text.encoding import encode_corpus

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
WORDPIECE = WordPiece({token: i for i, token in enumerate(PIECES)})
V = len(WORDPIECE)


def data(tmp_path, sentences, objective="span+sbo", length=16):
    documents = [[sentence] for sentence in sentences]
    if objective == "mlm+nsp":  # needs next sentences
        documents = [sum(two, []) for two in zip(documents[::2], documents[1::2], strict=True)]
    corpus = encode_corpus(documents, WORDPIECE.encode_many, V, tmp_path / "text")
    return PretrainingData(corpus, WORDPIECE, Objective.named(objective), length, batch_size=4)


def test_both_tables_by_hand(tmp_path):
    """Two blocks, "a b" and "a c": a stands twice at position 1, b and c once each at position
    2."""
    tables = unigram_baselines(data(tmp_path, ["a b", "a c"]))
    a, b, c, d = WORDPIECE.encode("a b c d")
    frequency = {a: 3 / (4 + V), b: 2 / (4 + V), c: 2 / (4 + V), d: 1 / (4 + V)}
    for token, p in frequency.items():
        assert np.exp(tables.frequency[token]) == pytest.approx(p)
    first, second = (
        {p: [(n + s * frequency[p]) / (2 + s) for s in STRENGTHS] for p, n in counts.items()}
        for counts in ({a: 2, b: 0}, {a: 0, b: 1, c: 1})
    )
    given = [(1, a, first), (1, b, first), (2, a, second), (2, b, second), (2, c, second)]
    fits = [
        all(np.isclose(np.exp(tables.by_position[i, p]), table[p][s]) for i, p, table in given)
        for s in range(len(STRENGTHS))
    ]
    assert sum(fits) == 1


def test_tables_are_probabilities_and_the_strength_is_the_best(tmp_path):
    rng = np.random.default_rng(0)
    sentences = ["a " + " ".join(rng.choice(list("abcdefgh"), size=9)) + " h" for _ in range(60)]
    held_out = data(tmp_path, sentences)
    tables = unigram_baselines(held_out)
    assert np.exp(tables.frequency).sum() == pytest.approx(1)
    assert np.exp(tables.by_position).sum(1) == pytest.approx(np.ones(16))
    positions, ids = (np.concatenate(parts) for parts in zip(*places(held_out), strict=True))
    losses = tables.losses(positions, ids)
    # the first and the last word are always the same
    assert losses["by_position"] < losses["frequency"] < np.log(V)
    # no number, rather than a good one
    assert tables.losses(positions[:0], ids[:0])["frequency"] != 0


def test_shuffled_positions_cost_the_second_table_its_lead(tmp_path):
    """What the second table knows is the position and nothing else."""
    rng = np.random.default_rng(0)
    held_out = data(tmp_path, ["a b c d e f g h"] * 30)
    tables = unigram_baselines(held_out)
    positions, ids = (np.concatenate(parts) for parts in zip(*places(held_out), strict=True))
    assert tables.losses(positions, ids)["by_position"] < 0.5
    assert (
        tables.losses(rng.permutation(positions), ids)["by_position"]
        > tables.losses(positions, ids)["frequency"]
    )


@pytest.mark.parametrize("objective", ["mlm", "mlm+nsp", "span+sbo"])
def test_places_are_those_of_the_model_input(tmp_path, objective):
    """Position i holds the same token in the blocks that the model reads, for single segments and
    for pairs."""
    some = data(tmp_path, ["a b c d", "e f g h", "a a b b", "c c d d"] * 3, objective)
    wanted = np.zeros((16, V), dtype=int)
    for rows in torch.arange(len(some)).split(1):
        batch = some.batch(rows.numpy(), np.random.default_rng(0))
        ids = batch["input_ids"].clone()
        ids[batch["labels"] != -100] = batch["labels"][batch["labels"] != -100]
        for position, token in enumerate(ids[0].tolist()):
            if token >= 5:  # no special token
                wanted[position, token] += 1
    found = np.zeros_like(wanted)
    for positions, ids in places(some):
        np.add.at(found, (positions, ids), 1)
    assert (found == wanted).all()


def test_boundary_places_are_masked_places(tmp_path):
    rng = np.random.default_rng(1)
    some = data(tmp_path, [" ".join(rng.choice(list("abcdefgh"), size=14)) for _ in range(40)])
    batch = some.batch(np.arange(40), rng)
    masked = {
        (row, i): int(batch["labels"][row, i])
        for row, i in (batch["labels"] != -100).nonzero().tolist()
    }
    positions, ids = Boundary().predicted_tokens(batch)
    rows = batch["boundary_batch"].tolist()
    assert 0 < len(ids) < len(masked)
    assert all(
        masked[row, i] == v
        for row, i, v in zip(rows, positions.tolist(), ids.tolist(), strict=True)
    )
