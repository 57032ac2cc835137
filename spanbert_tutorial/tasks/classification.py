"""A label for a sentence or for a pair of sentences, from the state of [CLS]. Chapter:
`book/tasks/classification`.

Source: BERT §4.1 and figure 4 (a, b). Shapes: B batch, n sequence, H hidden, K labels (BERT's
letter).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import check_text, require
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning

Sentences = tuple[str, str | None]  # a sentence alone, or a pair


class Framed(NamedTuple):
    """[CLS] first [SEP] (second [SEP])."""

    ids: np.ndarray  # [n]
    segments: np.ndarray  # [n]

    @classmethod
    def of(cls, sentences: Sentences, wordpiece: WordPiece, max_length: int) -> "Framed":
        """Encodes a sentence or a pair to at most `max_length` positions: the longer sentence loses
        tokens at its end, one by one, as in BERT's released code. Raises InputError for a sentence
        without a token, and where `max_length` has no room for a token of each."""
        texts = [text for text in sentences if text is not None]
        for text in texts:
            check_text("the sentence", text)
        parts = [wordpiece.encode(text) for text in texts]
        wrong = f"{ascii(sentences)} holds an empty sentence"
        require(all(map(len, parts)), f"{wrong}: write at least one word.")
        room = max_length - 1 - len(parts)  # beside [CLS] and a [SEP] after each
        wrong = f"a length of {max_length} has no room for {len(parts)} sentences"
        require(room >= len(parts), f"{wrong}: give more.")
        parts = shortened(parts, room)
        return cls(*frame(*parts, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id))


def shortened(
    parts: Sequence[np.ndarray],
    room: int,
) -> list[np.ndarray]:
    """The longer part loses tokens at its end until all fit."""
    parts = list(parts)
    while sum(map(len, parts)) > room:
        # of two that are equally long, the second
        longest = 0 if len(parts[0]) > len(parts[-1]) else -1
        parts[longest] = parts[longest][:-1]
    return parts


class ClassificationModel(nn.Module):
    """A dense layer and tanh on [CLS], then a score for each label.

    As in next sentence prediction.
    """

    def __init__(self, encoder: BertEncoder, labels: int) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, labels)
        self.dropout = nn.Dropout(encoder.config.hidden_dropout_prob)
        for layer in (self.pooler, self.classifier):
            initialize(layer, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> Tensor:
        """The score of each label, [B,K]."""
        hidden = self.encoder(
            batch["input_ids"],
            token_type_ids=batch["token_type_ids"],
            attention_mask=batch["attention_mask"],
        )  # [B,n,H]
        state = torch.tanh(self.pooler(hidden[:, 0]))
        return self.classifier(self.dropout(state)).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy of the labels, in nats}."""
        scores = self.scores(batch)
        return {"loss": F.cross_entropy(scores, batch["label"])}


class ClassificationData(Data):
    """Examples with labels. labels: those of the examples, sorted."""

    def __init__(
        self, examples: Sequence[tuple[Sentences, str]], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        self.labels = sorted({label for _, label in examples})
        targets = np.array([self.labels.index(label) for _, label in examples])
        inputs = [Framed.of(one, wordpiece, settings.max_length) for one, _ in examples]
        super().__init__(inputs, targets, wordpiece, settings)
