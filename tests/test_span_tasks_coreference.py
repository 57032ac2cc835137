"""Parts of LitBank: fixed, whole books, no sentence in two parts."""

import os
from itertools import combinations
from pathlib import Path

import pytest

from research.measurements import span_tasks_coreference as task
from spanbert_tutorial.tasks import conll
from spanbert_tutorial.tasks.conll import Document

GAP_ROW = "g\tAnn saw Eve before she left.\tshe\t19\tAnn\t0\tTRUE\tEve\t8\tFALSE\turl\n"


def shared_sentences(parts, words=6):
    """Sentences of at least so many words that stand in two parts."""
    found = {
        name: {tuple(s) for one in documents for s in one.sentences if len(s) >= words}
        for name, documents in parts.items()
    }
    return {sentence for one, other in combinations(found.values(), 2) for sentence in one & other}


@pytest.fixture
def folder(tmp_path):
    """Twenty small books, and one row of GAP."""
    (tmp_path / "litbank").mkdir()
    (tmp_path / "gap").mkdir()
    books = [
        Document(
            f"{number}_book",
            [["Nora", "left", "."], [f"w{number}", "a", "b", "c", "d", "e"]],
            [[(0, 0)]],
        )
        for number in (*range(1, 20), 100)
    ]
    conll.write(tmp_path / "litbank" / "books.conll", reversed(books))
    header = "\t".join(task.gap.HEADER)
    (tmp_path / "gap" / "rows.tsv").write_text(f"{header}\n{GAP_ROW}", encoding="utf-8")
    return tmp_path


def test_parts_of_made_books(folder, monkeypatch):
    monkeypatch.setattr(task, "FILES", {"litbank": "litbank/books.conll", "gap": "gap/rows.tsv"})
    parts = task.parts(folder)
    numbers = {
        name: [int(one.name.split("_")[0]) for one in parts[name]]
        for name in ("train", "validation", "test")
    }
    assert numbers["test"] == [1, 6, 11, 16] and numbers["validation"] == [4, 14]
    assert sorted(sum(numbers.values(), [])) == [*range(1, 20), 100]  # by number, not by text
    assert not shared_sentences({name: parts[name] for name in numbers})
    assert len(parts["gap"]) == 1
    leak = {"train": parts["train"], "test": [*parts["test"], parts["train"][0]]}
    assert shared_sentences(leak)  # the search finds a book that stands in two parts
    found = task.controls(parts)
    assert found["each alone, mentions labeled"]["average"] == pytest.approx(
        200 / 3
    )  # MUC is 0 where all are alone
    assert found["gap, both"]["gap_f1"] == pytest.approx(200 / 3) and len(found) == 11


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
    assert {
        "76",
        "74",
        "1661",
        "2852",
    } <= train  # Huckleberry Finn and Tom Sawyer, Sherlock Holmes twice
    mentions = [
        span
        for some in books.values()
        for one in some
        for cluster in one.clusters
        for span in cluster
    ]
    assert len(mentions) == 23_122 and len(parts["gap"]) == 454
