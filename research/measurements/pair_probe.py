"""Whom does "she" mean? What a linear probe reads from frozen states. Chapters:
`book/evidence/spans_and_boundaries`, `book/spanbert/boundary`.

A pair is a word that stands for something ("she", "the club") and a name of the same kind in the
same block of the almanac; does the word mean what the name names? The two share no letters that
could tell. The probe reads the states of their own first and last tokens, or those of the tokens
right outside: the difference of u and v without its sign and their product, element by element,
where u and v are the two states of each, one after the other. Scored by the AUC on held-out
documents. Control: how near the name stands, names before the word first. Shapes: t pairs, H
hidden.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from research.measurements.frozen_states import linear_probe
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.spanbert.names import Block, Name, named_blocks, with_specials
from spanbert_tutorial.tasks.squad_negatives import auc

ROWS = 64
PENALTY = 1e-2
# what is added to the place of the first and of the last token
PLACES = {"inside": (0, 0), "outside": (-1, 1)}
WORD = "word for "  # before the kind, for a mention that is no name


class Pairs(NamedTuple):
    """Pairs of a word and a name. blocks: those that hold them; places: int64 [t,2,3], the block,
    the first and the last token of the word, and of the name; same: bool [t], whether both mean the
    same; near: float [t], the control."""

    blocks: list[Block]
    places: np.ndarray
    same: np.ndarray
    near: np.ndarray


def with_words(documents: Iterable[dict]) -> Iterator[dict]:
    """The documents with all mentions as `entities`: names with their kind, and words that stand
    for something. documents: as `almanac.coreference` gives them."""
    for document in documents:
        names = {(start, end): label for start, end, label, _ in document["entities"]}
        found = []
        for number, cluster in enumerate(document["clusters"]):
            kind = next((names[span] for span in cluster if span in names), None)
            if kind is not None:
                found += [[*span, names.get(span, WORD + kind), str(number)] for span in cluster]
        yield document | {"entities": sorted(found)}


def pairs(documents: Iterable[dict], wordpiece: WordPiece, room: int) -> Pairs:
    """All pairs in blocks of at most `room` tokens, without mentions at a block's edge, which have
    no neighbor on one side."""
    blocks = list(named_blocks(with_words(documents), wordpiece, room))
    places, same, near = [], [], []
    for number, (ids, mentions) in enumerate(blocks):
        inner = [one for one in mentions if 0 < one.first and one.last < len(ids) - 1]
        for word in (one for one in inner if one.label.startswith(WORD)):
            for name in (one for one in inner if WORD + one.label == word.label):
                places.append([(number, one.first, one.last) for one in (word, name)])
                same.append(word.entity == name.entity)
                near.append(nearness(word, name))
    return Pairs(blocks, np.array(places), np.array(same), np.array(near))


def nearness(word: Name, name: Name) -> float:
    """Larger for a nearer name; any name before the word is nearer than those behind it."""
    return 1 / (word.first - name.last) if name.last < word.first else -(name.first - word.last)


@torch.no_grad()
def features(encoder: BertEncoder, some: Pairs, wordpiece: WordPiece) -> dict[str, Tensor]:
    """What the probe reads for each pair, float [t,4H], by `PLACES`."""
    device = next(encoder.parameters()).device
    found: dict[str, list[Tensor]] = {place: [] for place in PLACES}
    number = some.places[:, 0, 0]
    for start in range(0, len(some.blocks), ROWS):
        blocks = [block.ids for block in some.blocks[start : start + ROWS]]
        ids, real = (x.to(device) for x in with_specials(blocks, wordpiece))
        hidden = encoder(ids, attention_mask=real).float().cpu()
        # [t,2,3]
        places = torch.from_numpy(some.places[(number >= start) & (number < start + ROWS)])
        for place, (left, right) in PLACES.items():
            # [CLS]
            row = places[..., 0] - start
            first = places[..., 1] + 1 + left
            last = places[..., 2] + 1 + right
            # [t,2H] each
            u, v = torch.cat([hidden[row, first], hidden[row, last]], dim=-1).unbind(1)
            found[place].append(torch.cat([(u - v).abs(), u * v], dim=-1))
    return {place: torch.cat(parts) for place, parts in found.items()}


def scores(encoder: BertEncoder, fit: Pairs, test: Pairs, wordpiece: WordPiece) -> dict[str, float]:
    """AUC in percent by place."""
    known, asked = (features(encoder.eval(), some, wordpiece) for some in (fit, test))
    found = {}
    for place in PLACES:
        probe = linear_probe(known[place], torch.from_numpy(fit.same.astype(np.int64)), PENALTY)
        with torch.no_grad():
            found[place] = area(test, probe(asked[place]).diff(dim=-1)[:, 0].numpy())
    return found


def area(some: Pairs, values: Sequence[float] | np.ndarray) -> float:
    """The AUC in percent: how often a pair that means the same has the larger value."""
    scores = np.asarray(values)
    return 100 * auc(scores[~some.same], scores[some.same])
