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
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, fit, stacked

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
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{ascii(sentences)} holds half a character: mend its encoding."
            ) from None
        parts = [wordpiece.encode(text) for text in texts]
        if not all(map(len, parts)):
            raise InputError(
                f"{ascii(sentences)} holds an empty sentence: write at least one word."
            )
        if max_length < 1 + 2 * len(parts):
            raise InputError(
                f"a length of {max_length} has no room for {len(parts)} sentences: give more."
            )
        while sum(map(len, parts)) > max_length - 1 - len(parts):
            # of two that are equally long, the second
            longest = max(range(len(parts)), key=lambda part: (len(parts[part]), part))
            parts[longest] = parts[longest][:-1]
        return cls(*frame(*parts, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id))


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


class SentenceData(Data):
    """Sentences or pairs with a target each. targets: [N]."""

    def __init__(
        self,
        sentences: Sequence[Sentences],
        targets: np.ndarray,
        wordpiece: WordPiece,
        settings: FineTuning,
    ) -> None:
        inputs = [Framed.of(one, wordpiece, settings.max_length) for one in sentences]
        super().__init__(inputs, wordpiece, settings)
        self.targets = targets

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        return self.padded(rows) | {"label": torch.from_numpy(self.targets[rows])}


class ClassificationData(SentenceData):
    """Examples with labels. labels: those of the examples, sorted."""

    def __init__(
        self, examples: Sequence[tuple[Sentences, str]], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        self.labels = sorted({label for _, label in examples})
        targets = np.array([self.labels.index(label) for _, label in examples])
        super().__init__([sentences for sentences, _ in examples], targets, wordpiece, settings)


def fine_tune(
    encoder: BertEncoder,
    wordpiece: WordPiece,
    examples: Sequence[tuple[Sentences, str]],
    settings: FineTuning,
) -> tuple["Classifier", History]:
    """Trains the encoder (in place) and a new head. Returns the classifier and the history of the
    losses. settings: a batch has about `batch_size` × `max_length` tokens."""
    data = ClassificationData(examples, wordpiece, settings)
    model, history = fit(lambda: ClassificationModel(encoder, len(data.labels)), data, settings)
    return Classifier(model, wordpiece, data.labels, settings.max_length), history


class Classifier:
    """Predicts the label with the highest score. labels: those of the model's scores, in order;
    max_length: of an input."""

    def __init__(
        self,
        model: ClassificationModel,
        wordpiece: WordPiece,
        labels: Sequence[str],
        max_length: int = 128,
    ) -> None:
        self.model = model.eval()
        self.wordpiece = wordpiece
        self.all_labels = list(labels)
        self.max_length = max_length

    def labels(self, sentences: Sequence[Sentences], batch_size: int = 64) -> list[str]:
        """The predicted label of each. An empty sentence raises InputError."""
        scores = all_scores(self.model, self.wordpiece, sentences, self.max_length, batch_size)
        return [self.all_labels[best] for best in scores.argmax(-1).tolist()]


@torch.no_grad()
def all_scores(
    model: ClassificationModel,
    wordpiece: WordPiece,
    sentences: Sequence[Sentences],
    max_length: int,
    batch_size: int = 64,
) -> Tensor:
    """The model's scores of sentences or pairs, cut to `max_length`, in order: [N,K]. An empty
    sentence raises InputError."""
    inputs = [Framed.of(one, wordpiece, max_length) for one in sentences]
    device = model.classifier.weight.device
    scores = []
    for start in range(0, len(inputs), batch_size):
        batch = stacked(inputs[start : start + batch_size], wordpiece.pad_id)
        batch = {name: value.to(device) for name, value in batch.items()}
        scores.append(model.scores(batch).cpu())
    return torch.cat(scores) if scores else torch.empty(0, model.classifier.out_features)
