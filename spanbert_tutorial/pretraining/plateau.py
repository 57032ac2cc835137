"""Looking inside a model when its loss leaves the unigram entropy. Chapter:
`book/bert/pretraining`.

What shortens the wait was tried by the experiment `leaving_the_plateau`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import masked_labels, masked_positions
from spanbert_tutorial.bert.masking import MaskingScheme
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.model import PretrainingModel, masked_logits


@dataclass(frozen=True)
class EveryNth(MaskingScheme):
    """Chooses one token in `every`, from a random first one: no two chosen tokens are near, so what
    stands beside one of them can be changed without touching another."""

    every: int = 8

    def select_batch(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """bool [B, n]; `word_starts` counts only for its shape."""
        places = np.arange(word_starts.shape[1])
        first = rng.integers(self.every, size=(len(lengths), 1))
        return (places % self.every == first) & (places < lengths[:, None])


def visible(batch: dict[str, Tensor], wordpiece: WordPiece) -> Tensor:
    """bool [B, n]: real tokens, so neither [MASK] nor [CLS], [SEP] or padding."""
    special = torch.tensor(
        [getattr(wordpiece, name + "_id") for name in ("mask", "cls", "sep", "pad")]
    )
    return ~torch.isin(batch["input_ids"], special)


def hide_at(batch: dict[str, Tensor], distance: int, wordpiece: WordPiece) -> dict[str, Tensor]:
    """The batch with the tokens `distance` places before and after each chosen one replaced by
    [MASK] as well."""
    near = torch.zeros_like(batch["attention_mask"])
    rows, positions = (batch["labels"] != -100).nonzero(as_tuple=True)
    last = batch["input_ids"].shape[1] - 1
    # a place outside falls on the edge: [CLS], [SEP] or padding, which stay
    for side in (-distance, distance):
        near[rows, (positions + side).clamp(0, last)] = True
    hidden = near & visible(batch, wordpiece)
    return {**batch, "input_ids": batch["input_ids"].masked_fill(hidden, wordpiece.mask_id)}


def shuffle_visible(
    batch: dict[str, Tensor], wordpiece: WordPiece, rng: np.random.Generator
) -> dict[str, Tensor]:
    """The batch with the visible tokens of each block in random order."""
    ids = batch["input_ids"].clone()
    for row, places in zip(ids, visible(batch, wordpiece), strict=True):
        row[places] = row[places][torch.from_numpy(rng.permutation(int(places.sum())))]
    return {**batch, "input_ids": ids}


@torch.no_grad()
def token_losses(model: PretrainingModel, batches: Sequence[dict[str, Tensor]]) -> np.ndarray:
    """float [t]: −ln P of each chosen token of all batches by the masked language model head, in
    nats."""
    device = next(model.parameters()).device
    losses = []
    for batch in batches:
        batch = {name: value.to(device) for name, value in batch.items()}
        logits = masked_logits(model, model.encode(batch), batch)  # [t,V]
        losses.append(
            nn.functional.cross_entropy(logits, masked_labels(batch), reduction="none").cpu()
        )
    return torch.cat(losses).numpy()


@torch.no_grad()
def predictions(
    model: PretrainingModel, batch: dict[str, Tensor], places: Sequence[int], most: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the model would fill into some of the chosen places. places: which of the t chosen
    tokens, k of them. Returns the `most` top tokens, int [k, most], their probabilities,
    float [k, most], and those of the right tokens, float [k]."""
    device = next(model.parameters()).device
    hidden = model.encode({name: value.to(device) for name, value in batch.items()})
    asked = masked_positions(batch)[list(places)]
    p = model.masked_language_model(hidden.flatten(0, 1)[asked]).softmax(-1).cpu()  # [k, V]
    top = p.topk(most)
    right = p.gather(1, masked_labels(batch)[list(places)][:, None])[:, 0]
    return top.indices.numpy(), top.values.numpy(), right.numpy()


def attention_by_distance(
    encoder: BertEncoder, batch: dict[str, Tensor], most: int = 4
) -> np.ndarray:
    """float [L, A, 2 · most + 1]: the mean weight that chosen places give to the place at distance
    −most … most; places outside the input are left out. An even spread gives about 1 / (length of
    the input) everywhere."""
    device = encoder.embeddings.words.weight.device
    names = ("input_ids", "token_type_ids", "attention_mask")
    inputs = {name: batch[name].to(device) for name in names}
    maps = torch.stack(encoder.attention_maps(**inputs), dim=2).cpu()  # [B, A, L, n, n]
    masked_rows, positions = (batch["labels"] != -100).nonzero(as_tuple=True)
    lengths = batch["attention_mask"].sum(1)
    means = []
    for distance in range(-most, most + 1):
        place = positions + distance
        real = (place >= 0) & (place < lengths[masked_rows])
        rows = masked_rows[real]
        looks = positions[real]
        looked_at = place[real]
        means.append(maps[rows, :, :, looks, looked_at].mean(0).T)  # [L, A]
    return torch.stack(means, dim=2).numpy()


def watched(
    batches: Iterable[dict], at: Sequence[int], look: Callable[[int], None]
) -> Iterator[dict]:
    """The same batches; `look(step)` is called before the batch after step `step`, for each step in
    `at`."""
    for step, batch in enumerate(batches):
        if step in at:
            look(step)
        yield batch


class NeighborCounts:
    """Guesses a hidden token from the two tokens beside it, by counting in the training text; no
    network.

    The counts of all three together lean, with the weight of `trust` counts, on P(x | left) · P(x |
    right) / P(x), and those of the pairs likewise on P(x)."""

    def __init__(self, ids: np.ndarray, vocabulary: int, trust: float = 5.0):
        self.ids = ids.astype(np.int64)
        self.trust = trust
        self.p = np.bincount(self.ids, minlength=vocabulary) + 0.5
        self.p /= self.p.sum()
        pairs, outer = (self.ids[:-by] * vocabulary + self.ids[by:] for by in (1, 2))
        counts = np.bincount(pairs, minlength=vocabulary**2)
        self.pairs = counts.reshape(vocabulary, vocabulary)  # [left, right]
        order = np.argsort(outer, kind="stable")
        self.outer = outer[order]
        self.middle = self.ids[1:-1][order]
        self.vocabulary = vocabulary

    def lean(self, counts: np.ndarray, on: np.ndarray) -> np.ndarray:
        return (counts + self.trust * on) / (counts.sum() + self.trust)

    def probabilities(self, left: int | None, right: int | None) -> np.ndarray:
        """float [V]; None where a neighbor is not to be used."""
        after = self.p if left is None else self.lean(self.pairs[left], self.p)
        before = self.p if right is None else self.lean(self.pairs[:, right], self.p)
        both = after * before / self.p
        both /= both.sum()
        if left is None or right is None:
            return both
        a, b = np.searchsorted(self.outer, left * self.vocabulary + right + np.arange(2))
        return self.lean(np.bincount(self.middle[a:b], minlength=self.vocabulary), both)
