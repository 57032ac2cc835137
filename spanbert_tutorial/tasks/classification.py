"""A label for a sentence or a pair, or a score, from the state of [CLS], as in the nine tasks of
GLUE. Chapter: `book/tasks/classification`.

The tasks and their files stand in `sentence_files`. Sources: BERT §4.1 and figure 4 (a, b); GLUE
(Wang and others, 2018); SpanBERT §5.3. Shapes: B batch, n sequence, H hidden, K labels (BERT's
letter).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import is_number, require, shown
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning
from spanbert_tutorial.tasks.sentence_files import Example, Sentences, read, task_named  # noqa: F401
from spanbert_tutorial.tasks.task_checkpoints import Predictor

PRESETS = {
    "small": FineTuning(epochs=4, batch_size=4, peak_learning_rate=3e-4, max_length=128),
    "spanbert": FineTuning(epochs=10, batch_size=32, peak_learning_rate=2e-5, max_length=128),
}


class Framed(NamedTuple):
    """[CLS] first [SEP] (second [SEP])."""

    ids: np.ndarray  # [n]
    segments: np.ndarray  # [n]

    @classmethod
    def of(cls, sentences: Sentences, wordpiece: WordPiece, max_length: int) -> "Framed":
        """Encodes a sentence or a pair to at most `max_length` positions: the longer sentence loses
        tokens at its end, one by one, as in BERT's released code. Raises InputError for a sentence
        without a token, and where `max_length` has no room for a token of each."""
        parts = [wordpiece.encode(text) for text in sentences if text is not None]
        wrong = f"{ascii(sentences)} holds an empty sentence"
        require(all(map(len, parts)), f"{wrong}: write at least one word.")
        room = max_length - 1 - len(parts)  # beside [CLS] and a [SEP] after each
        wrong = f"a length of {max_length} has no room for a token of each sentence"
        require(room >= len(parts), f"{wrong}: give more.")
        short = shortened(parts, room)
        return cls(*frame(*short, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id))


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
        hidden = self.encoder.of(batch)  # [B,n,H]
        state = torch.tanh(self.pooler(hidden[:, 0]))
        return self.classifier(self.dropout(state)).float()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy of the labels, in nats}."""
        scores = self.scores(batch)
        return {"loss": F.cross_entropy(scores, batch["label"])}


class RegressionModel(ClassificationModel):
    """The same head with one output: a number, not a label."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__(encoder, labels=1)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean squared error of the standard scores}."""
        scores = self.scores(batch)[:, 0]
        return {"loss": F.mse_loss(scores, batch["label"])}


# --- training and predicting --------------------------------------------------------


class ClassificationData(Data):
    """Examples with labels, or with scores: these are learned as standard scores, which small steps
    soon reach. facts: `labels`, sorted, or `mean` and `spread`. Raises InputError unless there are
    at least two labels or scores."""

    def __init__(
        self, examples: Sequence[Example], wordpiece: WordPiece, settings: FineTuning
    ) -> None:
        given = np.array([label for _, label in examples])
        labels, targets = np.unique(given, return_inverse=True)
        require(len(labels) > 1, "all examples have the same label: give examples of at least two.")
        facts: dict[str, Any] = {"labels": labels.tolist()}
        if given.dtype.kind != "U":  # scores
            facts = {"mean": float(given.mean()), "spread": float(given.std())}
            targets = ((given - given.mean()) / given.std()).astype(np.float32)
        inputs = [Framed.of(one, wordpiece, settings.max_length) for one, _ in examples]
        super().__init__(inputs, targets, wordpiece, settings, **facts)


class SentencePredictor(Predictor):
    """Names labels or scores. facts: `labels`, what the model's scores stand for, or `mean` and
    `spread`, which turn its one number into a score; of a model of the command also `subtask`."""

    task = "sentences"
    data = ClassificationData

    @staticmethod
    def new_model(encoder: BertEncoder, facts: Mapping[str, Any]) -> ClassificationModel:
        if labels := facts.get("labels"):
            return ClassificationModel(encoder, len(labels))
        return RegressionModel(encoder)

    def scores(self, examples: Sequence[Example]) -> list[Tensor]:
        """The model's scores of each example, [K] or [1]; their own labels are not looked at."""
        how = self.wordpiece, self.max_length
        return self.logits([Framed.of(texts, *how) for texts, _ in examples])

    def predict(self, examples: Sequence[Example]) -> list[str] | list[float]:
        """A label or a score for each example."""
        return self.named(self.scores(examples))

    def named(self, scores: Sequence[Tensor]) -> list[str] | list[float]:
        """The label or score that `scores` mean."""
        if labels := self.facts.get("labels"):
            return [labels[int(row.argmax())] for row in scores]
        return [self.facts["mean"] + self.facts["spread"] * float(row) for row in scores]


fine_tune = SentencePredictor.fine_tune


# --- scores -------------------------------------------------------------------------


def score(
    task: str, gold: Sequence[str | float], predicted: Sequence[str | float]
) -> dict[str, float]:
    """What GLUE reports of a task, times 100: `accuracy`; `f1` of the label 1; `matthews`,
    `pearson` and `spearman` correlation, from -100 to 100; predictions that are all the same
    correlate with nothing: 0.

    Raises InputError for what is no label of the task, and where a measure is not defined (but for
    accuracy the gold labels must differ)."""
    row = task_named(task)
    wanted = " and ".join(row.labels) or "numbers"
    for value in (*gold, *predicted):
        fits = value in row.labels if row.labels else is_number(value) and np.isfinite(value)
        require(fits, f"{row.name} has {wanted}, not {shown(value)}: give those of this task.")
    require(len(gold) == len(predicted), "gold and predicted differ in length: give one for each.")
    names = " and ".join(row.metrics)
    differ = len(set(gold)) > 1 or row.metrics == ("accuracy",) and gold
    require(differ, f"{names} need labels that differ: give examples of both kinds.")
    measures = metrics()
    return {name: 100 * float(measures[name](list(gold), list(predicted))) for name in row.metrics}


def correlation(measure: Callable) -> Callable[[Sequence[float], Sequence[float]], float]:
    """A correlation of SciPy; 0, where it knows none, if all predictions are the same."""
    return lambda gold, predicted: measure(gold, predicted).statistic if np.ptp(predicted) else 0.0


def metrics() -> dict[str, Callable[[list, list], float]]:
    """By name, of gold and predicted labels or numbers."""
    # here, because both take seconds to import
    from scipy.stats import pearsonr, spearmanr
    from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

    return {
        "accuracy": accuracy_score,
        "f1": lambda gold, predicted: f1_score(gold, predicted, pos_label="1", zero_division=0.0),
        "matthews": matthews_corrcoef,  # 0 for predictions that are all the same
        "pearson": correlation(pearsonr),
        "spearman": correlation(spearmanr),
    }
