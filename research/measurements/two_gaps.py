"""Names of two tokens, both hidden: filled apart from one another, or one at a time. Chapter:
`book/evidence/plateau`."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from research.measurements.names import Block, with_specials
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.model import PretrainingModel

ROWS = 64  # blocks in one pass of the encoder


@dataclass(frozen=True)
class TwoGaps:
    """Blocks with one name of two tokens hidden. ids: int64 [B,n] with [CLS] and [SEP], both tokens
    are [MASK]; real: bool [B,n]; first: int64 [B], place of the first gap; names: int64 [B,2], what
    stood there."""

    ids: Tensor
    real: Tensor
    first: Tensor
    names: Tensor

    def first_rows(self, most: int) -> "TwoGaps":
        """The first `most` of them."""
        return TwoGaps(*(part[:most] for part in vars(self).values()))


def two_gaps(blocks: Iterable[Block], wordpiece: WordPiece) -> TwoGaps:
    """Each name of two tokens that stand nowhere else in its block, hidden in a copy of the block
    of its own."""
    rows = []
    firsts = []
    names = []
    for ids, found in blocks:
        for first, last, *_ in found:
            name = ids[first : last + 1]
            if len(name) == 2 and np.isin(ids, name).sum() == 2:
                hidden = ids.copy()
                hidden[first : last + 1] = wordpiece.mask_id
                rows.append(hidden)
                firsts.append(first + 1)  # [CLS] in front
                names.append(name)
    ids, real = with_specials(rows, wordpiece)
    numbers = (np.array(part, dtype=np.int64) for part in (firsts, names))
    return TwoGaps(*map(torch.from_numpy, (ids, real, *numbers)))


def known_pairs(documents: Iterable[dict], wordpiece: WordPiece) -> Tensor:
    """Whether two tokens, one after the other, are a name of the almanac, bool [V,V]."""
    names = {d["text"][start:end] for d in documents for start, end, _, _ in d["entities"]}
    pairs = [ids for ids in map(wordpiece.encode, sorted(names)) if len(ids) == 2]
    exists = torch.zeros(len(wordpiece), len(wordpiece), dtype=torch.bool)
    exists[tuple(torch.from_numpy(np.array(pairs)).T)] = True
    return exists


@torch.no_grad()
def gap_probabilities(model: PretrainingModel, gaps: TwoGaps, ids: Tensor | None = None) -> Tensor:
    """Probabilities of each gap by itself, [B,2,V]. ids: another input for the same places, such as
    one gap filled."""
    ids = gaps.ids if ids is None else ids
    parts = []
    for start in range(0, len(ids), ROWS):
        rows = slice(start, start + ROWS)
        hidden = model.encoder(ids[rows], attention_mask=gaps.real[rows])  # [b,n,H]
        places = gaps.first[rows, None] + torch.arange(2)
        chosen = hidden[torch.arange(len(places))[:, None], places]  # [b,2,H]
        parts.append(model.masked_language_model(chosen).softmax(-1))
    return torch.cat(parts)


def filled(gaps: TwoGaps, which: Tensor, tokens: Tensor) -> Tensor:
    """The input with one gap filled. which: int64 [B], 0 or 1; tokens: int64 [B]."""
    ids = gaps.ids.clone()
    ids[torch.arange(len(ids)), gaps.first + which] = tokens
    return ids


def apart(model: PretrainingModel, gaps: TwoGaps) -> Tensor:
    """The likeliest token of each gap, both asked at once, int64 [B,2]."""
    return gap_probabilities(model, gaps).argmax(-1)


def one_at_a_time(model: PretrainingModel, gaps: TwoGaps) -> Tensor:
    """First the gap whose best guess is the surest, then the other one with that guess in place,
    int64 [B,2]."""
    best, tokens = gap_probabilities(model, gaps).max(-1)  # [B,2] each
    row = torch.arange(len(best))
    surest = best.argmax(1)
    with_first = filled(gaps, surest, tokens[row, surest])
    tokens[row, 1 - surest] = gap_probabilities(model, gaps, with_first)[row, 1 - surest].argmax(-1)
    return tokens


def drawn(
    model: PretrainingModel, gaps: TwoGaps, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Pairs drawn by chance instead of taken greedily, int64 [B,2] each: both gaps at once; and the
    left one, then the right one given it. The left draw is the same in both."""
    tokens = torch.stack(
        [
            torch.multinomial(p, 1, generator=generator)[:, 0]
            for p in gap_probabilities(model, gaps).unbind(1)
        ],
        1,
    )
    given_left = gap_probabilities(
        model, gaps, filled(gaps, torch.zeros_like(gaps.first), tokens[:, 0])
    )[:, 1]
    right = torch.multinomial(given_left, 1, generator=generator)[:, 0]
    return tokens, torch.stack([tokens[:, 0], right], 1)


def mass_on_names(model: PretrainingModel, gaps: TwoGaps, exists: Tensor) -> float:
    """Mean probability that two independent draws, one for each gap, make a name of the almanac;
    exact."""
    left, right = gap_probabilities(model, gaps).unbind(1)  # [B,V] each
    return ((left @ exists.float()) * right).sum(1).mean().item()


def shares(pairs: Tensor, gaps: TwoGaps, exists: Tensor) -> dict[str, float]:
    """Of the guessed pairs [B,2]: the share that is a name of the almanac at all, and the share
    that is right."""
    is_name = exists[pairs[:, 0], pairs[:, 1]]
    return {
        "exists": is_name.float().mean().item(),
        "right": (pairs == gaps.names).all(1).float().mean().item(),
    }
