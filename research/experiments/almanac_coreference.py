"""Coreference on the almanac: a pre-trained encoder and new weights, beside rules that join names
by their words. Chapter: `book/evidence/questions`.

A seed is an order of the batches and a set of new weights; the pre-trained encoder is the same one.
The first labeled documents train, the test documents score. tolerance: by how many points the
average of a run may differ elsewhere.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from research.experiments.tagging_names import starts
from research.grid import fingerprint, rounded
from research.measurements.span_tasks_coreference import figures, rules
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import coreference
from spanbert_tutorial.tasks.conll import Document
from spanbert_tutorial.tasks.fine_tuning import FineTuning

ARMS = ("pre-trained", "new weights")
SEEDS = 5
FINE_TUNING = True
FINE_TUNING = FineTuning(epochs=3, batch_size=2, peak_learning_rate=2e-3, max_length=128)
SETTINGS = {
    "checkpoint": "spanbert-tiny",
    "settings": FINE_TUNING,
    "documents": 250,
    "tolerance": 6.0,
}


def documents(split: str, most: int | None = None) -> list[Document]:
    """The labeled documents of a split, or the first of them."""
    return [
        coreference.plain(one["text"], one["id"], one["clusters"])
        for one in islice(almanac.coreference(split), most)
    ]


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """Documents to train on and to score."""
    train = documents("train", settings["documents"])
    test = documents("test")
    texts = [" ".join(one.words) for one in train + test]
    return {"fingerprint": fingerprint(texts), "counts": [len(train), len(test)]}, (train, test)


def one(
    start: str, seed: int, settings: Mapping, train: list[Document], test: list[Document]
) -> dict:
    """Figures of a model on the test documents, in percent."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    trained = replace(settings["settings"], seed=seed)
    resolver, history = coreference.fine_tune(starts(seed)[start], wordpiece, train, trained)
    return rounded({"steps": history.done, "scores": figures(test, resolver.predict(test))})


def beside(settings: Mapping, train: list[Document], test: list[Document]) -> dict:
    """The same figures of the rules."""
    return {"rules": rounded(rules(test))}


def place(path: tuple) -> tuple | None:
    """A rule is a condition."""
    return (f"{path[2]}, {path[1]}", path[3:]) if path[0] == "rules" else None
