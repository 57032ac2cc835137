"""What the states beside a masked name, and inside it, hold of it. Chapter:
`book/spanbert/name_ranks`.

All weights stay as they are. One name of each block is masked, and a linear classifier reads two
final states."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifier
from torch import Tensor

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.spanbert.names import Block, with_specials

ROWS = 64
LONGEST = 4
RIDGE = 10.0


@dataclass(frozen=True)
class MaskedNames:
    """One masked name in each block. input_ids: int64 [B,n]; attention_mask: bool [B,n]; spans: int64
    [B,2], first and last position of the name in the input; labels: question → int64 [B]."""

    input_ids: Tensor
    attention_mask: Tensor
    spans: Tensor
    labels: dict[str, Tensor]


def mask_names(
    blocks: Iterable[Block], wordpiece: WordPiece, kinds: list[str], seed: int
) -> MaskedNames:
    """One name of each block that touches neither of its edges, all of its tokens masked.

    labels: "kind", the label's number in `kinds`; "length" in tokens, `LONGEST` and more are one;
    "first token", an id."""
    rng = np.random.default_rng(seed)
    rows, spans, labels = [], [], []
    for ids, names in blocks:
        n = len(ids)
        inner = [x for x in names if 0 < x.first and x.last < n - 1]
        if inner:
            first, last, label, _ = inner[rng.integers(len(inner))]
            length = min(last - first + 1, LONGEST) - 1
            labels.append((kinds.index(label), length, ids[first]))
            masked = np.array(ids)
            masked[first : last + 1] = wordpiece.mask_id
            rows.append(masked)
            spans.append((first + 1, last + 1))  # [CLS] in front
    inputs = with_specials(rows, wordpiece)
    columns = torch.tensor(np.array(labels, dtype=np.int64)).T
    questions = ("kind", "length", "first token")
    labeled = dict(zip(questions, columns, strict=True))
    return MaskedNames(*inputs, torch.tensor(spans), labeled)


@torch.no_grad()
def states(encoder: BertEncoder, names: MaskedNames) -> dict[str, Tensor]:
    """Two final states of each block, one after the other, [B,2H]: the boundary tokens'; the name's
    first and last."""
    found: dict[str, list[Tensor]] = {"boundary": [], "inside": []}
    for start in range(0, len(names.input_ids), ROWS):
        rows = slice(start, start + ROWS)
        mask = names.attention_mask[rows]
        hidden_states = encoder(names.input_ids[rows], attention_mask=mask)
        row = torch.arange(len(hidden_states))[:, None]
        inside = names.spans[rows]
        outside = inside + torch.tensor([-1, 1])
        for name, at in (("boundary", outside), ("inside", inside)):
            found[name].append(hidden_states[row, at].flatten(1))
    return {name: torch.cat(parts) for name, parts in found.items()}


def probe(fit: Tensor, fit_labels: Tensor, test: Tensor, test_labels: Tensor) -> float:
    """Accuracy of a linear classifier on states [B,F], frozen.

    Least squares on one-hot labels with a ridge, on standardized states."""
    mean, deviation = fit.mean(0), fit.std(0) + 1e-6
    fit, test = ((x - mean) / deviation for x in (fit, test))
    return RidgeClassifier(RIDGE).fit(fit, fit_labels).score(test, test_labels)
