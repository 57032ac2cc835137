"""What a second task brings, beside the masked language model: its targets, its head, its loss, its
names. Chapter: `book/spanbert/pretraining_spanbert`.

A task is one class in one file (`boundary`, `sentence_pairs`); the table of objectives names it.
Everything else, from batches to checkpoints and the printed report, goes through these methods.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.text.encoding import EncodedCorpus


class AuxiliaryObjective:
    """Base of the second tasks.

    name: of the head in the model, and of its columns in a batch: `NAME_batch`, `NAME_labels`,
    `NAME_…` with one row a target (the first is the row of the batch, the second what is to be
    predicted), or one column `NAME` with a label for each row of the batch. loss_name: of its loss
    in figures. paired: whether it needs pairs of segments. counted: what the loss is a mean over,
    in one word; explained: what such a thing is, if that has to be said. chance: the loss of
    guessing at random, in nats and in words; None where the tables of `unigram_baselines` tell
    more. per_masked_token: whether its trained sum is divided by the number of masked tokens, not
    by that of its targets. weight_names: pairs (name here, name in a checkpoint) of what its
    weights begin with.

    Positions count inside a row: of several processes each takes its own rows. A target with the
    label −100 must cost nothing: batches of a fixed shape are padded with such targets.
    """

    name: ClassVar[str]
    loss_name: ClassVar[str]
    paired: ClassVar[bool] = False
    counted: ClassVar[str] = "target"
    explained: ClassVar[str] = ""
    chance: ClassVar[tuple[float, str] | None] = None
    per_masked_token: ClassVar[bool] = False

    @property
    def weight_names(self) -> tuple[tuple[str, str], ...]:
        return ((f"{self.name}.", f"heads.{self.name}."),)

    def pairs(self, corpus: EncodedCorpus, max_tokens: int, rng: np.random.Generator) -> Any:
        """The pairs of segments that it needs (`sentence_pairs.Pairs`), if it is `paired`."""
        raise NotImplementedError

    def head(self, hidden_size: int, embedding_weight: Tensor) -> nn.Module:
        """A new head. embedding_weight: [V,H], the word embeddings, for a head that predicts
        tokens."""
        raise NotImplementedError

    def targets(
        self, segments: Sequence[MaskedBlocks], labels: np.ndarray | None
    ) -> dict[str, Tensor]:
        """Its tensors of a batch. segments: the first ones of all rows, and the second ones if
        there are any; labels: int [B], those of the pairs."""
        raise NotImplementedError

    def has_targets(self, batch: dict[str, Tensor]) -> bool:
        """Whether these batches were made for it; a model may be measured on others."""
        return self.name in batch or f"{self.name}_batch" in batch

    def count(self, batch: dict[str, Tensor]) -> int:
        """How many targets a batch has."""
        return len(batch[self.name if self.name in batch else f"{self.name}_batch"])

    def loss(self, head: nn.Module, hidden_states: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """The sum over the targets, in nats, a scalar. hidden_states: [B,n,H]."""
        raise NotImplementedError

    def predicted_tokens(self, batch: dict[str, Tensor]) -> tuple[np.ndarray, np.ndarray] | None:
        """(positions, ids) of its targets in the model's input, int [t] each, or None when it
        predicts no tokens."""
        return None

    def predictions(
        self, head: nn.Module, hidden_states: Tensor, masked: np.ndarray, ids: np.ndarray
    ) -> dict[int, Tensor]:
        """For each place of one block that it predicts the logits [V]. hidden_states: [1,n + 2,H];
        masked: bool [n]."""
        return {}
