"""The almanac's pairs of sentences: labels by hand, exact by construction, and no way round reading
both."""

from collections import Counter

import pytest

from research.almanac import pairs
from research.almanac.pairs import Statement
from research.measurements.sentence_baselines import controls
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.classification import score
from spanbert_tutorial.tasks.sentence_files import read

PARTS = "train", "validation", "test"


def statement(**facts: str) -> Statement:
    return Statement("text", frozenset(facts.items()), "pattern")


@pytest.mark.parametrize(
    ("one", "other", "wanted", "share"),
    [
        ({"founder": "Ann"}, {"founder": "Ann"}, "same", 1),
        ({"founder": "Ann"}, {"founder": "Eva"}, "contradiction", 0),
        (
            {"founder": "Ann", "founded": "1650"},
            {"founder": "Eva", "founded": "1650"},
            "contradiction",
            0.333,
        ),
        ({"friend": "Ann"}, {"friend": "Eva"}, None, 0),  # one may have two friends
        ({"friend": "Ann"}, {"founder": "Ann"}, "neither", 0),
        ({"founder": "Ann"}, {"founder": "Ann", "founded": "1650"}, None, 0.5),
    ],
)
def test_labels_by_hand(one, other, wanted, share):
    one = statement(**one)
    other = statement(**other)
    assert pairs.label(one, other) == pairs.label(other, one) == wanted
    assert pairs.shared(one, other) == pairs.shared(other, one) == share


@pytest.fixture(scope="module")
def made() -> dict:
    return pairs.generate()


def test_the_stored_pairs_are_those_that_are_written_again(made):
    for task in ("pairs", "shared"):
        for part in PARTS:
            stored = read(data_path("almanac", f"{task}-{part}.tsv.xz"), subtask=f"almanac-{task}")
            assert stored == [((one, other), label) for one, other, label in made[task][part]]


def test_a_second_sentence_alone_tells_no_label(made):
    for part in PARTS:
        seen = Counter((second, label) for _, second, label in made["pairs"][part])
        often = Counter(second for _, second, _ in made["pairs"][part])
        assert all(seen[second, label] * 3 == often[second] for second, label in seen)
    train, test = (
        read(data_path("almanac", f"pairs-{part}.tsv.xz"), subtask="almanac-pairs")
        for part in ("train", "test")
    )
    said = controls(train, test)["second only"]
    assert score("almanac-pairs", [label for _, label in test], said)["accuracy"] == pytest.approx(
        100 / 3
    )
