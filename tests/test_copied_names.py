"""Names that stand elsewhere in the same block: what is hidden, what the rules say, and the kept
figures."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from research.experiments import copied_names
from research.experiments.copied_names import (
    HIDDEN,
    Name,
    copied,
    drawn,
    fill,
    hide,
    right,
)
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, read_vocabulary
from spanbert_tutorial.text.corpora import documents

KEPT, FIRST_PAIR = (
    json.loads(data_path("results", name).read_text(encoding="utf-8"))
    for name in ("copied_names.json", "first_pair_copying.json")
)
WORDPIECE = read_vocabulary(data_path("checkpoints", "bert-mini"))
REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))
# Two sentences of more than 150 words: one name stands twice, one once, one begins the sentence.
FILLER = " ".join(["and the river was long"] * 30)
TEXT = [f"Sorel saw that Wexford met Kalmar {FILLER} .", f"Later Wexford won {FILLER} ."]


def test_one_name_of_each_kind_is_drawn_and_none_that_begins_a_sentence():
    names = drawn([TEXT], WORDPIECE)
    words = [WORDPIECE.decode(name.words[name.place]) for name in names]
    assert [name.again for name in names] == [False] * 2  # each sentence is a block of its own
    assert words[0] in ("Wexford", "Kalmar")
    both = [" ".join(TEXT[0].split()[:40]), TEXT[1]]
    once, more = sorted(drawn([both], WORDPIECE), key=lambda name: name.again)
    assert WORDPIECE.decode(more.words[more.place]) == "Wexford" and more.again
    assert WORDPIECE.decode(once.words[once.place]) == "Kalmar"
    assert [WORDPIECE.decode(more.words[place]) for place in more.names] == [
        "Wexford",
        "Kalmar",
        "Wexford",
    ]


WHOLE, PART = HIDDEN
NAME = Name(
    [[10], [21, 22, 23], [11], [31, 32, 33], [31, 32, 33], [21, 22, 23]], 5, True, [1, 3, 4, 5], 0
)


def test_all_tokens_are_hidden_or_the_last_one():
    whole, places = hide(NAME, WHOLE, WORDPIECE)
    assert places == [12, 13, 14] and [whole[place] for place in places] == [WORDPIECE.mask_id] * 3
    part, last = hide(NAME, PART, WORDPIECE)
    assert last == [14] and part[12:15] == [21, 22, WORDPIECE.mask_id]
    assert whole[:12] == part[:12] == [WORDPIECE.cls_id, 10, 21, 22, 23, 11, 31, 32, 33, 31, 32, 33]


def test_the_rules_copy_and_never_look_at_the_hidden_tokens():
    assert copied(NAME, PART) == [23]
    assert copied(NAME, WHOLE) == [31, 32, 33]  # the commoner other name
    alone = NAME._replace(words=[[10], [21, 22]], place=1, names=[1])
    assert copied(alone, WHOLE) == copied(alone, PART) == []
    assert right([NAME, alone], PART, None, WORDPIECE).tolist() == [100, 0]


def test_a_model_is_right_when_it_gives_every_hidden_token():
    says = torch.zeros(1, 17, dtype=torch.long)
    says[0, 12:15] = torch.tensor([21, 22, 23])
    model = SimpleNamespace(
        encoder=lambda ids: says, masked_language_model=torch.eye(40).__getitem__
    )
    assert fill(model, [0] * 17, [12, 13, 14]) == [21, 22, 23]
    assert right([NAME], WHOLE, model, WORDPIECE).tolist() == [100]
    says[0, 13] = 9
    assert right([NAME], WHOLE, model, WORDPIECE).tolist() == [0]
    assert right([NAME], PART, model, WORDPIECE).tolist() == [100]


@pytest.mark.parametrize("saved", [KEPT, FIRST_PAIR])
def test_the_saved_differences_belong_to_the_saved_shares(saved):
    for what, row in saved["right"].items():
        difference = saved["differences"][what]
        assert row["spanbert-mini"] - row["bert-mini"] == pytest.approx(
            difference["mean"], abs=2e-4
        )
        low, high = difference["interval"]
        assert low <= difference["mean"] <= high


def test_both_pairs_were_asked_for_the_same_names():
    for key in ("command", "documents", "names"):
        assert KEPT[key] == FIRST_PAIR[key]
    rules = [
        {what: row["copying by rule"] for what, row in saved["right"].items()}
        for saved in (KEPT, FIRST_PAIR)
    ]
    assert rules[0] == rules[1]


@pytest.mark.real_data
def test_the_kept_names_are_drawn_again_and_the_rules_say_the_same():
    names = drawn(documents(REAL / "wikipedia" / "valid.jsonl.xz"), WORDPIECE)
    assert len({name.document for name in names}) == KEPT["documents"]
    for told, again in copied_names.STANDS.items():
        some = [name for name in names if name.again == again]
        assert len(some) == KEPT["names"][told]
        for how in HIDDEN:
            found = right(some, how, None, WORDPIECE).mean()
            assert KEPT["right"][f"{how}, {told}"]["copying by rule"] == pytest.approx(
                found, abs=1e-3
            )


@pytest.mark.real_data
@pytest.mark.parametrize("twin", ["bert-mini", "spanbert-mini"])
def test_a_twin_gives_back_some_of_the_names_as_often_as_was_kept(twin):
    names = [
        name
        for name in drawn(documents(REAL / "wikipedia" / "valid.jsonl.xz"), WORDPIECE)
        if name.again
    ][::9]
    model = load_checkpoint(data_path("checkpoints", twin))[0].eval()
    for how, close in ((WHOLE, 5), (PART, 12)):  # points; 149 names of 1,335
        found = right(names, how, model, WORDPIECE).mean()
        assert KEPT["right"][f"{how}, it stands in the block again"][twin] == pytest.approx(
            found, abs=close
        )
