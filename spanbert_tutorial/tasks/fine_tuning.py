"""What all fine-tuning shares, whatever the head: settings, batches of inputs, the training.
Chapter: `book/tasks/question_answering`.

Source: BERT §A.3; SpanBERT's released code. Shapes: B batch, n sequence.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from spanbert_tutorial.bert.encoder import BertEncoder, initialize, set_dropout
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.device import seeded, steps_between_readings
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.hooks import Hook
from spanbert_tutorial.engine.processes import processes
from spanbert_tutorial.engine.snapshots import Snapshots, long_run
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.batches import INPUTS, Batches
from spanbert_tutorial.pretraining.checkpoints import check_vocabulary
from spanbert_tutorial.pretraining.train import TrainingConfig, TrainingState, train

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class FineTuning:
    """Settings of a run. max_length: of an input, in positions. batch_size: inputs of `max_length`
    per batch; a batch of shorter ones has more of them, for about the same number of tokens.
    task_learning_rate: peak learning rate of the layers after the encoder, if it has another."""

    epochs: float = 2.0
    batch_size: int = 32
    peak_learning_rate: float = 5e-4
    max_length: int = 256
    seed: int = 0
    dropout: float = 0.1
    task_learning_rate: float | None = None

    def recipe(self, tokens: int) -> TrainingConfig:
        """AdamW with β₂ = 0.999, warming up for a tenth of the steps, as in SpanBERT's released code.
        tokens: of all inputs. Raises InputError when there are none."""
        require(tokens, "there is nothing to train on: give at least one question or example.")
        steps = max(1, round(self.epochs * tokens / (self.batch_size * self.max_length)))
        return TrainingConfig(
            steps,
            self.peak_learning_rate,
            warmup_steps=max(1, steps // 10),
            betas=(0.9, 0.999),
            epsilon=1e-8,
            log_every=steps_between_readings(),
        )


def stacked(inputs: Sequence[Any], pad_id: int) -> dict[str, Tensor]:
    """input_ids, token_type_ids int64 [B,n] and attention_mask bool [B,n], padded on the right.
    inputs: each with `ids` [n] and `segments` [n]."""
    ids = padded([one.ids for one in inputs], pad_id)
    lengths = torch.tensor([len(one.ids) for one in inputs])
    return {
        "input_ids": ids,
        "token_type_ids": padded([one.segments for one in inputs], 0),
        "attention_mask": torch.arange(ids.shape[1]) < lengths[:, None],
    }


def padded(arrays: Sequence[Any], value: int) -> Tensor:
    """int64 [B, longest, …]: the arrays with `value` after the rows of each."""
    tensors = [torch.as_tensor(array, dtype=torch.int64) for array in arrays]
    return pad_sequence(tensors, batch_first=True, padding_value=value)


class Data:
    """Training inputs with their targets, for `batches.Batches` and `fit`. targets: an array with
    one for each input, or whatever `batch` of a subclass puts in its place. The model finds them
    under `target_field`; each loss is a mean over those that are not NO_TARGET. facts: what the
    head and its answers depend on, ready for JSON, such as labels."""

    by_length = True  # inputs of about the same length share a batch
    target_field = "label"
    collate: Callable[[Sequence[Any], int], dict[str, Tensor]] = staticmethod(stacked)

    def __init__(
        self,
        inputs: Sequence[Any],
        targets: Any,
        wordpiece: WordPiece,
        settings: FineTuning,
        **facts: Any,
    ) -> None:
        self.inputs, self.targets, self.facts = inputs, targets, facts
        self.wordpiece = wordpiece
        self.batch_size, self.max_length = settings.batch_size, settings.max_length

    def __len__(self) -> int:
        return len(self.inputs)

    def lengths(self) -> np.ndarray:
        """Tokens of each input, int [inputs]."""
        return np.array([len(one.ids) for one in self.inputs])

    def padded(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Inputs, padded to a multiple of 8 but not beyond `max_length`: on a CPU, bfloat16 compiles
        kernels for each new shape. A subclass with a target for each token pads it to the same
        length, as `TaggingData` does."""
        pad_id = self.wordpiece.pad_id
        batch = self.collate([self.inputs[row] for row in rows], pad_id)
        n = batch["input_ids"].shape[-1]
        more = min(-n % 8, max(0, self.max_length - n))
        for name in batch.keys() & INPUTS:
            value = pad_id if name == "input_ids" else 0
            batch[name] = F.pad(batch[name], (0, more), value=value)
        return batch

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """Inputs and targets; nothing is drawn."""
        return self.padded(rows) | {self.target_field: torch.from_numpy(self.targets[rows])}

    def share(self, batch: dict[str, Tensor], process: int, processes: int) -> dict[str, Tensor]:
        """The rows process, process + processes, … of a batch, and `weight`: their targets divided
        by the average per process, so that the mean of the processes' losses is that of the batch. A
        process without a row computes the first one with weight 0, to stay in step."""
        part = {name: rows[process::processes] for name, rows in batch.items()}
        own, all_ = (int((one[self.target_field] != NO_TARGET).sum()) for one in (part, batch))
        if not own:
            part = {name: rows[:1] for name, rows in batch.items()}
        return part | {"weight": torch.tensor(own * processes / all_)}


def check_start(encoder: BertEncoder, wordpiece: WordPiece, settings: FineTuning) -> None:
    """Raises InputError for inputs or a vocabulary that do not fit the encoder."""
    limit = encoder.config.max_position_embeddings
    wrong = f"windows of {settings.max_length} positions are longer than the encoder's {limit}"
    require(settings.max_length <= limit, f"{wrong}: give less.")
    check_vocabulary(wordpiece, encoder)


def make_room(encoder: BertEncoder, tokens: int) -> None:
    """Gives the encoder, in place, an embedding for each of so many tokens: the new ones are drawn
    as at the start of pre-training. The released code uses BERT's 99 unused tokens instead."""
    table = encoder.embeddings.word_embeddings.weight
    if tokens <= len(table):
        return
    encoder.config = replace(encoder.config, vocab_size=tokens)
    larger = nn.Embedding(tokens, table.shape[1], device=table.device)
    initialize(larger, encoder.config.initializer_range)
    larger.weight.data[: len(table)] = table.data
    encoder.embeddings.word_embeddings = larger


def fit(
    make_model: Callable[[], Model],
    data: Data,
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple[Model, History]:
    """Trains what `make_model` returns: an encoder and a head.

    Several processes share each batch; without dropout they compute what a single one computes,
    with dropout each drops other units. Returns the model and the history of its losses."""
    rng = np.random.default_rng(settings.seed)
    recipe = settings.recipe(int(sum(data.lengths())))
    with seeded(settings.seed):
        model = make_model()  # the same in all processes
        set_dropout(model, settings.dropout)
        learner = one_of_several(model, settings.seed)
        batches = Batches(data, rng)
        with long_run(batches, snapshots) as (stream, hooks):
            return model, train(learner, stream, recipe, [SecondRate(model, settings), *hooks])


class SecondRate(Hook):
    """Gives the layers after the encoder the learning rate of the settings, if they have one."""

    def __init__(self, model: Any, settings: FineTuning) -> None:
        self.model, self.rate = model, settings.task_learning_rate

    def on_start(self, state: TrainingState) -> None:
        if self.rate is None:
            return
        encoder = set(self.model.encoder.parameters())
        for group in list(state.optimizer.param_groups):
            after = [weight for weight in group["params"] if weight not in encoder]
            group["params"] = [weight for weight in group["params"] if weight in encoder]
            new = {"params": after, "initial_lr": self.rate, "lr": 0.0}  # as warm-up begins
            state.optimizer.add_param_group(group | new)
            state.schedule.base_lrs.append(self.rate)
            state.schedule.lr_lambdas.append(state.schedule.lr_lambdas[0])


# --- several processes --------------------------------------------------------------


def one_of_several(model: nn.Module, seed: int) -> nn.Module:
    """The model as it learns in this process: itself where there is only one."""
    process = processes()
    if process.process_index > 0:
        torch.manual_seed(seed + process.process_index)  # other units are dropped
    return model if process.num_processes == 1 else Weighted(model)


class Weighted(nn.Module):
    """A model that learns from a shard of a batch: its losses, times the `weight` of the shard."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: loss * batch["weight"] for name, loss in self.model(batch).items()}


def shares(right: int, said: int, wanted: int) -> dict[str, float]:
    """precision, recall and f1 in percent; a share of nothing is 0."""
    return {
        "precision": 100 * right / max(said, 1),
        "recall": 100 * right / max(wanted, 1),
        "f1": 200 * right / max(said + wanted, 1),
    }
