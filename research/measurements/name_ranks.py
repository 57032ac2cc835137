"""Hidden names ranked among all names of their kind and length. Chapter:
`book/spanbert/name_ranks`.

All tokens of a name are hidden at once. Each name of the training text of the same kind and with as
many tokens is a candidate; its score is the sum of the log-probabilities of its tokens, each from
its own gap. Controls that read no state: how frequent each candidate is; two tables of tokens
without context; and which names share documents with the other names of the block. Shapes: B
blocks, n tokens, c candidates, k tokens of a name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from research.measurements.names import Block, Name, named_blocks, with_specials
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.baselines import UnigramBaselines
from spanbert_tutorial.pretraining.model import PretrainingModel

ROWS = 64
ELSEWHERE = "elsewhere"
OTHERWISE = "in other words"
INFERRED = "inferred"


class Gap(NamedTuple):
    """A name that is hidden. where: whether the block holds the same name once more (`ELSEWHERE`),
    only another name of the same thing (`OTHERWISE`), or none (`INFERRED`)."""

    block: Block
    name: Name
    where: str

    @property
    def tokens(self) -> tuple[int, ...]:
        """What is hidden."""
        return tokens_of(self.block, self.name)


class Known(NamedTuple):
    """Names of the training text. candidates: (label, tokens) → int [c,k], the most frequent first;
    counts: how often each of them, int [c]; together: (label, tokens) → Counter of entities that
    share a document with it; documents: in how many each entity stands."""

    candidates: dict[tuple[str, int], np.ndarray]
    counts: dict[tuple[str, int], np.ndarray]
    together: dict[tuple, Counter]
    documents: Counter


def tokens_of(block: Block, name: Name) -> tuple[int, ...]:
    """The ids of a name in its block."""
    return tuple(block.ids[name.first : name.last + 1].tolist())


def gaps(blocks: Iterable[Block]) -> list[Gap]:
    """Each name of each block, hidden in turn."""
    return [Gap(block, name, where(block, name)) for block in blocks for name in block.names]


def where(block: Block, name: Name) -> str:
    """Whether the block names the same thing once more, and how."""
    same = [one for one in block.names if one.entity == name.entity and one != name]
    if any(tokens_of(block, one) == tokens_of(block, name) for one in same):
        return ELSEWHERE
    return OTHERWISE if same else INFERRED


def known_names(documents: Iterable[dict], wordpiece: WordPiece) -> Known:
    """The names of training documents, as they are written there. documents: as `almanac.read`
    gives them."""
    counts: Counter[tuple[str, str]] = Counter()
    together: defaultdict[tuple[str, str], Counter] = defaultdict(Counter)
    holding: Counter = Counter()
    for document in documents:
        written = {}
        for start, end, label, entity in document["entities"]:
            counts[label, document["text"][start:end]] += 1
            written[label, document["text"][start:end]] = entity
        entities = set(written.values())
        holding.update(entities)
        for name, entity in written.items():
            together[name].update(entities - {entity})
    rows = defaultdict(list)
    ids = dict(zip(counts, wordpiece.encode_many([text for _, text in counts]), strict=True))
    for name, count in counts.most_common():
        rows[name[0], len(ids[name])].append((tuple(ids[name]), count))
    by_ids: defaultdict[tuple, Counter] = defaultdict(Counter)
    for name, companions in together.items():
        by_ids[name[0], tuple(ids[name])] += companions
    return Known(
        {key: np.array([one for one, _ in found]) for key, found in rows.items()},
        {key: np.array([count for _, count in found]) for key, found in rows.items()},
        by_ids,
        holding,
    )


def asked(blocks: Iterable[Block], known: Known) -> list[Gap]:
    """The gaps whose name stands among at least two candidates."""
    return [gap for gap in gaps(blocks) if place(gap, known) is not None]


def place(gap: Gap, known: Known) -> int | None:
    """Where the true name stands among its candidates, or None."""
    candidates = known.candidates.get((gap.name.label, len(gap.tokens)))
    if candidates is None or len(candidates) < 2:
        return None
    found = np.flatnonzero((candidates == gap.tokens).all(axis=1))
    return int(found[0]) if len(found) else None


def true_place(gap: Gap, known: Known) -> int:
    """`place` of a gap of `asked`, which has one."""
    index = place(gap, known)
    assert index is not None
    return index


def rank(scores: np.ndarray, true: int) -> float:
    """1 for the highest score; of equal scores each has the mean of their ranks."""
    others = np.delete(scores, true)
    return 1 + np.sum(others > scores[true]) + np.sum(others == scores[true]) / 2


@torch.no_grad()
def model_ranks(
    model: PretrainingModel, wordpiece: WordPiece, some: Sequence[Gap], known: Known
) -> np.ndarray:
    """The rank of each true name by the masked language model head, float [gaps]."""
    found = []
    device = next(model.parameters()).device
    for start in range(0, len(some), ROWS):
        part = some[start : start + ROWS]
        ids, real = with_specials([hidden(gap, wordpiece.mask_id) for gap in part], wordpiece)
        states = model.encoder(
            torch.from_numpy(ids).to(device), attention_mask=torch.from_numpy(real).to(device)
        )
        # [CLS] in front
        inside = [
            row[gap.name.first + 1 : gap.name.last + 2]
            for gap, row in zip(part, states, strict=True)
        ]
        logs = model.masked_language_model(torch.cat(inside)).float().log_softmax(-1).cpu().numpy()
        parts = np.split(logs, np.cumsum([len(rows) for rows in inside])[:-1])
        found += [ranked(gap, known, rows) for gap, rows in zip(part, parts, strict=True)]
    return np.array(found)


def hidden(gap: Gap, mask_id: int) -> np.ndarray:
    """The block with the name hidden."""
    ids = gap.block.ids.copy()
    ids[gap.name.first : gap.name.last + 1] = mask_id
    return ids


def ranked(gap: Gap, known: Known, logs: np.ndarray) -> float:
    """The rank of the true name. logs: float [k,V], log-probabilities at each place of the gap."""
    candidates = known.candidates[gap.name.label, len(gap.tokens)]
    scores = sum(logs[at, candidates[:, at]].astype(np.float64) for at in range(len(gap.tokens)))
    return rank(scores, true_place(gap, known))


# --- controls -----------------------------------------------------------------------


def control_ranks(
    some: Sequence[Gap], known: Known, tables: UnigramBaselines
) -> dict[str, np.ndarray]:
    """The rank of each true name by what reads no state, float [gaps] each."""
    return {
        name: np.array([score(gap, known, tables) for gap in some])
        for name, score in (
            ("frequency", by_frequency),
            ("table", by_table),
            ("companions", by_companions),
        )
    }


def by_frequency(gap: Gap, known: Known, tables: UnigramBaselines) -> float:
    """The more often a candidate stands in the training text, the better."""
    return rank(known.counts[gap.name.label, len(gap.tokens)], true_place(gap, known))


def by_table(gap: Gap, known: Known, tables: UnigramBaselines) -> float:
    """The log-probabilities of the tokens at these positions of a block, without context."""
    return ranked(gap, known, tables.by_position[gap.name.first + 1 : gap.name.last + 2])


def by_companions(gap: Gap, known: Known, tables: UnigramBaselines) -> float:
    """How often a candidate's documents hold the other things that the block names, each count
    divided by the documents that hold that thing; then frequency. Names of the hidden thing itself
    add nothing to the true name and something to others: a rule for gaps that are `INFERRED`."""
    key = gap.name.label, len(gap.tokens)
    others = sorted({name.entity for name in gap.block.names if name != gap.name})
    scores = known.counts[key] / known.counts[key].sum() * 1e-6  # between equal ones
    for at, candidate in enumerate(known.candidates[key]):
        companions = known.together[gap.name.label, tuple(candidate.tolist())]
        scores[at] += sum(
            companions[one] / known.documents[one] for one in others if known.documents[one]
        )
    return rank(scores, true_place(gap, known))


def figures(some: Sequence[Gap], ranks: np.ndarray) -> dict[str, dict[str, float]]:
    """For each group of gaps: how many, the share in percent ranked first, and the mean of 1 /
    rank."""
    found = {}
    for group in (INFERRED, OTHERWISE, ELSEWHERE):
        inside = ranks[[gap.where == group for gap in some]]
        found[group] = {
            "gaps": len(inside),
            "first": 100 * float(np.mean(inside == 1)) if len(inside) else 0.0,
            "reciprocal": float(np.mean(1 / inside)) if len(inside) else 0.0,
        }
    return found


def test_gaps(split: Iterable[dict], wordpiece: WordPiece, known: Known, room: int) -> list[Gap]:
    """All gaps of a part of the almanac that can be asked, in blocks of at most `room` tokens."""
    return asked(named_blocks(split, wordpiece, room), known)
