"""Parts of LitBank: fixed, whole books, no sentence in two parts."""

import os
from itertools import combinations
from pathlib import Path

import pytest

from research.measurements import span_tasks_coreference as task


def shared_sentences(parts, words=6):
    """Sentences of at least so many words that stand in two parts."""
    found = {
        name: {tuple(s) for one in documents for s in one.sentences if len(s) >= words}
        for name, documents in parts.items()
    }
    return {sentence for one, other in combinations(found.values(), 2) for sentence in one & other}


@pytest.mark.real_data
def test_parts_of_the_real_books():
    parts = task.parts(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"]))
    books = {name: parts[name] for name in ("train", "validation", "test")}
    assert {name: len(some) for name, some in books.items()} == {
        "train": 57,
        "validation": 8,
        "test": 15,
    }
    names = [one.name for some in books.values() for one in some]
    assert len(set(names)) == 80
    assert not shared_sentences(books)
    train = {one.name.split("_")[0] for one in books["train"]}
    # Huckleberry Finn and Tom Sawyer, Sherlock Holmes twice
    assert {"76", "74", "1661", "2852"} <= train
    mentions = [
        span
        for some in books.values()
        for one in some
        for cluster in one.clusters
        for span in cluster
    ]
    assert len(mentions) == 23_122 and len(parts["gap"]) == 454
