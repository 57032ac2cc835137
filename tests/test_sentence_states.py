"""What one vector says about a sentence: the sentences, the vectors, and what is kept."""

import json

import numpy as np
import pytest
import torch

from research.experiments import sentence_states as states
from spanbert_tutorial import almanac
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.text.sentences import split_sentences


@pytest.fixture(scope="module")
def rows() -> tuple[states.Sentence, ...]:
    return states.sentences()


def test_no_sentence_stands_in_a_training_document_and_each_has_another_order(rows):
    known = {
        text for document in almanac.read("train") for text in split_sentences(document["text"])
    }
    assert len({row.text for row in rows}) == len(rows) > 2_500 and not known & {
        row.text for row in rows
    }
    for row in rows:
        one = row.text.split()
        other = row.exchanged.split()
        changed = [
            place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]
        ]
        assert len(changed) == 2 and changed[1] == changed[0] + 1 and sorted(one) == sorted(other)
        assert changed[0] > 0 and changed[1] < len(one) - 1
        assert row.name in row.text
    assert len({row.kind for row in rows}) == states.KINDS


def test_no_name_that_comes_first_is_in_both_parts(rows):
    splits = [states.parts(rows, seed) for seed in (0, 0, 1)]
    assert (splits[0][1] == splits[1][1]).all() and set(splits[0][1]) != set(splits[2][1])
    for train, test in splits:
        assert not {rows[i].name for i in train} & {rows[i].name for i in test}
        assert len(train) + len(test) == len(rows) and 0.2 < len(test) / len(rows) < 0.5


def test_the_vectors_are_those_of_each_sentence_alone(rows):
    encoder, wordpiece = states.encoder("spanbert-tiny", "spanbert-tiny")
    texts = [row.text for row in rows[:70]]
    many = states.read(encoder, wordpiece, texts, batch_size=32)
    for place in (0, 33, 69):
        ids = torch.tensor([[wordpiece.cls_id, *wordpiece.encode(texts[place]), wordpiece.sep_id]])
        with torch.no_grad():
            alone = encoder(ids, attention_mask=None)[0]
        assert torch.allclose(many["C"][place], alone[0], atol=1e-4)
        assert torch.allclose(many["mean"][place], alone[1:-1].mean(0), atol=1e-4)
        assert torch.allclose(
            many["bag"][place], encoder.embeddings.words.weight[ids[0, 1:-1]].mean(0), atol=1e-5
        )


def test_the_bag_knows_no_order(rows):
    encoder, wordpiece = states.encoder("spanbert-tiny", "spanbert-tiny")
    made = states.vectors(encoder, wordpiece, rows[:64])
    assert torch.allclose(made.own["bag"], made.exchanged["bag"], atol=1e-5)
    assert not torch.allclose(made.own["mean"], made.exchanged["mean"], atol=1e-3)


def test_new_weights_without_positions_know_no_order_either(rows):
    encoder, wordpiece = states.encoder("new weights, no positions", "spanbert-tiny")
    made = states.vectors(encoder, wordpiece, rows[:64])
    assert torch.allclose(made.own["C"], made.exchanged["C"], atol=1e-4)


def test_one_seed_in_small(rows, monkeypatch):
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    monkeypatch.setattr(states, "sentences", lambda: rows[::9])
    monkeypatch.setattr(
        states, "TUNED", (("new weights", "kind", 0.5), ("spanbert-tiny", "kind at random", 0.5))
    )
    found = states.tiny(0)
    assert set(found["classifier"]) == {
        "new weights, kind, 0.5 passes",
        "spanbert-tiny, kind at random, 0.5 passes",
    }
    assert set(found["tiny"]) == {*states.TINY, *found["classifier"]}
    assert set(found["moved"]) == set(found["classifier"]) and min(found["moved"].values()) > 0
    assert 1 / 3 < found["most frequent"]["length"] < found["most frequent"]["kind"] < 1
    for answers in found["tiny"].values():
        assert answers["order"]["bag"] == pytest.approx(0.5, abs=0.01)
        assert all(
            0 <= answers[question][name] <= 1
            for question in states.QUESTIONS
            for name in states.READ
        )


def test_labels_dealt_out_anew_are_the_same_labels():
    label = torch.arange(50) % 5
    dealt = states.at_random(label, 0)
    assert sorted(dealt.tolist()) == sorted(label.tolist()) and not torch.equal(dealt, label)


def test_how_far_vectors_moved_by_hand():
    before = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])  # at distance 1 from their mean
    assert states.moved(before, before + torch.tensor([5.0, 7.0])) == 0  # one step for all
    assert states.moved(before, 3 * before) == pytest.approx(2)
    assert states.moved(before, -before) == pytest.approx(2)
    turned = torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    assert states.moved(10 * before, 10 * turned) == pytest.approx(2**0.5)  # in units of the spread


def test_the_kept_results_have_all_seeds():
    kept = json.loads(data_path("results", "sentence_states.json").read_text(encoding="utf-8"))
    assert [row["seed"] for row in kept["rows"]] == list(range(states.SEEDS))
    assert kept["sentences"] == len(states.sentences())
    tuned = {f"{name}, {labels}, {passes} passes" for name, labels, passes in states.TUNED}
    assert all(set(row["moved"]) == set(row["classifier"]) == tuned for row in kept["rows"])
    found = [
        answers
        for row in kept["rows"]
        for size in ("tiny", "mini")
        for answers in row[size].values()
    ]
    assert np.allclose([answers["order"]["bag"] for answers in found], 0.5, atol=0.002)
