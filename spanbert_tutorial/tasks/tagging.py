"""Tagging: a label for each word, here the entities of the almanac. Chapter:
`book/tasks/classification`.

The hidden state of a word's first token goes through one linear layer and a softmax; each tag is
predicted on its own (no CRF). Sources: BERT §4 and §5.3 (CoNLL-2003); entities from tags and their
F1 follow CoNLL's scorer. Shapes: B batch, n sequence, w words of a text, T tags.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import NO_TARGET, frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.errors import InputError, require
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, fit, stacked
from spanbert_tutorial.text.sentences import split_sentences

# (start, end, label): the characters start to end of a text name something of this label
Entity = tuple[int, int, str]
LabeledText = tuple[str, list[Entity]]


def labeled_sentences(document: dict) -> list[LabeledText]:
    """The sentences of a document of the almanac (`almanac.read`) with their entities."""
    sentences = []
    begin = 0
    for text in split_sentences(document["text"]):
        end = begin + len(text)
        entities = [
            (start - begin, stop - begin, label)
            for start, stop, label, *_ in document["entities"]
            if begin <= start < end
        ]
        sentences.append((text, entities))
        begin = end + 1
    return sentences


def bio(words: np.ndarray, entities: Iterable[Entity]) -> list[str]:
    """B-label where an entity begins, I-label inside it, else O.

    words: (begin, end) of each in characters, int [w,2]. An entity has
    every word that it overlaps. Raises InputError for an entity without
    a word, and for two that share one.
    """
    tags = ["O"] * len(words)
    for start, end, label in entities:
        begins, ends = words.reshape(-1, 2).T
        inside = np.flatnonzero((begins < end) & (ends > start))
        require(
            len(inside) and all(tags[word] == "O" for word in inside),
            f"the {label} at {start} to {end} has no word of its own: "
            "give entities without overlap.",
        )
        for number, word in enumerate(inside):
            tags[word] = f"{'I' if number else 'B'}-{label}"
    return tags


def spans(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """Entities (first word, last word, label) of a row of tags.

    As CoNLL's scorer reads it: an I-label without an entity of that
    label right before it begins one. Raises InputError for a tag that
    is not O, B-label or I-label.
    """
    entities: list[tuple[int, int, str]] = []
    for word, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        before = entities[-1] if entities else None
        if prefix == "I" and before and before[1:] == (word - 1, label):
            entities[-1] = (before[0], word, label)
        elif prefix in ("B", "I") and label:
            entities.append((word, word, label))
        else:
            mend = "use O, B-label or I-label"
            require(tag == "O", f'"{tag}" is no tag: {mend}.')
    return set(entities)


def entity_scores(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
) -> dict[str, float]:
    """precision, recall, f1 in percent, counted over whole entities.

    An entity counts when both boundaries and the label are right; 0
    where a denominator is 0. gold, predicted: a row of tags for each
    text. Raises InputError for rows that differ in length.
    """
    require(
        [len(row) for row in gold] == [len(row) for row in predicted],
        "gold and predicted tags differ in length: give one tag for each word of each text.",
    )
    correct = in_gold = in_predicted = 0
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        wanted, said = spans(gold_tags), spans(predicted_tags)
        correct += len(wanted & said)
        in_gold += len(wanted)
        in_predicted += len(said)
    total = in_gold + in_predicted
    return {
        "precision": 100 * correct / max(in_predicted, 1),
        "recall": 100 * correct / max(in_gold, 1),
        "f1": 100 * (2 * correct) / max(total, 1),
    }


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
        if not len(ids):
            raise InputError("the text is empty: write at least one word.")
        first = np.flatnonzero(wordpiece.word_starts(ids))
        ends = offsets[np.append(first[1:], len(ids)) - 1, 1]
        framed = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
        return cls(*framed, first + 1, np.stack([offsets[first, 0], ends], axis=1))


class TaggingModel(nn.Module):
    """An encoder and one linear layer: scores at each position."""

    def __init__(self, encoder: BertEncoder, tags: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.classifier = nn.Linear(encoder.config.hidden_size, tags)
        initialize(self.classifier, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """The score of each tag at each position, [B,n,T]."""
        hidden = self.encoder(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )  # [B,n,H]
        return self.classifier(hidden).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy over the words, in nats}."""
        scores = self.scores(batch).mT  # [B,T,n]
        # NO_TARGET but at each word's first token
        tags = batch["tags"]
        loss = F.cross_entropy(scores, tags, ignore_index=NO_TARGET)
        return {"loss": loss}


class TaggingData(Data):
    """Labeled texts. tags: "O", and B- and I- of each label. Raises InputError for a text of more
    than `max_length` positions."""

    target_field = "tags"

    def __init__(
        self, texts: Sequence[LabeledText], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        self.words = [Words.of(text, wordpiece) for text, _ in texts]
        super().__init__(self.words, wordpiece, settings)
        longest = settings.max_length
        require(
            max(self.lengths(), default=0) <= longest,
            f"a text has more than {longest} positions: cut it up, or give a longer length.",
        )
        labels = sorted({label for _, entities in texts for *_, label in entities})
        self.tags = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
        self.rows = [
            np.array([self.tags.index(tag) for tag in bio(words.offsets, entities)])
            for words, (_, entities) in zip(self.words, texts, strict=True)
        ]

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        tensors = self.padded(rows)
        tags = torch.full_like(tensors["input_ids"], NO_TARGET)
        for number, row in enumerate(rows):
            tags[number, self.words[row].positions] = torch.from_numpy(self.rows[row])
        return tensors | {"tags": tags}


def fine_tune(
    encoder: BertEncoder, wordpiece: WordPiece, texts: Sequence[LabeledText], settings: FineTuning
) -> tuple["Tagger", History]:
    """Trains the encoder (in place) and a new head. Returns the tagger and the history of the
    losses. settings: a batch has about `batch_size` × `max_length` tokens."""
    data = TaggingData(texts, wordpiece, settings)
    model, history = fit(lambda: TaggingModel(encoder, len(data.tags)), data, settings)
    return Tagger(model, wordpiece, data.tags), history


class Tagger:
    """Finds entities. tags: those of the model's scores, in order."""

    def __init__(self, model: TaggingModel, wordpiece: WordPiece, tags: Sequence[str]) -> None:
        self.model = model.eval()
        self.wordpiece = wordpiece
        self.all_tags = list(tags)

    @torch.no_grad()
    def tags(self, texts: Sequence[str], batch_size: int = 64) -> list[list[str]]:
        """The tag with the highest score for each word of each text. A text that is empty or too
        long raises InputError."""
        inputs = [Words.of(text, self.wordpiece) for text in texts]
        device = self.model.classifier.weight.device
        predictions = []
        for start in range(0, len(inputs), batch_size):
            rows = inputs[start : start + batch_size]
            batch = {
                name: value.to(device)
                for name, value in stacked(rows, self.wordpiece.pad_id).items()
            }
            best = self.model.scores(batch).argmax(-1).cpu().numpy()  # [B,n]
            predictions += [
                [self.all_tags[tag] for tag in tags[words.positions]]
                for tags, words in zip(best, rows, strict=True)
            ]
        return predictions

    def entities(self, text: str) -> list[Entity]:
        """The entities of a text, in order."""
        offsets = Words.of(text, self.wordpiece).offsets
        return [
            (int(offsets[first, 0]), int(offsets[last, 1]), label)
            for first, last, label in sorted(spans(*self.tags([text])))
        ]
