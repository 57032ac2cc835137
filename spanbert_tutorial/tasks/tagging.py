"""Tagging: a label for each word, here the entities of the almanac. Chapter:
`book/tasks/classification`.

The hidden state of a word's first token goes through one linear layer and a softmax; each tag is
predicted on its own (no CRF). Sources: BERT §4 and §5.3 (CoNLL-2003); entities from tags and their
F1 follow CoNLL's scorer, but over BERT's words, `U.S.` being four: figures are not comparable with
those of `conlleval`. Shapes: B batch, n sequence, w words of a text, T tags.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError, require, shown
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, padded, shares
from spanbert_tutorial.tasks.tagging_files import (
    Entity,
    LabeledText,
    read,  # noqa: F401
    spans,
)
from spanbert_tutorial.tasks.task_checkpoints import Predictor
from spanbert_tutorial.text.sentences import named_sentences

PRESETS = {
    "small": FineTuning(epochs=4, batch_size=8, peak_learning_rate=3e-4, max_length=128),
    "spanbert": FineTuning(epochs=4, batch_size=32, peak_learning_rate=2e-5, max_length=128),
}


def labeled_sentences(document: dict) -> list[LabeledText]:
    """The sentences of a document of the almanac (`almanac.read`) with their entities."""
    return [(text, [named[:3] for named in found]) for text, found in named_sentences(document)]


def bio(words: np.ndarray, entities: Iterable[Entity]) -> list[str]:
    """B-label where an entity begins, I-label inside it, else O.

    words: (begin, end) of each in characters, int [w,2]. An entity has every word that it overlaps.
    Raises InputError for an entity without a word, and for two that share one.
    """
    tags = ["O"] * len(words)
    for start, end, label in entities:
        begins, ends = words.reshape(-1, 2).T
        inside = np.flatnonzero((begins < end) & (ends > start))
        require(
            len(inside) and all(tags[word] == "O" for word in inside),
            f"the {label} at {start} to {end} holds no word, or one of "
            "another entity: give each entity words of its own.",
        )
        for number, word in enumerate(inside):
            tags[word] = f"{'I' if number else 'B'}-{label}"
    return tags


def entity_scores(
    gold: Sequence[Iterable[tuple]], predicted: Sequence[Iterable[tuple]], *labels: str
) -> dict[str, float]:
    """precision, recall, f1 in percent, counted over whole entities: both boundaries and the label
    have to be right. gold, predicted: for each text its entities, (first, last, label, …) as from
    `spans`. labels: those to count (none: all)."""

    def counted(rows: Sequence[Iterable[tuple]]) -> set[tuple]:
        every = {(text, *one[:3]) for text, row in enumerate(rows) for one in row}
        return {one for one in every if not labels or one[-1] in labels}

    wanted, said = counted(gold), counted(predicted)
    return shares(len(wanted & said), len(said), len(wanted))


class Words(NamedTuple):
    """A text as input, with [CLS] and [SEP]."""

    ids: np.ndarray  # [n]
    segments: np.ndarray  # [n], all 0
    positions: np.ndarray  # [w], position of each word's first token
    offsets: np.ndarray  # [w,2], start and end of each word in the text, in characters

    @classmethod
    def of(cls, text: str, wordpiece: WordPiece) -> "Words":
        """Raises InputError for a text without a token."""
        ids, offsets = wordpiece.encode_with_offsets(text)
        require(len(ids), "the text is empty: write at least one word.")
        first = np.flatnonzero(wordpiece.word_starts(ids))
        ends = offsets[np.append(first[1:], len(ids)) - 1, 1]
        framed = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
        return cls(*framed, first + 1, np.stack([offsets[first, 0], ends], axis=1))

    def parts(self, max_length: int) -> list["Words"]:
        """The text cut between words into inputs of at most `max_length` positions; a longer word
        keeps its first tokens."""
        ends = [*self.positions[1:], len(self.ids) - 1]  # of each word
        cuts = [0]
        for word, end in enumerate(ends):
            if end - self.positions[cuts[-1]] > max_length - 2 and word > cuts[-1]:
                cuts.append(word)
        found = []
        for first, last in pairwise([*cuts, len(ends)]):
            begin = self.positions[first]
            tokens = self.ids[begin : min(ends[last - 1], begin + max_length - 2)]
            ids = np.concatenate([self.ids[:1], tokens, self.ids[-1:]])
            places = self.positions[first:last] - begin + 1
            found.append(Words(ids, np.zeros_like(ids), places, self.offsets[first:last]))
        return found


class TaggingModel(nn.Module):
    """An encoder and one linear layer: scores at each position."""

    def __init__(self, encoder: BertEncoder, tags: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(encoder.config.hidden_size, tags)
        initialize(self.classifier, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """The score of each tag at each position, [B,n,T]."""
        hidden = self.encoder.of(batch)  # [B,n,H]
        return self.classifier(hidden).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy over the words, in nats}."""
        scores = self.scores(batch).mT  # [B,T,n]
        # NO_TARGET except at each word's first token
        tags = batch["tags"]
        loss = F.cross_entropy(scores, tags, ignore_index=NO_TARGET)
        return {"loss": loss}


class TaggingData(Data):
    """Labeled texts, long ones cut. facts: `tags`: "O", and B- and I- of each label."""

    target_field = "tags"

    def __init__(
        self, texts: Sequence[LabeledText], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        labels = sorted({label for _, entities in texts for *_, label in entities})
        known = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        words: list[Words] = []
        targets: list[np.ndarray] = []
        for text, entities in texts:
            try:
                whole = Words.of(text, wordpiece)
                tags = iter(bio(whole.offsets, entities))
            except InputError as error:
                raise InputError(f"the text {shown(text)}: {error}") from None
            for part in whole.parts(settings.max_length):
                target = np.full(len(part.ids), NO_TARGET)
                target[part.positions] = [known.index(next(tags)) for _ in part.positions]
                words.append(part)
                targets.append(target)
        super().__init__(words, targets, wordpiece, settings, tags=known)

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        batch = self.padded(rows)
        tags = padded([self.targets[row] for row in rows], NO_TARGET)
        more = batch["input_ids"].shape[1] - tags.shape[1]
        return batch | {"tags": F.pad(tags, (0, more), value=NO_TARGET)}


class Tagger(Predictor):
    """Finds entities. max_length: of an input; a longer text is cut between words. facts: `tags`, in
    the order of the model's scores."""

    task = "tagging"
    data = TaggingData

    @staticmethod
    def new_model(encoder: BertEncoder, facts: Mapping[str, Any]) -> TaggingModel:
        return TaggingModel(encoder, len(facts["tags"]))

    def scored(self, texts: Sequence[str]) -> list[tuple[np.ndarray, list[str], np.ndarray]]:
        """For each text where its words stand [w,2], the likeliest tag of each, and its probability
        [w]. An empty text raises InputError."""
        cut = [Words.of(text, self.wordpiece).parts(self.max_length) for text in texts]
        rows = iter(self.logits([part for parts in cut for part in parts]))  # [n,T] each
        found = []
        for parts in cut:
            own = torch.cat([next(rows).softmax(-1)[part.positions] for part in parts]).numpy()
            offsets = np.concatenate([part.offsets for part in parts])
            found.append((offsets, [self.facts["tags"][tag] for tag in own.argmax(1)], own.max(1)))
        return found

    def predict(self, texts: Sequence[LabeledText]) -> list[list[tuple[int, int, str, float]]]:
        """The entities of each text, in order, each with the least probability of its words; what
        the examples say themselves is not looked at."""
        found: list[list[tuple[int, int, str, float]]] = []
        for offsets, tags, probabilities in self.scored([text for text, _ in texts]):
            found.append([])
            for first, last, label in sorted(spans(tags)):
                start, end = int(offsets[first, 0]), int(offsets[last, 1])
                least = float(probabilities[first : last + 1].min())
                found[-1].append((start, end, label, least))
        return found


fine_tune = Tagger.fine_tune


def score(
    texts: Sequence[LabeledText], predicted: Sequence[Sequence[tuple]]
) -> dict[str, float | dict[str, float]]:
    """`entity_scores`, and under `labels` the f1 of each. Raises InputError where nothing is
    named."""
    gold = [entities for _, entities in texts]
    labels = sorted({label for entities in gold for *_, label in entities})
    require(labels, "no text names anything: give texts with entities.")
    f1 = {label: entity_scores(gold, predicted, label)["f1"] for label in labels}
    return {**entity_scores(gold, predicted), "labels": f1}
