"""One and two sentences: a label or a score, as in the nine tasks of GLUE. Chapter:
`book/tasks/classification`.

A label is read from the state of [CLS] as in `classification`; a score likewise, as one number with
the mean squared error. The tasks and their files stand in `sentence_files`, controls that learn
without an encoder in `sentence_controls`. Sources: GLUE (Wang and others, 2018); BERT §4.1;
SpanBERT §5.3.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch.nn.functional as F
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from torch import Tensor

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import is_number, require
from spanbert_tutorial.tasks.classification import ClassificationData, ClassificationModel, Framed
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, check_start, fit
from spanbert_tutorial.tasks.sentence_files import GLUE, Example, read, task_named  # noqa: F401
from spanbert_tutorial.tasks.task_checkpoints import Predictor

PRESETS = {
    "small": FineTuning(epochs=4, batch_size=4, peak_learning_rate=3e-4, max_length=128),
    "spanbert": FineTuning(epochs=10, batch_size=32, peak_learning_rate=2e-5, max_length=128),
}


# --- scores -------------------------------------------------------------------------


def score(
    task: str, gold: Sequence[str | float], predicted: Sequence[str | float]
) -> dict[str, float]:
    """What GLUE reports of a task, times 100: `accuracy`; `f1` of the label 1; `matthews`,
    `pearson` and `spearman` correlation, from -100 to 100.

    Predictions that are all the same correlate with nothing: 0. Raises InputError where a measure
    is not defined (for correlations and F1 the gold labels must differ), and for what is no label
    or no number.
    """
    row = task_named(task)
    wanted = " and ".join(row.labels) or "numbers"
    for name, values in (("gold label", gold), ("prediction", predicted)):
        for number, value in enumerate(values, start=1):
            fits = value in row.labels if row.labels else is_number(value) and np.isfinite(value)
            require(fits, f'{name} {number} is "{value}": {row.name} has {wanted}.')
    names = " and ".join(row.metrics)
    differ = len(set(gold)) > 1 or row.metrics == ("accuracy",) and gold
    require(differ, f"{names} need labels that differ: give examples of both kinds.")
    return {name: 100 * float(METRICS[name](list(gold), list(predicted))) for name in row.metrics}


def score_of(
    examples: Sequence[Example], predicted: Sequence[str | float], subtask: str
) -> dict[str, float]:
    """`score` of predictions for examples."""
    return score(subtask, [label for _, label in examples], predicted)


def correlation(measure: Callable) -> Callable[[Sequence[float], Sequence[float]], float]:
    """A correlation of SciPy; 0, where it knows none, if all predictions are the same."""
    return lambda gold, predicted: measure(gold, predicted).statistic if np.ptp(predicted) else 0.0


METRICS = {
    "accuracy": accuracy_score,
    "f1": lambda gold, predicted: f1_score(gold, predicted, pos_label="1", zero_division=0.0),
    "matthews": matthews_corrcoef,  # 0 for predictions that are all the same
    "pearson": correlation(pearsonr),
    "spearman": correlation(spearmanr),
}


class RegressionModel(ClassificationModel):
    """The same head with one output: a number, not a label."""

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__(encoder, labels=1)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean squared error of the standard scores}."""
        scores = self.scores(batch)[:, 0]
        return {"loss": F.mse_loss(scores, batch["label"])}


# --- training and predicting --------------------------------------------------------


def fine_tune(
    encoder: BertEncoder,
    wordpiece: WordPiece,
    examples: Sequence[Example],
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple["SentencePredictor", History]:
    """Trains encoder (in place) and a new head, for labels, or for scores where the examples have
    numbers. settings: batches hold about `batch_size` × `max_length` tokens. Raises
    InputError unless there are at least two labels or scores."""
    check_start(encoder, wordpiece, settings)
    labels = {label for _, label in examples}
    require(len(labels) > 1, "all examples have the same label: give examples of at least two.")
    facts: dict[str, Any]
    if isinstance(examples[0][1], str):
        labeled = ClassificationData(cast(list, examples), wordpiece, settings)
        data: Data = labeled
        facts = {"labels": labeled.labels}
    else:
        # standard scores: small steps soon reach them
        scores = np.array([value for _, value in examples])
        facts = {"mean": float(scores.mean()), "spread": float(scores.std())}
        standard = ((scores - facts["mean"]) / facts["spread"]).astype(np.float32)
        inputs = [Framed.of(texts, wordpiece, settings.max_length) for texts, _ in examples]
        data = Data(inputs, standard, wordpiece, settings)
    make_model = partial(SentencePredictor.new_model, encoder, facts)
    model, history = fit(make_model, data, settings, snapshots)
    return SentencePredictor(model, wordpiece, settings.max_length, **facts), history


class SentencePredictor(Predictor):
    """Names labels or scores. facts: `labels`, what the model's scores stand for, or `mean` and
    `spread`, which turn its one number into a score."""

    task = "sentences"

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
        scores = self.scores(examples)
        if labels := self.facts.get("labels"):
            return [labels[int(row.argmax())] for row in scores]
        return [self.facts["mean"] + self.facts["spread"] * float(row) for row in scores]
