"""Tagging: a label for each word, here the entities of the almanac. Chapter: `book/tasks/tagging`.

The state of a word's first token goes through one linear layer and a softmax; neighboring tags do
not see one another (no CRF). Sources: BERT §4 and §5.3 (CoNLL-2003); entities out of tags and their
F1: the convention of CoNLL's scorer. Shapes: B batch, n sequence, w words of a text, T tags.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece, split_words
from spanbert_tutorial.engine.loop import History
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.fine_tuning import FineTuning, fit, stacked
from spanbert_tutorial.text.sentences import split_sentences

Entity = tuple[
    int, int, str
]  # (start, end, label): characters start to end of a text name something of this label
LabeledText = tuple[str, list[Entity]]


def labeled_sentences(document: dict) -> list[LabeledText]:
    """The sentences of a document of the almanac (`almanac.read`) with their entities."""
    found = []
    begin = 0
    for text in split_sentences(document["text"]):
        end = begin + len(text)
        found.append(
            (
                text,
                [
                    (e[0] - begin, e[1] - begin, e[2])
                    for e in document["entities"]
                    if begin <= e[0] < end
                ],
            )
        )
        begin = end + 1
    return found


def bio(words: np.ndarray, entities: Iterable[Entity]) -> list[str]:
    """A tag for each word: B-label where an entity begins, I-label inside it, O elsewhere.

    words: (begin, end) of each in characters, int [w,2]. An entity has every word that it touches;
    one without a word, and two that share one, raise InputError.
    """
    tags = ["O"] * len(words)
    for start, end, label in entities:
        touched = np.flatnonzero((words[:, 0] < end) & (words[:, 1] > start))
        if not len(touched) or any(tags[word] != "O" for word in touched):
            raise InputError(
                f"the {label} at {start} to {end} has no word of its own: give entities without "
                f"overlap."
            )
        for number, word in enumerate(touched):
            tags[word] = f"{'I' if number else 'B'}-{label}"
    return tags


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Entities (first word, last word, label) of any row of tags, as CoNLL's scorer reads it: an
    I-label that has no entity of that label right before it begins one. Raises InputError for a tag
    that is not O, B-label or I-label."""
    found: list[tuple[int, int, str]] = []
    for word, tag in enumerate(tags):
        kind, _, label = tag.partition("-")
        if kind == "I" and found and found[-1][1:] == (word - 1, label):
            found[-1] = (found[-1][0], word, label)
        elif kind in ("B", "I") and label:
            found.append((word, word, label))
        elif tag != "O":
            raise InputError(f'"{tag}" is no tag: use O, B-label or I-label.')
    return set(found)


def entity_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """precision, recall, f1 in percent: an entity counts when both boundaries and the label are
    right, and a share of nothing is 0. gold, predicted: a row of tags for each text. Rows that do
    not fit raise InputError."""
    if [len(row) for row in gold] != [len(row) for row in predicted]:
        raise InputError(
            "gold and predicted tags differ in length: give one tag for each word of each text."
        )
    counts = [
        (len(spans(a) & spans(b)), len(spans(a)), len(spans(b)))
        for a, b in zip(gold, predicted, strict=True)
    ]
    right, wanted, said = np.sum([(0, 0, 0), *counts], axis=0)
    shares = {
        "precision": (right, said),
        "recall": (right, wanted),
        "f1": (2 * right, wanted + said),
    }
    return {name: float(100 * part / max(whole, 1)) for name, (part, whole) in shares.items()}


class NameList:
    """Control: the names of labeled texts, looked up; of several that fit the longest, from left
    to right."""

    def __init__(self, texts: Iterable[LabeledText]):
        self.labels = {
            tuple(split_words(text[start:end])): label
            for text, entities in texts
            for start, end, label in entities
        }

    def tags(self, text: str) -> list[str]:
        """A tag for each word of a text."""
        words = split_words(text)
        tags = []
        while len(tags) < len(words):
            names = (tuple(words[len(tags) : end]) for end in range(len(words), len(tags), -1))
            name = next((name for name in names if name in self.labels), None)
            tags += ["O"] if name is None else tags_of_name(self.labels[name], len(name))
        return tags


class WordList:
    """Control: the words of the names of labeled texts. A run of such words is taken for one name,
    of the kind that its last word ends most often (or is in most often, if it ends none).

    Only words that stand in names at least as often as outside are taken, so no "and" of a
    company's name.
    """

    def __init__(self, texts: Iterable[LabeledText]):
        everywhere = Counter()
        inside = defaultdict(Counter)
        ending = defaultdict(Counter)
        for text, entities in texts:
            everywhere.update(split_words(text))
            for start, end, label in entities:
                name = split_words(text[start:end])
                ending[name[-1]][label] += 1
                for word in name:
                    inside[word][label] += 1
        self.labels = {
            word: ending.get(word, kinds).most_common(1)[0][0]
            for word, kinds in inside.items()
            if 2 * kinds.total() >= everywhere[word]
        }

    def tags(self, text: str) -> list[str]:
        """A tag for each word of a text."""
        tags = []
        for known, run in groupby(split_words(text), self.labels.__contains__):
            *before, last = run
            count = len(before) + 1
            tags += tags_of_name(self.labels[last], count) if known else ["O"] * count
        return tags


def tags_of_name(label: str, words: int) -> list[str]:
    """The tags of one name of so many words."""
    return [f"{'I' if number else 'B'}-{label}" for number in range(words)]


class Words(NamedTuple):
    """A text as input, with [CLS] and [SEP]."""

    ids: np.ndarray  # [n]
    segments: np.ndarray  # [n], all 0
    places: np.ndarray  # [w], position of each word's first token
    offsets: np.ndarray  # [w,2], where each word stands in the text, in characters

    @classmethod
    def of(cls, text: str, wordpiece: WordPiece) -> "Words":
        """Raises InputError for a text without a token."""
        ids, offsets = wordpiece.encode_with_offsets(text)
        if not len(ids):
            raise InputError("the text is empty: write at least one word.")
        first = np.flatnonzero(wordpiece.word_starts(ids))
        ends = offsets[np.append(first[1:], len(ids)) - 1, 1]
        framed = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
        return cls(*framed, first + 1, np.stack([offsets[first, 0], ends], axis=1))


class TaggingModel(nn.Module):
    """One linear layer beside the encoder: a score for each tag at each position."""

    def __init__(self, encoder: BertEncoder, tags: int):
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(encoder.config.hidden_size, tags)
        initialize(self.classifier, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """[B,n,T]."""
        return self.classifier(
            self.encoder(batch["ids"], batch["segments"], batch["attention_mask"])
        ).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy over the words, in nats}; elsewhere `tags` [B,n] says that
        nothing is wanted."""
        return {
            "loss": F.cross_entropy(self.scores(batch).mT, batch["tags"], ignore_index=NO_TARGET)
        }


class TaggingData:
    """Labeled texts, each short enough, in the form that `batches.Batches` draws from. tags: those
    that occur."""

    by_length = True

    def __init__(self, texts: Sequence[LabeledText], wordpiece: WordPiece, settings: FineTuning):
        self.wordpiece = wordpiece
        self.batch_size = settings.batch_size
        self.max_length = settings.max_length
        self.inputs = [Words.of(text, wordpiece) for text, _ in texts]
        if max(self.lengths(), default=0) > self.max_length:
            raise InputError(
                f"a text has more than {self.max_length} positions: cut it up, or give a longer length."
            )
        labels = sorted({label for _, entities in texts for *_, label in entities})
        self.tags = ["O", *(f"{kind}-{label}" for label in labels for kind in "BI")]
        self.rows = [
            np.array([self.tags.index(tag) for tag in bio(words.offsets, entities)])
            for words, (_, entities) in zip(self.inputs, texts, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.inputs)

    def lengths(self) -> np.ndarray:
        return np.array([len(words.ids) for words in self.inputs])

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """Tensors of these texts; nothing is drawn at random."""
        tensors = stacked([self.inputs[row] for row in rows], self.wordpiece.pad_id)
        tags = torch.full_like(tensors["ids"], NO_TARGET)
        for number, row in enumerate(rows):
            tags[number, self.inputs[row].places] = torch.from_numpy(self.rows[row])
        return tensors | {"tags": tags}


def fine_tune(
    encoder: BertEncoder, wordpiece: WordPiece, texts: Sequence[LabeledText], settings: FineTuning
) -> tuple["Tagger", History]:
    """Trains encoder (in place) and a new head. settings: batches hold about `batch_size` ×
    `max_length` tokens; `doc_stride` has no meaning here."""
    data = TaggingData(texts, wordpiece, settings)
    model, history = fit(lambda: TaggingModel(encoder, len(data.tags)), data, settings)
    return Tagger(model, wordpiece, data.tags), history


class Tagger:
    """Finds entities. tags: what the model's scores stand for."""

    def __init__(self, model: TaggingModel, wordpiece: WordPiece, tags: Sequence[str]):
        self.model = model.eval()
        self.wordpiece = wordpiece
        self.all_tags = list(tags)

    @torch.no_grad()
    def tags(self, texts: Sequence[str], batch_size: int = 64) -> list[list[str]]:
        """The likeliest tag of each word of each text. A text that is empty or too long raises
        InputError."""
        inputs = [Words.of(t, self.wordpiece) for t in texts]
        device = self.model.classifier.weight.device
        found = []
        for start in range(0, len(inputs), batch_size):
            some = inputs[start : start + batch_size]
            batch = {
                name: value.to(device)
                for name, value in stacked(some, self.wordpiece.pad_id).items()
            }
            best = self.model.scores(batch).argmax(-1).cpu().numpy()
            found += [
                [self.all_tags[tag] for tag in row[words.places]]
                for row, words in zip(best, some, strict=True)
            ]
        return found

    def entities(self, text: str) -> list[Entity]:
        """The entities of a text, in order."""
        offsets = Words.of(text, self.wordpiece).offsets
        return [
            (int(offsets[first, 0]), int(offsets[last, 1]), label)
            for first, last, label in sorted(spans(*self.tags([text])))
        ]
