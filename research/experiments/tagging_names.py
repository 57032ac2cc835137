"""Entity tags for names that no label has shown: a pre-trained encoder, new weights, and two lists,
of names and of their words. Chapter: `book/evidence/questions`.

A fifth of the almanac's entities is held out: no sentence with one of them is trained on, and only
sentences whose entities are all held out are scored. The pre-trained encoder has read these names,
without labels; the new weights and the lists have not. A seed is a choice of entities, an order of
the batches and a set of new weights.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from research.grid import fingerprint, rounded
from research.measurements.name_lists import NameList, WordList
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.tasks import tagging
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.text.sentences import named_sentences

SEEDS = 5
FINE_TUNING = True
DOCUMENTS = 1_000
STEPS = 100
HELD_OUT = 0.2  # of the entities
FINE_TUNING = FineTuning(batch_size=32, peak_learning_rate=2e-3, max_length=40)
SETTINGS = {
    "start": "spanbert-tiny",
    "settings": FINE_TUNING,
    "steps": STEPS,
    "documents": DOCUMENTS,
    "held_out": HELD_OUT,
}
Labeled = list[tuple[tagging.LabeledText, set[str]]]  # sentences, and the entities (by id) in each


def sentences(documents: Iterable[dict]) -> Labeled:
    """The labeled sentences of documents of the almanac, with their entities."""
    return [
        (text, {entity for *_, entity in found})
        for document in documents
        for text, (_, found) in zip(
            tagging.labeled_sentences(document), named_sentences(document), strict=True
        )
    ]


def parts(train: Labeled, test: Labeled, seed: int) -> tuple[list, list]:
    """Labeled texts to learn from, without held-out entities, and others with no other entities
    than these."""
    keys = sorted(set().union(*(named for _, named in train + test)))
    held_out = set(
        np.random.default_rng(seed).permutation(keys)[: int(HELD_OUT * len(keys))].tolist()
    )
    shown = [text for text, named in train if not named & held_out]
    return shown, [text for text, named in test if named and named <= held_out]


def starts(seed: int) -> dict[str, BertEncoder]:
    """The shipped tiny encoder, and new weights of its sizes."""
    # about heads, which are not needed
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        pretrained = BertEncoder.from_huggingface(data_path("checkpoints", "spanbert-tiny"))
    new = BertEncoder(pretrained.config, torch.Generator().manual_seed(seed))
    start_positions_from_sinusoids(new)
    return {"pre-trained": pretrained, "new weights": new}


def run(
    train: Labeled, test: Labeled, seed: int, steps: int = STEPS, settings: FineTuning = FINE_TUNING
) -> dict:
    """{who: {"precision", "recall", "f1"}} on names that no label has shown, in percent; the
    numbers of texts; and `known_words`."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    shown, new = parts(train, test, seed)
    gold = [
        tagging.spans(tagging.bio(tagging.Words.of(text, wordpiece).offsets, entities))
        for text, entities in new
    ]
    lists: dict[str, NameList | WordList] = {
        "list of names": NameList(shown),
        "list of words": WordList(shown),
    }
    found = {name: [one.tags(text) for text, _ in new] for name, one in lists.items()}
    tokens = sum(tagging.TaggingData(shown, wordpiece, settings).lengths())
    settings = replace(
        settings, seed=seed, epochs=steps * settings.batch_size * settings.max_length / tokens
    )
    for name, encoder in starts(seed).items():
        tagger, _ = tagging.fine_tune(encoder, wordpiece, shown, settings)
        found[name] = [tags for _, tags, _ in tagger.scored([text for text, _ in new])]
    scores = {
        name: tagging.entity_scores(gold, [*map(tagging.spans, tags)])
        for name, tags in found.items()
    }
    return {
        "texts": [len(shown), len(new)],
        "known_words": known_words(shown, new),
        "scores": scores,
    }


def known_words(shown: list[tagging.LabeledText], new: list[tagging.LabeledText]) -> float:
    """How many words of the new names, each name taken once, stand in a shown name: in percent."""
    known = {word for name in NameList(shown).labels for word in name}
    return 100 * float(np.mean([word in known for name in NameList(new).labels for word in name]))


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The labeled sentences."""
    train = sentences(islice(almanac.read("train"), settings["documents"]))
    test = sentences(almanac.read("test"))
    return {"fingerprint": fingerprint(*(text for text, _ in train + test))}, (train, test)


def one(seed: int, settings: Mapping, train: Labeled, test: Labeled) -> dict:
    """All arms of a seed."""
    return rounded(run(train, test, seed, settings["steps"], settings["settings"]))


def place(path: tuple) -> tuple | None:
    """Who tags is the condition."""
    return (path[1], path[2:]) if path[0] == "scores" else None
