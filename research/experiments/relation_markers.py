"""Relations of the almanac: two ways to mark the names, two heads, and what remains without names
or without context. Chapter: `book/evidence/questions`.

All arms but one start from the shipped `spanbert-tiny`, which has read the training documents,
without labels. The test has other documents and other pairs of things. A seed is an order of the
batches, new weights of the head and of the markers, and for `new weights` those of the encoder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from research.experiments.tagging_names import starts
from research.grid import fingerprint, rounded
from research.measurements.span_tasks_relations import all_words, name_words
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import relation_baselines as controls
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.relation_extraction import RelationExtractor, fine_tune, score
from spanbert_tutorial.tasks.relation_files import NO_RELATION, Argument, Example

MASK = SPECIALS[-1]
SEEDS = 5
FINE_TUNING = True
ARMS: dict[str, dict[str, str]] = {
    "replaced, [CLS]": {"marking": "replaced", "head": "cls"},  # SpanBERT's
    "replaced, markers": {"marking": "replaced", "head": "entities"},
    "around, [CLS]": {"marking": "around", "head": "cls"},
    "around, markers": {"marking": "around", "head": "entities"},
    "names alone": {"marking": "around", "head": "entities"},
    "context alone": {"marking": "around", "head": "entities"},
    "new weights": {"marking": "around", "head": "entities"},
}
FINE_TUNING = FineTuning(epochs=2, batch_size=32, peak_learning_rate=1e-3, max_length=40)
SETTINGS = {"start": "spanbert-tiny", "settings": FINE_TUNING}


def names_alone(example: Example) -> Example:
    """The two names in the order of the sentence, with nothing around them."""
    names = sorted(
        [("subject", example.subject), ("object", example.object)], key=lambda pair: pair[1].first
    )
    words: list[str] = []
    places: dict[str, Any] = {}
    for role, (first, last, kind) in names:
        places[role] = Argument(len(words), len(words) + last - first, kind)
        words += example.words[first : last + 1]
    return example._replace(words=tuple(words), **places)


def context_alone(example: Example) -> Example:
    """The sentence with one [MASK] in place of each name, without their types."""
    words: list[str] = []
    places: dict[str, Any] = {}
    arguments = {"subject": example.subject, "object": example.object}
    for place, word in enumerate(example.words):
        for role, (first, _, _) in arguments.items():
            if place == first:
                places[role] = Argument(len(words), len(words))
                words.append(MASK)
        if not any(first <= place <= last for first, last, _ in arguments.values()):
            words.append(word)
    return example._replace(words=tuple(words), **places)


LESS = {"names alone": names_alone, "context alone": context_alone}


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The shipped examples."""
    train = almanac.relations("train")
    test = almanac.relations("test")
    return {"examples": [len(train), len(test)], "fingerprint": fingerprint(train, test)}, (
        train,
        test,
    )


def trained(
    way: str, seed: int, settings: FineTuning, train: Sequence[Example]
) -> RelationExtractor:
    """The extractor of an arm."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    encoder = starts(seed)["new weights" if way == "new weights" else "pre-trained"]
    seen = [LESS[way](example) for example in train] if way in LESS else train
    arm = ARMS[way]
    return fine_tune(
        encoder,
        wordpiece,
        seen,
        replace(settings, seed=seed),
        marking=arm["marking"],
        head=arm["head"],
    )[0]


def one(
    way: str, seed: int, settings: Mapping, train: Sequence[Example], test: Sequence[Example]
) -> dict:
    """precision, recall, f1 on the test examples, in percent."""
    extractor = trained(way, seed, settings["settings"], train)
    seen = [LESS[way](example) for example in test] if way in LESS else test
    return rounded(score([example.relation for example in test], extractor.predict(seen)))


def beside(settings: Mapping, train: Sequence[Example], test: Sequence[Example]) -> dict:
    """F1 of the guesses without an encoder."""
    predictions = {
        "most frequent relation": controls.most_frequent(train, test, NO_RELATION),
        "types of the names": controls.by_types(train, test),
        "words of the names": controls.by_words(train, test, name_words),
        "words around the names": controls.by_words(train, test, controls.context_words),
        "all words": controls.by_words(train, test, all_words),
    }
    gold = [example.relation for example in test]
    return {
        "controls": rounded({name: score(gold, guess)["f1"] for name, guess in predictions.items()})
    }


def place(path: tuple) -> tuple | None:
    """A control is a condition."""
    return (path[1], ("f1",)) if path[0] == "controls" else None
