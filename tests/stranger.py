"""What somebody adds who reads "How the house is built": a masking scheme and a second task, one
class each."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.masking import Blocks, MaskingScheme, TokenMasking


@dataclass(frozen=True)
class LabeledMasking(MaskingScheme):
    """Whole labeled spans in random order while they fit, then single tokens that are not the
    commonest one."""

    def select_blocks(self, blocks: Blocks, rng: np.random.Generator) -> np.ndarray:
        selected = np.zeros(blocks.ids.shape, dtype=bool)
        for row, first, last, _ in rng.permutation(blocks.labeled):
            if selected[row].sum() + last - first < self.budget(blocks.lengths[row]):
                selected[row, first : last + 1] = True
        common = np.bincount(blocks.ids.ravel()).argmax()
        others = TokenMasking(self.mask_ratio).select_batch(blocks.word_starts, blocks.lengths, rng)
        none = ~selected.any(axis=1, keepdims=True)
        return selected | (none & others & (blocks.ids != common))


class LongBlock(AuxiliaryObjective):
    """Is the block longer than half of those beside it? From the mean of all states."""

    name = "long_block"
    loss_name = "long"
    counted = "block"

    def head(self, hidden_size, embedding_weight):
        return nn.Linear(hidden_size, 2)

    def targets(self, segments, labels):
        lengths = segments[0].lengths
        return {self.name: torch.from_numpy((lengths > np.median(lengths)).astype(np.int64))}

    def count(self, batch):
        return len(batch[self.name])

    def loss(self, head, hidden, batch):
        return F.cross_entropy(head(hidden.mean(dim=1)), batch[self.name], reduction="sum")
