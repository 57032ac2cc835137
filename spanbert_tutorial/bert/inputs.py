"""What an encoder takes in: [CLS] and [SEP] around segments, three embeddings added. Chapter:
`book/bert/wordpiece`.

Source: BERT §3, figure 2. Shapes: B batch, n sequence, H hidden, t chosen tokens.
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
    """Word + segment + position vectors, added, then LayerNorm and dropout. BERT §3, figure 2.

    width: of the vectors; H by default, as in BERT. A relative with narrower ones makes them H wide
    itself."""

    def __init__(self, config: EncoderConfig, width: int | None = None) -> None:
        super().__init__()
        width = width or config.hidden_size
        self.words = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.segments = nn.Embedding(config.type_vocab_size, width)
        self.layer_norm = nn.LayerNorm(width, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, ids: Tensor, segments: Tensor | None) -> Tensor:
        segment = self.segments.weight[0] if segments is None else self.segments(segments)
        position = self.positions.weight[: ids.shape[1]]  # [n,H], the same for every row
        return self.dropout(self.layer_norm(self.words(ids) + segment + position))  # [B,n,H]


def frame(
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray | None = None,
    *,
    cls_id: int,
    sep_id: int,
) -> tuple[np.ndarray, np.ndarray]:
    """[CLS] first sentence [SEP] (second sentence [SEP]): ids and segments, both int64 [n]. BERT
    §3, figure 2.

    Each [SEP] belongs to the sentence that it closes, [CLS] to the first.
    """
    parts = [[cls_id], first, [sep_id]] + ([] if second is None else [second, [sep_id]])
    ids = np.concatenate(parts, dtype=np.int64, casting="unsafe")  # an empty list counts as floats
    segments = np.zeros_like(ids)
    segments[len(first) + 2 :] = 1
    return ids, segments


def assemble(segments: Sequence[MaskedBlocks], wordpiece: WordPiece) -> dict[str, Tensor]:
    """A batch of framed inputs, padded on the right; with the places and originals of the chosen
    tokens.

    segments: the first sentences of all rows, and the second ones if there are any. Returns ids,
    segments int64 [B, n], attention_mask bool [B, n], masked_batch, masked_position, masked_ids
    int64 [t].
    """
    lengths = np.sum([real for *_, real in segments], axis=0) + 1 + len(segments)  # [B]
    shape = (len(lengths), int(lengths.max()))
    ids = np.full(shape, wordpiece.pad_id, dtype=np.int64)
    kinds = np.zeros(shape, dtype=np.int64)
    originals = np.full(shape, NO_TARGET, dtype=np.int64)
    for row, n in enumerate(lengths):
        seen = []
        targets = []
        for original, corrupted, selected, real in segments:
            here = (row, slice(real[row]))  # without padding
            seen.append(corrupted[here])
            targets.append(np.where(selected[here], original[here], NO_TARGET))
        ids[row, :n], kinds[row, :n] = frame(
            *seen, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id
        )
        originals[row, :n], _ = frame(
            *targets, cls_id=NO_TARGET, sep_id=NO_TARGET
        )  # never to be predicted
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
