"""What an encoder takes in: [CLS] and [SEP] around segments, three embeddings added. Chapter: `book/bert/inputs`.

Source: BERT §3, figure 2. Shapes: B batch, n sequence, H hidden, t chosen tokens.
"""

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.config import EncoderConfig
from spanbert_tutorial.wordpiece import WordPiece

NO_TARGET = -100  # where nothing is to be predicted; PyTorch's cross-entropy passes over it


class Embeddings(nn.Module):
    """Word + segment + position vectors, added, then LayerNorm and dropout. BERT §3, figure 2."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segments = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        segment = self.segments.weight[0] if segments is None else self.segments(segments)
        position = self.positions.weight[: ids.shape[1]]  # [n,H], the same for every row
        return self.dropout(self.layer_norm(self.words(ids) + segment + position))  # [B,n,H]


def assemble(segments: list[tuple], wordpiece: WordPiece) -> dict[str, Tensor]:
    """[CLS] first segment [SEP] (second segment [SEP]), padded; with the places and originals of the chosen tokens.

    Returns ids, segments int64 [B, n], attention_mask bool [B, n], masked_batch, masked_position, masked_ids int64 [t].
    """
    lengths = sum(part[3] for part in segments) + 1 + len(segments)  # [B]
    shape = (len(lengths), int(lengths.max()))
    ids, kinds = np.full(shape, wordpiece.pad_id, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    originals = np.full(shape, NO_TARGET, dtype=np.int64)
    ids[:, 0] = wordpiece.cls_id
    for row in range(len(lengths)):
        at = 1
        for kind, (original, corrupted, selected, real) in enumerate(segments):
            n = real[row]
            ids[row, at : at + n] = corrupted[row, :n]
            originals[row, at : at + n] = np.where(selected[row, :n], original[row, :n], NO_TARGET)
            ids[row, at + n] = wordpiece.sep_id
            kinds[row, at : at + n + 1] = kind
            at += n + 1
    masked_batch, masked_position = np.nonzero(originals != NO_TARGET)
    arrays = {
        "ids": ids,
        "segments": kinds,
        "attention_mask": np.arange(shape[1]) < lengths[:, None],
        "masked_batch": masked_batch,
        "masked_position": masked_position,
        "masked_ids": originals[masked_batch, masked_position],
    }
    return {name: torch.from_numpy(value) for name, value in arrays.items()}
