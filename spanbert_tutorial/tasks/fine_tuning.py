"""What fine-tuning has in common, whatever the head: settings, batches of inputs, the one training
loop. Chapter: `book/tasks/question_answering`.

Source: BERT §A.3; SpanBERT's released code. Shapes: B batch, n sequence.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, set_dropout
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.loop import History, Recipe, train
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import Batches

Model = TypeVar("Model", bound=nn.Module)


class Input(Protocol):
    """An input of the encoder: ids [n] and segments [n], with [CLS] and [SEP]."""

    ids: np.ndarray
    segments: np.ndarray


@dataclass(frozen=True)
class FineTuning:
    """Settings of a run. batch_size: full windows; shorter ones go together, to as many tokens.
    length, stride: of the windows, in positions and in context tokens. answers_only: whether
    windows that miss a question's answer are left out; a model that is to see when there is none
    needs them."""

    epochs: float = 2.0
    batch_size: int = 32
    peak_learning_rate: float = 5e-4
    max_length: int = 256
    doc_stride: int = 128
    seed: int = 0
    dropout: float = 0.1
    answers_only: bool = False

    def recipe(self, tokens: int) -> Recipe:
        """AdamW, one tenth of the steps to warm up, as in SpanBERT's released code; β₂ = 0.999 as
        there. tokens: of all windows. Raises InputError when there are none."""
        if not tokens:
            raise InputError("there is nothing to train on: give at least one question or example.")
        steps = max(1, round(self.epochs * tokens / (self.batch_size * self.max_length)))
        return Recipe(
            steps, self.peak_learning_rate, max(1, steps // 10), betas=(0.9, 0.999), epsilon=1e-8
        )


def stacked(some: Sequence[Input], pad_id: int) -> dict[str, Tensor]:
    """ids, segments int64 [B,n] and attention_mask bool [B,n] of inputs, padded on the right."""
    lengths = np.array([len(one.ids) for one in some])
    shape = len(some), lengths.max()
    ids = np.full(shape, pad_id)
    segments = np.zeros(shape, dtype=np.int64)
    for row, one in enumerate(some):
        ids[row, : lengths[row]], segments[row, : lengths[row]] = one.ids, one.segments
    arrays = {
        "ids": ids,
        "segments": segments,
        "attention_mask": np.arange(shape[1]) < lengths[:, None],
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def check_start(encoder: BertEncoder, wordpiece: WordPiece, settings: FineTuning) -> None:
    """Raises InputError for inputs longer than the encoder's, and for a vocabulary that does not
    fit it."""
    if settings.max_length > (most := encoder.config.max_position_embeddings):
        raise InputError(
            f"windows of {settings.max_length} positions are longer than the encoder's {most}: give "
            f"less."
        )
    check_vocabulary(wordpiece, encoder)


def check_vocabulary(wordpiece: WordPiece, encoder: BertEncoder) -> None:
    """Raises InputError for a vocabulary with more tokens than the encoder has, and warns of one
    with far fewer."""
    tokens = len(wordpiece)
    room = encoder.config.vocab_size
    if tokens > room:
        raise InputError(
            f"the vocabulary has {tokens:,} pieces and the model {room:,}: give the vocabulary "
            f"that it "
            "was trained with."
        )
    if tokens + 128 <= room:  # some models pad to a round number
        warnings.warn(
            f"the vocabulary has only {tokens:,} pieces and the model {room:,}: most likely it "
            f"is not the "
            "one of the training, and then the answers are of no use; give that one.",
            UserWarning,
            stacklevel=4,
        )


def fit(
    head: Callable[[], Model],
    data,
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple[Model, History]:
    """Trains the model that `head` gives: an encoder under a new head, or one of before, to go on
    with. data: in the form that `batches.Batches` draws from. Several processes share each batch;
    without dropout they give what one gives, with it each drops other places."""
    process = processes()
    rng = np.random.default_rng(settings.seed)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        model = head()  # the same in all processes
        if process.process_index > 0:
            torch.manual_seed(settings.seed + process.process_index)
        set_dropout(model, settings.dropout)
        recipe = settings.recipe(int(sum(data.lengths())))
        learner = model if process.num_processes == 1 else Weighted(model)
        history = train(learner, Batches(data, rng, weighted_shard), recipe, snapshots=snapshots)
    return model, history


# --- several processes --------------------------------------------------------------


def weighted_shard(batch: dict[str, Tensor], process: int, processes: int) -> dict[str, Tensor]:
    """The rows process, process + processes, … of a batch, and `weight`: how many of its targets
    are among them, divided by how many a process has on average. A loss is a mean over targets; so
    weighted, the mean of the processes' losses is that of the whole batch. A process for which no
    row is left computes the first one with weight 0, because all have to compute in step."""
    part = {name: rows[process::processes] for name, rows in batch.items()}
    mine = targets(part)
    all_targets = targets(batch)
    if not mine:
        part = {name: rows[:1] for name, rows in batch.items()}
    return part | {"weight": torch.tensor(mine * processes / all_targets)}


def targets(batch: dict[str, Tensor]) -> int:
    """How many targets the losses of a batch are means over: those of the first field that no input
    is."""
    wanted = next(
        rows for name, rows in batch.items() if name not in ("ids", "segments", "attention_mask")
    )
    return int((wanted != NO_TARGET).sum())


class Weighted(nn.Module):
    """A model that learns from its share of a batch: its losses, times the `weight` of the
    share."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: loss * batch["weight"] for name, loss in self.model(batch).items()}
