"""Pairs of segments with labels of next sentence prediction or of sentence order prediction.
Chapters: `book/bert/sentence_pairs`; the order in `book/relatives/roberta`.

Sources: BERT §3.1 (task 2) and appendix A.2; ALBERT §3.1. Label 0 = IsNext, 1 = NotNext, as in
`transformers`; other sources write it the other way round. Of the order: 0 = as in the text, 1 =
swapped.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.encoder import NextSentenceHead
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.text.encoding import EncodedCorpus

IS_NEXT = 0
NOT_NEXT = 1
IN_ORDER = 0
SWAPPED = 1

Segment = tuple[int, int]  # first and end of a run of tokens


@dataclass(frozen=True)
class Pairs:
    """Pairs as ranges of `EncodedCorpus.ids`. first, second: int64 [B, 2] (start, end); labels:
    int64 [B].

    Each token of the corpus stands in one first or true next segment, or is one of the `truncated`
    tokens that were cut away there so that pairs fit. borrowed_truncated: tokens cut from text of
    another document; it has its own place. alone: pairs whose chunk is one sentence. It has no
    second part, so they are NotNext without a draw.
    """

    first: np.ndarray
    second: np.ndarray
    labels: np.ndarray
    truncated: int
    borrowed_truncated: int
    alone: int

    @property
    def report(self) -> str:
        lengths = np.diff(self.first, axis=1) + np.diff(
            self.second, axis=1
        )
        return (
            f"{len(self.labels):,} pairs, {lengths.sum():,} tokens, mean length "
            f"{lengths.mean():.1f}, "
            f"{(self.labels == NOT_NEXT).mean():.1%} NotNext ({self.alone:,} without a next "
            f"sentence); "
            f"cut away to fit: {self.truncated:,} tokens, and {self.borrowed_truncated:,} of "
            f"borrowed text"
        )


class OrderPairs(Pairs):
    """Pairs with labels of sentence order prediction."""

    @property
    def report(self) -> str:
        """Counts, for the one who trains."""
        swapped = (self.labels == SWAPPED).mean()
        return f"{len(self.labels):,} pairs, {swapped:.1%} swapped; left out: {self.alone:,} alone"


def sentence_pairs(
    corpus: EncodedCorpus, max_tokens: int, rng: np.random.Generator
) -> Pairs:
    """Pairs of at most `max_tokens` tokens together (without [CLS] and the two [SEP]).

    A chunk of whole sentences is divided at a random sentence. With probability 1/2 the second part
    is replaced by text from another document (NotNext); the replaced part then begins the next
    chunk. A chunk of one sentence has no second part, so it is always NotNext. Raises InputError
    for a corpus of one document.
    """
    if len(corpus.document_ends) < 2:
        raise InputError(
            "next sentence prediction draws from other documents: give at least two documents."
        )
    if max_tokens < 2:
        raise InputError(
            f"a pair of {max_tokens} tokens has no two segments: give at least 2."
        )
    documents = document_sentences(corpus)
    # eight bytes a number
    rows = array("q")
    cut = {IS_NEXT: 0, NOT_NEXT: 0}
    alone = 0
    for number, bounds in enumerate(documents):
        at = 0
        while at < len(bounds) - 1:
            stop = chunk_end(bounds, at, max_tokens)
            middle = (
                at + int(rng.integers(1, stop - at))
                if stop - at > 1
                else stop
            )
            first = (bounds[at], bounds[middle])
            alone += middle == stop
            not_next = middle == stop or rng.random() < 0.5
            if not_next:
                second = other_text(
                    documents, number, max_tokens - size(first), rng
                )
            else:
                second = (bounds[middle], bounds[stop])
            fitted = fit(first, second, max_tokens, rng)
            label = NOT_NEXT if not_next else IS_NEXT
            rows.extend((*fitted[0], *fitted[1], label))
            # a first segment is always the corpus's running text
            cut[IS_NEXT] += size(first) - size(fitted[0])
            cut[label] += size(second) - size(fitted[1])
            at = middle if not_next else stop
    table = np.array(rows).reshape(-1, 5)
    return Pairs(
        table[:, 0:2],
        table[:, 2:4],
        table[:, 4],
        int(cut[IS_NEXT]),
        int(cut[NOT_NEXT]),
        int(alone),
    )


def sentence_order_pairs(
    corpus: EncodedCorpus, max_tokens: int, rng: np.random.Generator
) -> OrderPairs:
    """Two neighboring segments of one document, with probability 1/2 swapped: for sentence order
    prediction.

    Chunks, splits and cuts are those of `sentence_pairs`, so only the wrong pairs differ. A chunk
    of one sentence has no order; it is left out, and `alone` counts it. Raises InputError when that
    leaves no pair. ALBERT §3.1.
    """
    rows = array("q")
    cut = 0
    alone = 0
    for bounds in document_sentences(corpus):
        at = 0
        while at < len(bounds) - 1:
            start = at
            at = chunk_end(bounds, at, max_tokens)
            if at - start < 2:
                alone += 1
                continue
            middle = bounds[start + int(rng.integers(1, at - start))]
            parts = fit(
                (bounds[start], middle),
                (middle, bounds[at]),
                max_tokens,
                rng,
            )
            label = SWAPPED if rng.random() < 0.5 else IN_ORDER
            rows.extend((*parts[label], *parts[1 - label], label))
            cut += bounds[at] - bounds[start] - sum(map(size, parts))
    if not rows:
        raise InputError(
            "no chunk has two sentences, so none has an order: give longer documents or more "
            "max_tokens."
        )
    table = np.array(rows).reshape(-1, 5)
    return OrderPairs(
        table[:, 0:2], table[:, 2:4], table[:, 4], int(cut), 0, alone
    )


def document_sentences(corpus: EncodedCorpus) -> list[np.ndarray]:
    """For each document its sentence bounds: the document's start, then the end of each
    sentence."""
    last = (
        np.searchsorted(corpus.sentence_ends, corpus.document_ends) + 1
    )
    bounds = np.concatenate([[0], corpus.sentence_ends])
    return [
        bounds[a : b + 1]
        for a, b in zip([0, *last[:-1]], last, strict=True)
    ]


def chunk_end(bounds: np.ndarray, at: int, max_tokens: int) -> int:
    """Index of the bound that ends the chunk: sentences are added until the chunk reaches
    `max_tokens`."""
    reached = int(np.searchsorted(bounds, bounds[at] + max_tokens))
    return min(max(reached, at + 1), len(bounds) - 1)


def other_text(
    documents: list[np.ndarray],
    not_this: int,
    wanted: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Whole sentences, about `wanted` tokens, from a random place of another document."""
    other = int(rng.integers(len(documents) - 1))
    bounds = documents[other + (other >= not_this)]
    at = int(rng.integers(len(bounds) - 1))
    return bounds[at], bounds[chunk_end(bounds, at, max(wanted, 1))]


def fit(
    first: Segment,
    second: Segment,
    max_tokens: int,
    rng: np.random.Generator,
) -> tuple[Segment, Segment]:
    """Cuts single tokens from a random end of the longer segment until both fit; returns both."""
    segments = [first, second]
    while sum(map(size, segments)) > max_tokens:
        longer = int(size(second) > size(first))
        start, end = segments[longer]
        segments[longer] = (
            (start + 1, end)
            if rng.integers(2) == 0
            else (start, end - 1)
        )
        first, second = segments
    return first, second


def size(segment: Segment) -> int:
    """Tokens of a range (start, end)."""
    return segment[1] - segment[0]


# --- the second tasks ---------------------------------------------------------------


class NextSentence(AuxiliaryObjective):
    """Next sentence prediction from the state of [CLS]. BERT §3.1."""

    name = "next_sentence"
    loss_name = "nsp"
    paired = True
    counted = "pair"
    chance = (math.log(2), "a fair coin")
    weight_names = (
        ("next_sentence.pooler.", "bert.pooler.dense."),
        ("next_sentence.classifier.", "cls.seq_relationship."),
    )

    def pairs(
        self,
        corpus: EncodedCorpus,
        max_tokens: int,
        rng: np.random.Generator,
    ) -> Pairs:
        return sentence_pairs(corpus, max_tokens, rng)

    def head(
        self, hidden_size: int, embedding_weight: Tensor
    ) -> NextSentenceHead:
        return NextSentenceHead(hidden_size)

    def targets(
        self,
        segments: Sequence[MaskedBlocks],
        labels: np.ndarray | None,
    ) -> dict[str, Tensor]:
        return {self.name: torch.from_numpy(labels)}

    def loss(
        self,
        head: nn.Module,
        hidden_states: Tensor,
        batch: dict[str, Tensor],
    ) -> Tensor:
        return F.cross_entropy(
            head(hidden_states), batch[self.name], reduction="sum"
        )


class SentenceOrder(NextSentence):
    """Sentence order prediction: as next sentence prediction, but a wrong pair is a swapped one.
    ALBERT §3.1."""

    name = "sentence_order"
    loss_name = "sop"
    weight_names = (
        ("sentence_order.pooler.", "bert.pooler.dense."),
        ("sentence_order.classifier.", "sop_classifier.classifier."),
    )

    def pairs(
        self,
        corpus: EncodedCorpus,
        max_tokens: int,
        rng: np.random.Generator,
    ) -> Pairs:
        return sentence_order_pairs(corpus, max_tokens, rng)
