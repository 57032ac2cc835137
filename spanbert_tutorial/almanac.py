"""Reads the almanac, the small fictional world that the book ships: `read("train")` gives its
documents. Chapter: `book/welcome`. What made them is `research/almanac/`, in a clone.
"""

import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import relation_files
from spanbert_tutorial.text.corpora import read_almanac as read
from spanbert_tutorial.text.sentences import named_sentences

__all__ = ["coreference", "name_inference", "read", "relations"]


def coreference(split: str | None = None) -> Iterator[dict]:
    """The labeled documents, all or those of one split, as `read` gives them, with `clusters`: the
    mentions of each entity, (start, end) in characters of the text. Entities named once are
    clusters of one. Documents with a pronoun whose meaning the writer did not know are left out."""
    with lzma.open(data_path("almanac", "coreference.jsonl.xz"), "rt", encoding="ascii") as lines:
        labels = {record["id"]: record["clusters"] for record in map(json.loads, lines)}
    for document in read(split):
        if document["id"] in labels:
            clusters = [[tuple(span) for span in spans] for spans in labels[document["id"]]]
            yield document | {"clusters": clusters}


def relations(split: str) -> list[relation_files.Example]:
    """Every two names of a sentence with the relation that it tells of them, or without one. split:
    train, validation or test; the last two share no pair of things with training."""
    return relation_files.read(data_path("almanac", f"relations-{split}.json.xz"))


def name_inference(train: Iterable[dict], test: Iterable[dict], label: str) -> dict[str, float]:
    """Count-based control: how often is a masked name guessed, from frequency and from context?

    Each mention of the label in `test` is masked in turn. `frequency` guesses the name most
    frequent in `train`. `sentence` and `document` guess the name that most often shared a training
    document with the other entities of the masked sentence or document (each count divided by the
    documents that hold that entity). The masked name's other mentions are never context.
    """
    together: dict[str, Counter[str]] = defaultdict(Counter)
    known: Counter[str] = Counter()
    frequency: Counter[str] = Counter()
    for document in train:
        frequency.update(name for *_, kind, name in document["entities"] if kind == label)
        entities = {(kind, entity) for *_, kind, entity in document["entities"]}
        names = {entity for kind, entity in entities if kind == label}
        for _, entity in entities:
            known[entity] += 1
            together[entity].update(names - {entity})
    most_frequent = frequency.most_common(1)[0][0]

    def guess(context: set[str]) -> str:
        scores: dict[str, float] = defaultdict(float)
        for companion in sorted(context):
            for name, count in together[companion].items():
                scores[name] += count / known[companion]
        return max(scores, key=lambda name: (scores[name], name)) if scores else most_frequent

    right = []
    for document in test:
        whole = {entity for *_, entity in document["entities"]}
        for _, found in named_sentences(document):
            near = {entity for *_, entity in found}
            for name in [entity for *_, kind, entity in found if kind == label]:
                guesses = most_frequent, guess(near - {name}), guess(whole - {name})
                right.append([name == one for one in guesses])
    shares = np.mean(right, axis=0).tolist()
    return dict(zip(("frequency", "sentence", "document"), shares, strict=True))
