"""What fine-tuning has in common, whatever the head: settings, batches of inputs, the one training loop. Chapter:
`book/tasks/question_answering`.

Source: BERT §A.3; SpanBERT's released code. Shapes: B batch, n sequence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.batches import Batches
from spanbert_tutorial.bert import set_dropout
from spanbert_tutorial.engine.loop import History, Recipe, processes, train
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError

Model = TypeVar("Model", bound=nn.Module)


class Input(Protocol):
    """An input of the encoder: ids [n] and segments [n], with [CLS] and [SEP]."""

    ids: np.ndarray
    segments: np.ndarray


@dataclass(frozen=True)
class FineTuning:
    """Settings of a run. batch_size: full windows; shorter ones go together, to as many tokens. length, stride: of the
    windows, in positions and in context pieces. answers_only: whether windows that miss a question's answer are left
    out; a model that is to see when there is none needs them."""

    epochs: float = 2.0
    batch_size: int = 32
    peak_learning_rate: float = 5e-4
    length: int = 256
    stride: int = 128
    seed: int = 0
    dropout: float = 0.1
    answers_only: bool = False

    def recipe(self, tokens: int) -> Recipe:
        """AdamW, one tenth of the steps to warm up, as in SpanBERT's released code; β₂ = 0.999 as there. tokens: of all
        windows. Raises InputError when there are none."""
        if not tokens:
            raise InputError("there is nothing to train on: give at least one question or example.")
        steps = max(1, round(self.epochs * tokens / (self.batch_size * self.length)))
        return Recipe(steps, self.peak_learning_rate, max(1, steps // 10), betas=(0.9, 0.999), epsilon=1e-8)


def stacked(some: Sequence[Input], pad_id: int) -> dict[str, Tensor]:
    """ids, segments int64 [B,n] and attention_mask bool [B,n] of inputs, padded on the right."""
    lengths = np.array([len(one.ids) for one in some])
    shape = len(some), lengths.max()
    ids, segments = np.full(shape, pad_id), np.zeros(shape, dtype=np.int64)
    for row, one in enumerate(some):
        ids[row, : lengths[row]], segments[row, : lengths[row]] = one.ids, one.segments
    arrays = {"ids": ids, "segments": segments, "attention_mask": np.arange(shape[1]) < lengths[:, None]}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def one_process() -> None:
    """Raises InputError in one of several processes."""
    if processes().num_processes > 1:
        raise InputError("fine-tuning runs in one process: start it without torchrun or accelerate launch.")


def fit(
    head: Callable[[], Model],
    data,
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple[Model, History]:
    """Trains the model that `head` gives: an encoder under a new head, or one of before, to go on with. data: in the
    form that `batches.Batches` draws from. Raises InputError in one of several processes."""
    one_process()
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = head()
        set_dropout(model, settings.dropout)
        batches = Batches(data, np.random.default_rng(settings.seed))
        history = train(model, batches, settings.recipe(int(sum(data.lengths()))), snapshots=snapshots)
    return model, history
