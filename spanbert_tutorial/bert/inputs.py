"""What an encoder takes in: [CLS] and [SEP] around segments, three embeddings added. Chapter:
`book/bert/bert`. Source: BERT §3, figure 2. Shapes: B batch, n sequence, H hidden, t targets.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.bert.wordpiece import WordPiece

NO_TARGET = -100  # where nothing is to be predicted; PyTorch's cross-entropy passes over it


class Embeddings(nn.Module):
    """Word, segment and position vectors, added and normalized.

    BERT §3, figure 2. width: of the vectors, H by default; a relative with narrower ones makes
    them H wide itself."""

    def __init__(
        self, config: EncoderConfig, width: int | None = None
    ) -> None:
        super().__init__()
        width = width or config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, width
        )
        self.token_type_embeddings = nn.Embedding(
            config.type_vocab_size, width
        )
        self.layer_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None
    ) -> Tensor:
        word = self.word_embeddings(input_ids)  # [B,n,H]
        if token_type_ids is None:
            segment = self.token_type_embeddings.weight[0]
        else:
            segment = self.token_type_embeddings(token_type_ids)
        position = self.positions(input_ids)
        return self.dropout(self.layer_norm(word + segment + position))

    def positions(self, input_ids: Tensor) -> Tensor:
        """[n,H], the same for every row."""
        return self.position_embeddings.weight[: input_ids.shape[1]]


def frame(
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray | None = None,
    *,
    cls_id: int,
    sep_id: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Ids and segments of [CLS] first [SEP] (second [SEP]).

    Both int64 [n]. BERT §3, figure 2. Each [SEP] belongs to the sentence that it closes."""
    parts = [[cls_id], first, [sep_id]]
    if second is not None:
        parts += [second, [sep_id]]
    # unsafe: NumPy takes an empty list for one of floats
    ids = np.concatenate(parts, dtype=np.int64, casting="unsafe")
    segments = np.zeros_like(ids)
    segments[len(first) + 2 :] = 1
    return ids, segments


def collate(
    segments: Sequence[MaskedBlocks], wordpiece: WordPiece
) -> dict[str, Tensor]:
    """A batch by the names of `transformers`, padded on the right.

    segments: the first ones of all rows, and the second ones if there are any. All int64 [B,n], but
    attention_mask bool [B,n] and masked_positions int64 [t]: where the flattened batch has labels
    (others are −100), so that no step has to look for them."""
    lengths = np.sum([one.lengths for one in segments], axis=0)
    lengths = lengths + 1 + len(segments)  # [CLS] and each [SEP]
    shape = len(lengths), int(lengths.max())
    input_ids = np.full(shape, wordpiece.pad_id, dtype=np.int64)
    token_type_ids = np.zeros(shape, dtype=np.int64)
    labels = np.full(shape, NO_TARGET, dtype=np.int64)
    for row, n in enumerate(lengths):
        visible, targets = [], []
        for one in segments:
            here = row, slice(one.lengths[row])  # without padding
            masked, ids = one.masked[here], one.ids[here]
            visible.append(one.corrupted[here])
            targets.append(np.where(masked, ids, NO_TARGET))
        input_ids[row, :n], token_type_ids[row, :n] = frame(
            *visible, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id
        )
        # [CLS] and [SEP] are never predicted
        labels[row, :n], _ = frame(
            *targets, cls_id=NO_TARGET, sep_id=NO_TARGET
        )
    arrays = {
        "input_ids": input_ids,
        "token_type_ids": token_type_ids,
        "attention_mask": np.arange(shape[1]) < lengths[:, None],
        "labels": labels,
        "masked_positions": np.flatnonzero(labels != NO_TARGET),
    }
    return {k: torch.from_numpy(v) for k, v in arrays.items()}


def masked_positions(batch: dict[str, Tensor]) -> Tensor:
    """Where the flattened batch has a label, int64 [t]; looked up in a batch of another collator,
    which makes a card wait."""
    if "masked_positions" in batch:
        return batch["masked_positions"]
    return (batch["labels"] != NO_TARGET).flatten().nonzero()[:, 0]


def masked_labels(batch: dict[str, Tensor]) -> Tensor:
    """The original ids of the masked tokens, int64 [t]."""
    return batch["labels"].flatten()[masked_positions(batch)]
