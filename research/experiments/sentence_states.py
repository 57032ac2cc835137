"""What one vector says about a whole sentence: the state of [CLS], and two others.
Chapter: `book/evidence/states_and_sentences`.

Sentences of the almanac that stand in no training document. A linear probe answers three questions
on each from one vector: `length` (few, some or many tokens), `kind` (of what kind is the name that
comes first?), `order` (have two neighboring words changed places?). The vectors are C, the state
of [CLS] after the last layer; the mean of the tokens' states; and the mean of their word
embeddings, which knows no order. No name that comes first in a test sentence comes first in a
sentence that the probe learns from. But nearly all share a word with such a name, so the chapter
compares `kind` with a list of words. A seed draws these names, new weights and the order of
fine-tuning. Labels dealt out at random are learned twice: in as many passes as the others, and in
so many that C moves as far as with the true kinds. Questions of this form: Conneau and others,
2018. Shapes: N sentences, B batch, n sequence, H hidden.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from research.grid import fingerprint
from research.measurements.frozen_states import accuracy, linear_probe
from research.results import rounded
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.tasks import classification
from spanbert_tutorial.tasks.fine_tuning import FineTuning, stacked
from spanbert_tutorial.tasks.tagging import labeled_sentences

SEEDS = 5
KINDS = 5
FEWEST_WORDS = 6
PENALTY = 3e-3
READ = ("C", "mean", "bag")
QUESTIONS = ("length", "kind", "order")
FINE_TUNING = FineTuning(epochs=3, batch_size=4, peak_learning_rate=5e-4, max_length=128)
TINY = "new weights", "new weights, no positions", "spanbert-tiny"
TUNED = (
    ("new weights", "kind", 3),
    ("new weights", "kind", 10),
    ("spanbert-tiny", "kind", 3),
    ("spanbert-tiny", "length", 3),
    ("spanbert-tiny", "kind at random", 3),
    ("spanbert-tiny", "kind at random", 30),
)  # start, labels, passes
MINI = "new weights", "spanbert-mini", "bert-mini"
SETTINGS = {"settings": FINE_TUNING, "tuned": TUNED, "penalty": PENALTY}


class Sentence(NamedTuple):
    """A sentence, the same with two neighboring words exchanged, the name that comes first, and of
    what kind it is."""

    text: str
    exchanged: str
    name: str
    kind: str


class Vectors(NamedTuple):
    """Reading ("C", "mean", "bag") → [N,H], of the sentences as they are and of those with
    exchanged words."""

    own: dict[str, Tensor]
    exchanged: dict[str, Tensor]


def exchange(text: str, rng: np.random.Generator) -> str:
    """Two neighboring words change places; the first and the last word stay."""
    words = text.split()
    places = [i for i in range(1, len(words) - 2) if words[i] != words[i + 1]]
    i = places[int(rng.integers(len(places)))]
    words[i], words[i + 1] = words[i + 1], words[i]
    return " ".join(words)


@cache
def sentences() -> tuple[Sentence, ...]:
    """Those of the held-out documents that stand in no training document, have a name of one of the
    `KINDS` most frequent kinds and at least `FEWEST_WORDS` words; each once."""
    rng = np.random.default_rng(0)
    found = {}
    known = {text for document in almanac.read("train") for text, _ in labeled_sentences(document)}
    for document in (
        document for part in ("validation", "test") for document in almanac.read(part)
    ):
        for text, entities in labeled_sentences(document):
            if entities and text not in known and len(text.split()) >= FEWEST_WORDS:
                start, end, kind = entities[0]
                found[text] = text[start:end], kind
    kinds = {kind for kind, _ in Counter(kind for _, kind in found.values()).most_common(KINDS)}
    return tuple(
        Sentence(text, exchange(text, rng), *found[text])
        for text in found
        if found[text][1] in kinds
    )


def parts(rows: Sequence[Sentence], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows to learn from, and which to test on: those of a third of the names that come
    first."""
    names = sorted({row.name for row in rows})
    tested = set(np.random.default_rng(seed).permutation(names)[: len(names) // 3].tolist())
    where = np.array([row.name in tested for row in rows])
    return np.flatnonzero(~where), np.flatnonzero(where)


def labels(rows: Sequence[Sentence], wordpiece: WordPiece) -> dict[str, Tensor]:
    """{"length": 0, 1, 2 for the shortest, middle and longest third by tokens, "kind": its number},
    [N] each."""
    counts = np.array([len(wordpiece.encode(row.text)) for row in rows])
    kinds = sorted({row.kind for row in rows})
    return {
        "length": torch.from_numpy(np.digitize(counts, np.quantile(counts, [1 / 3, 2 / 3]))),
        "kind": torch.tensor([kinds.index(row.kind) for row in rows]),
    }


def encoder(name: str, sizes_of: str, seed: int = 0) -> tuple[BertEncoder, WordPiece]:
    """The encoder of a shipped checkpoint, or new weights of the sizes of `sizes_of`, and the
    vocabulary. The positions of new weights are sinusoids, as at the start of the book's
    pre-training, or 0 with "no positions"."""
    new = name.startswith("new weights")
    trained, wordpiece = load_checkpoint(data_path("checkpoints", sizes_of if new else name))[:2]
    if not new:
        return trained.encoder.eval(), wordpiece
    below = BertEncoder(trained.encoder.config, torch.Generator().manual_seed(seed))
    start_positions_from_sinusoids(below)
    if "no positions" in name:
        torch.nn.init.zeros_(below.embeddings.positions.weight)
    return below.eval(), wordpiece


def vectors(below: BertEncoder, wordpiece: WordPiece, rows: Sequence[Sentence]) -> Vectors:
    """What an encoder makes of the sentences."""
    own, exchanged = ([getattr(row, name) for row in rows] for name in ("text", "exchanged"))
    return Vectors(read(below, wordpiece, own), read(below, wordpiece, exchanged))


@torch.no_grad()
def read(
    below: BertEncoder, wordpiece: WordPiece, texts: Sequence[str], batch_size: int = 64
) -> dict[str, Tensor]:
    """{"C": …, "mean": …, "bag": …}, [N,H] each, in the order of the texts."""
    inputs = [
        classification.Framed.of((text, None), wordpiece, below.config.max_position_embeddings)
        for text in texts
    ]
    order = np.argsort([len(one.ids) for one in inputs], kind="stable")  # so that little is padding
    found: dict[str, list[Tensor]] = {name: [] for name in READ}
    for start in range(0, len(order), batch_size):
        batch = stacked([inputs[i] for i in order[start : start + batch_size]], wordpiece.pad_id)
        states = below(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        ).float()
        special = (batch["input_ids"] == wordpiece.cls_id) | (
            batch["input_ids"] == wordpiece.sep_id
        )
        tokens = (batch["attention_mask"] & ~special)[..., None].float()  # [B,n,1]
        embeddings = below.embeddings.words.weight[batch["input_ids"]].float()
        found["C"].append(states[:, 0])
        for name, each in (("mean", states), ("bag", embeddings)):
            found[name].append((each * tokens).sum(1) / tokens.sum(1))
    back = np.argsort(order)
    return {name: torch.cat(some)[back] for name, some in found.items()}


def answers(
    made: Vectors, wanted: dict[str, Tensor], train: np.ndarray, test: np.ndarray
) -> dict[str, dict[str, float]]:
    """Question → vector → the share of the test rows that a linear probe answers rightly.

    Of `order` each sentence is asked twice, in its own order and in the other; so the bag is at one
    half."""
    found: dict[str, dict[str, float]] = {question: {} for question in QUESTIONS}
    for name in READ:
        own = made.own[name]
        other = made.exchanged[name]
        for question, label in wanted.items():
            found[question][name] = probed(own[train], own[test], label[train], label[test])
        both = [torch.cat([own[part], other[part]]) for part in (train, test)]
        changed = [torch.arange(2 * len(part)) // len(part) for part in (train, test)]
        found["order"][name] = probed(*both, *changed)
    return found


def probed(train_x: Tensor, test_x: Tensor, train_y: Tensor, test_y: Tensor) -> float:
    """Accuracy of a linear probe on the test rows."""
    return accuracy(linear_probe(train_x, train_y, PENALTY), test_x, test_y)


def examples(rows: Sequence[Sentence], label: Tensor, chosen: Iterable[int]) -> list:
    """The chosen sentences with their labels, to fine-tune on."""
    return [((rows[i].text, None), str(int(label[i]))) for i in chosen]


def right(classifier: classification.Classifier, some: Sequence) -> float:
    """Share of the examples of which a classifier names the label."""
    said = classifier.labels([sentence for sentence, _ in some])
    return float(np.mean([guess == label for guess, (_, label) in zip(said, some, strict=True)]))


@cache
def read_once(name: str, sizes_of: str) -> Vectors:
    """The vectors of an encoder that is the same for each seed."""
    return vectors(*encoder(name, sizes_of), sentences())


def most_frequent(label: Tensor) -> float:
    """Share of the most frequent label: who always says it, is right so often."""
    return max(Counter(label.tolist()).values()) / len(label)


def tiny(seed: int, settings: FineTuning = FINE_TUNING) -> dict:
    """The encoders of size tiny, also after fine-tuning; the share of the most frequent answers;
    the classifiers'; and how far fine-tuning moved C."""
    rows = sentences()
    wordpiece = encoder("spanbert-tiny", "spanbert-tiny")[1]
    wanted = labels(rows, wordpiece)
    split = parts(rows, seed)
    found: dict = {
        "most frequent": {name: most_frequent(label[split[1]]) for name, label in wanted.items()},
        "tiny": {},
        "classifier": {},
        "moved": {},
    }
    before = {}
    for name in TINY:
        made = vectors(encoder(name, "spanbert-tiny", seed)[0], wordpiece, rows)
        before[name], found["tiny"][name] = made.own["C"], answers(made, wanted, *split)
    for name, question, epochs in TUNED:
        below = encoder(name, "spanbert-tiny", seed)[0]
        key = f"{name}, {question}, {epochs} passes"
        label = (
            at_random(wanted["kind"], seed) if question == "kind at random" else wanted[question]
        )
        train, test = (examples(rows, label, part) for part in split)
        tuned, _ = classification.fine_tune(
            below, wordpiece, train, replace(settings, epochs=epochs, seed=seed)
        )
        found["classifier"][key] = right(tuned, test)
        made = vectors(below.eval(), wordpiece, rows)
        found["tiny"][key] = answers(made, wanted, *split)
        found["moved"][key] = moved(before[name][split[1]], made.own["C"][split[1]])
    return found


def moved(before: Tensor, after: Tensor) -> float:
    """How far vectors [N,H] went, without the step that all have in common: the root mean square of
    the distances, in units of the spread before, the root mean square of the distances from the
    mean."""
    first, second = (vectors - vectors.mean(0) for vectors in (before, after))
    return float(((second - first).square().sum() / first.square().sum()).sqrt())


def at_random(label: Tensor, seed: int) -> Tensor:
    """The same labels, dealt out anew."""
    return label[torch.from_numpy(np.random.default_rng(seed).permutation(len(label)))]


def mini(seed: int) -> dict:
    """The twins, and new weights of their sizes."""
    rows = sentences()
    wordpiece = encoder(MINI[1], MINI[1])[1]
    wanted = labels(rows, wordpiece)
    split = parts(rows, seed)
    return {name: answers(read_once(name, MINI[1]), wanted, *split) for name in MINI}


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The sentences are read when they are asked for."""
    return {"sentences": len(sentences()), "fingerprint": fingerprint(sentences())}, ()


def one(seed: int, settings: Mapping) -> dict:
    """All arms of a seed."""
    return rounded(tiny(seed, settings["settings"]) | {"mini": mini(seed)})
