"""Looking inside a model when its loss leaves the unigram entropy. Chapter:
`book/bert/pretraining`.

What shortens the wait was tried by the experiment `leaving_the_plateau`; the run that the chapter
opens with was recorded by `inside_a_run`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spanbert_tutorial.bert.inputs import masked_labels
from spanbert_tutorial.bert.masking import MaskingScheme
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import (
    PretrainingModel,
    masked_logits,
)
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run

Batch = dict[str, Tensor]


class EveryEighth(MaskingScheme):
    """Chooses one token in eight, from a random first one: no two chosen tokens are near, so what
    stands beside one of them can be changed without touching another."""

    def select(
        self, word_starts: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """bool [n]; `word_starts` counts only for its length."""
        return np.arange(len(word_starts)) % 8 == rng.integers(8)


def visible(batch: Batch, wordpiece: WordPiece) -> Tensor:
    """bool [B, n]: real tokens, so neither [MASK] nor [CLS], [SEP] or padding."""
    w = wordpiece
    special = torch.tensor([w.mask_id, w.cls_id, w.sep_id, w.pad_id])
    return ~torch.isin(batch["input_ids"], special)


def mask_at(batch: Batch, distance: int, wordpiece: WordPiece) -> Batch:
    """Masks what is `distance` before or after a masked token, too."""
    near = torch.zeros_like(batch["attention_mask"], dtype=torch.bool)
    rows, positions = (batch["labels"] != -100).nonzero(as_tuple=True)
    last = near.shape[1] - 1
    for side in (-distance, distance):
        # outside the input is [CLS], [SEP] or padding, which stay
        near[rows, (positions + side).clamp(0, last)] = True
    near &= visible(batch, wordpiece)
    ids = batch["input_ids"].masked_fill(near, wordpiece.mask_id)
    return {**batch, "input_ids": ids}


def shuffle_visible(
    batch: Batch, wordpiece: WordPiece, rng: np.random.Generator
) -> Batch:
    """The batch with the visible tokens of each block in random order."""
    ids = batch["input_ids"].clone()
    for row, places in zip(ids, visible(batch, wordpiece), strict=True):
        order = rng.permutation(int(places.sum()))
        row[places] = row[places][torch.from_numpy(order)]
    return {**batch, "input_ids": ids}


def versions(
    batches: Sequence[Batch], wordpiece: WordPiece
) -> dict[str, list[Batch]]:
    """The batches as they are, and with some of the context gone."""
    rng = np.random.default_rng(1)
    return {
        "as it is": list(batches),
        "neighbors masked": [
            mask_at(batch, 1, wordpiece) for batch in batches
        ],
        "others masked": [
            mask_at(batch, 3, wordpiece) for batch in batches
        ],
        "no order": [
            shuffle_visible(batch, wordpiece, rng) for batch in batches
        ],
    }


def held_out_batches(run: Run, text: EncodedText) -> list[Batch]:
    """512 held-out blocks of the run's length, every eighth token masked and none of them left
    visible or replaced."""
    objective = Objective(EveryEighth(), "token").mask_only
    data = PretrainingData(
        text.held_out, text.wordpiece, objective, run.max_length, 128
    )
    return list(islice(data.epoch(np.random.default_rng(0)), 4))


def around_masks(batches: Sequence[Batch]) -> dict[str, np.ndarray]:
    """Of all masked tokens: `position`, `id`, and the ids `left` and `right` of it, int [t] each."""
    parts = []
    for batch in batches:
        ids, labels = batch["input_ids"], batch["labels"]
        row, at = (labels != -100).nonzero(as_tuple=True)
        beside = ids[row, at - 1], ids[row, at + 1]
        parts.append(torch.stack([at, labels[row, at], *beside]))
    names = ("position", "id", "left", "right")
    columns = torch.cat(parts, dim=1).numpy()
    return dict(zip(names, columns, strict=True))


@torch.no_grad()
def token_losses(
    model: PretrainingModel, batches: Sequence[Batch]
) -> np.ndarray:
    """float [t]: −ln P of each chosen token of all batches by the masked language model head, in
    nats."""
    device = next(model.parameters()).device
    losses = []
    for batch in batches:
        batch = {name: v.to(device) for name, v in batch.items()}
        logits = masked_logits(model, model.encode(batch), batch)
        labels = masked_labels(batch)
        losses.append(F.cross_entropy(logits, labels, reduction="none"))
    return torch.cat(losses).cpu().numpy()


def watched(
    batches: Iterable[dict],
    at: Sequence[int],
    look: Callable[[int], None],
) -> Iterator[dict]:
    """The same batches; `look(step)` is called before the batch after step `step`, for each step in
    `at`."""
    for step, batch in enumerate(batches):
        if step in at:
            look(step)
        yield batch


class BigramModel:
    """Predicts a token from its neighbors, by counts; no network.

    Both together: the counts of what was seen between the two, with the weight of `trust` more
    spread like P(x | left) · P(x | right) / P(x); the bigrams likewise on P(x)."""

    def __init__(
        self, ids: np.ndarray, vocabulary: int, trust: float = 5.0
    ) -> None:
        V, ids = vocabulary, ids.astype(np.int64)
        self.V, self.trust = V, trust
        unigrams = np.bincount(ids, minlength=V) + 0.5
        self.unigram = unigrams / unigrams.sum()
        bigrams = np.bincount(ids[:-1] * V + ids[1:], minlength=V * V)
        self.bigrams = bigrams.reshape(V, V)  # [left, right]
        around = ids[:-2] * V + ids[2:]
        order = np.argsort(around, kind="stable")
        self.around, self.middle = around[order], ids[1:-1][order]

    def smoothed(
        self, counts: np.ndarray, prior: np.ndarray
    ) -> np.ndarray:
        total = counts.sum() + self.trust
        return (counts + self.trust * prior) / total

    def probabilities(
        self, left: int | None, right: int | None
    ) -> np.ndarray:
        """float [V]; None where a neighbor is not to be used."""
        p = after = before = self.unigram
        if left is not None:
            after = self.smoothed(self.bigrams[left], p)
        if right is not None:
            before = self.smoothed(self.bigrams[:, right], p)
        both = after * before / p
        both /= both.sum()
        if left is None or right is None:
            return both
        ends = left * self.V + right + np.arange(2)
        first, last = np.searchsorted(self.around, ends)
        seen = np.bincount(self.middle[first:last], minlength=self.V)
        return self.smoothed(seen, both)
