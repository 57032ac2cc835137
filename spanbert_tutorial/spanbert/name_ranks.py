"""Masked names, ranked among all names of their type and length.
Chapter: `book/spanbert/name_ranks`.

All tokens of a name are masked at once. Each name of the training text
with the same label and as many tokens is a candidate; its score is the
sum of the log-probabilities of its tokens. Two controls read no text:
how frequent a candidate is, and which names share documents with the
other names of the block. Shapes: c candidates, k tokens of a name."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.spanbert.names import Block, Name

ELSEWHERE = "elsewhere"
OTHERWISE = "in other words"
INFERRED = "inferred"


class Gap(NamedTuple):
    """A masked name. where: whether the block holds the same name once
    more (`ELSEWHERE`), only another name of the same thing
    (`OTHERWISE`), or none (`INFERRED`)."""

    block: Block
    name: Name
    where: str

    @property
    def tokens(self) -> tuple[int, ...]:
        return tokens_of(self.block, self.name)

    @property
    def key(self) -> tuple[str, int]:
        """Label and number of tokens."""
        return self.name.label, len(self.tokens)


class Known(NamedTuple):
    """Names of the training text. candidates: `Gap.key` → int [c,k],
    the most frequent first; counts: how often each of them, int [c];
    together: (label, tokens) → Counter of entities that share a
    document with it; documents: how many hold each entity."""

    candidates: dict[tuple[str, int], np.ndarray]
    counts: dict[tuple[str, int], np.ndarray]
    together: dict[tuple, Counter]
    documents: Counter


# --- scores and ranks ---------------------------------------------------------------


@torch.no_grad()
def log_probs_of(
    model: Any, wordpiece: WordPiece, block: Block, name: Name
) -> np.ndarray:
    """The MLM head at each token of a masked name, float [k,V]."""
    frame = [wordpiece.cls_id, *block.ids.tolist(), wordpiece.sep_id]
    input_ids = torch.tensor(frame)
    masked = slice(name.first + 1, name.last + 2)  # + 1: [CLS]
    input_ids[masked] = wordpiece.mask_id
    hidden_states = model.encoder(input_ids[None])[0]  # [n,H]
    logits = model.masked_language_model(hidden_states[masked])
    return logits.log_softmax(-1).numpy()


def score_names(
    log_probs: np.ndarray, candidates: np.ndarray
) -> np.ndarray:
    """A sum over the tokens of each candidate [c,k]: float [c]."""
    positions = np.arange(len(log_probs))
    of_tokens = log_probs[positions, candidates]  # [c,k]
    return of_tokens.sum(axis=1, dtype=np.float64)


def rank(scores: np.ndarray, true: int) -> float:
    """1 for the highest score; equal scores share their ranks."""
    others = np.delete(scores, true)
    higher = np.count_nonzero(others > scores[true])
    equal = np.count_nonzero(others == scores[true])
    return 1 + higher + equal / 2


# --- what is masked, and the candidates ---------------------------------------------


def tokens_of(block: Block, name: Name) -> tuple[int, ...]:
    return tuple(block.ids[name.first : name.last + 1].tolist())


def where(block: Block, name: Name) -> str:
    """Whether the block names the same thing once more, and how."""
    others = [
        tokens_of(block, other)
        for other in block.names
        if other.entity == name.entity and other != name
    ]
    if tokens_of(block, name) in others:
        return ELSEWHERE
    return OTHERWISE if others else INFERRED


def known_names(
    documents: Iterable[dict], wordpiece: WordPiece
) -> Known:
    """The names of training documents, as they are written there.
    documents: as `almanac.read` gives them."""
    counts: Counter[tuple[str, str]] = Counter()
    together: defaultdict[tuple, Counter] = defaultdict(Counter)
    holding: Counter = Counter()
    for document in documents:
        written = {}
        for start, end, label, entity in document["entities"]:
            name = label, document["text"][start:end]
            counts[name] += 1
            written[name] = entity
        entities = set(written.values())
        holding.update(entities)
        for name, entity in written.items():
            together[name].update(entities - {entity})
    encoded = wordpiece.encode_many([text for _, text in counts])
    ids = dict(zip(counts, map(tuple, encoded), strict=True))
    rows = defaultdict(list)
    by_ids: defaultdict[tuple, Counter] = defaultdict(Counter)
    for name, count in counts.most_common():
        label, tokens = name[0], ids[name]
        rows[label, len(tokens)].append((*tokens, count))
        by_ids[label, tokens] += together[name]
    tables = {key: np.array(row) for key, row in rows.items()}
    candidates = {key: table[:, :-1] for key, table in tables.items()}
    often = {key: table[:, -1] for key, table in tables.items()}
    return Known(candidates, often, by_ids, holding)


def asked(blocks: Iterable[Block], known: Known) -> list[Gap]:
    """The gaps whose name is one of at least two candidates."""
    gaps = [Gap(b, x, where(b, x)) for b in blocks for x in b.names]
    return [
        gap
        for gap in gaps
        if len(known.candidates.get(gap.key, ())) > 1
        and is_true(gap, known).any()
    ]


def is_true(gap: Gap, known: Known) -> np.ndarray:
    """Which candidate is the true name, bool [c]."""
    return (known.candidates[gap.key] == gap.tokens).all(axis=1)


def true_place(gap: Gap, known: Known) -> int:
    """The row of the true name among the candidates."""
    return int(is_true(gap, known).argmax())


# --- controls that read no text -----------------------------------------------------


def by_frequency(gap: Gap, known: Known) -> float:
    """The rank when a more frequent candidate scores higher."""
    return rank(known.counts[gap.key], true_place(gap, known))


def by_companions(gap: Gap, known: Known) -> float:
    """The rank when a candidate scores by how often its documents hold
    the other things that the block names.

    Each count is divided by the documents that hold that thing;
    frequency decides between equal ones. Names of the masked thing
    itself add nothing to the true name and something to others: a rule
    for gaps that are `INFERRED`."""
    others = sorted(
        {x.entity for x in gap.block.names if x != gap.name}
    )
    counts = known.counts[gap.key]
    scores = counts / counts.sum() * 1e-6
    for at, candidate in enumerate(known.candidates[gap.key].tolist()):
        companions = known.together[gap.name.label, tuple(candidate)]
        scores[at] += sum(
            companions[x] / known.documents[x]
            for x in others
            if known.documents[x]
        )
    return rank(scores, true_place(gap, known))
