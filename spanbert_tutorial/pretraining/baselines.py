"""What frequencies alone reach: two tables without any context, scored on the very tokens that a
model is scored on. Chapter: `book/spanbert/pretraining_spanbert`.

"Learned from context" means a lower loss than both. The first table knows how frequent a token is,
the second one how frequent it is at each position of a block: the first tokens of a block are often
the first ones of a sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import PretrainingData, slice_and_pad

# how many tokens' worth of the first table each row of the second begins with
STRENGTHS = 4.0 ** np.arange(1, 8)
BLOCKS = 4_096  # at a time


@dataclass(frozen=True)
class UnigramBaselines:
    """Log-probabilities in nats. frequency: float [V]; by_position: float [n,V], position 0 is
    [CLS]."""

    frequency: np.ndarray
    by_position: np.ndarray

    def losses(self, positions: np.ndarray, ids: np.ndarray) -> dict[str, float]:
        """Mean loss of each table, in nats, on the tokens `ids` [t] at `positions` [t] of the
        model's input."""
        if not len(ids):
            return {"frequency": float("nan"), "by_position": float("nan")}
        tables = {"frequency": self.frequency[ids], "by_position": self.by_position[positions, ids]}
        return {name: -float(values.mean()) for name, values in tables.items()}


def unigram_baselines(data: PretrainingData) -> UnigramBaselines:
    """Both tables of the blocks of training text. The token v at position i has (c_iv + s · p_v) /
    (c_i + s), where c are counts, p the first table, and s is the one of `STRENGTHS` that suits the
    counts best when each token is left out in turn; p itself is (c_v + 1) / (c + V). Raises
    InputError when there is no text."""
    kinds = len(data.wordpiece)
    tally = np.zeros(data.max_length * kinds, dtype=np.int64)
    for positions, ids in places(data):
        tally += np.bincount(positions * kinds + ids, minlength=len(tally))
    if not (total := tally.sum()):
        raise InputError("the text has no block: give more text.")
    counts = tally.reshape(data.max_length, kinds)
    frequency = (counts.sum(0) + 1) / (total + kinds)
    seen = counts.sum(1, keepdims=True)
    row, kind = counts.nonzero()
    found = counts[row, kind]

    def left_out(strength: float) -> float:
        """Sum of log-probabilities of all tokens, each from the counts without itself."""
        p = (found - 1 + strength * frequency[kind]) / (seen[row, 0] - 1 + strength)
        return float((found * np.log(p)).sum())

    best = max(STRENGTHS, key=left_out)
    return UnigramBaselines(np.log(frequency), np.log((counts + best * frequency) / (seen + best)))


def places(data: PretrainingData) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(positions, ids) of all tokens, many blocks at a time, [CLS] and [SEP] left out."""
    for first in range(0, len(data), BLOCKS):
        start = np.array(1)  # behind [CLS]; then [B,1]
        for ranges in data.segments:
            some = ranges[first : first + BLOCKS]
            ids, lengths = slice_and_pad(data.corpus.ids, some, data.wordpiece.pad_id)
            at = np.broadcast_to(start + np.arange(ids.shape[1]), ids.shape)
            real = np.arange(ids.shape[1]) < lengths[:, None]
            yield at[real], ids[real]
            start = start + lengths[:, None] + 1  # behind the [SEP] of this segment
