"""Pairs of segments with labels of next sentence prediction or of
sentence order prediction. Chapters: `book/bert/sentence_pairs`,
`book/relatives/roberta`.

Sources: BERT §3.1 (task 2) and appendix A.2; ALBERT §3.1. Labels as in
`transformers`; other sources write them the other way round.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random import Generator
from torch import Tensor, nn

from spanbert_tutorial.bert.auxiliary import AuxiliaryObjective
from spanbert_tutorial.bert.encoder import NextSentenceHead
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.errors import require
from spanbert_tutorial.text.encoding import EncodedCorpus

IS_NEXT = 0
NOT_NEXT = 1

Segment = tuple[int, int]  # first token and end, in EncodedCorpus.ids


@dataclass(frozen=True)
class Pairs:
    """Pairs as ranges of `EncodedCorpus.ids`.

    first, second: int64 [B,2] (start, end); labels: int64 [B]. Each
    token of the corpus is in one first or true next segment, or is one
    of the `truncated` tokens that were trimmed there. Tokens trimmed
    from text of another document are `borrowed_truncated`. alone: pairs
    whose chunk is one sentence; they are NotNext without a coin."""

    first: np.ndarray
    second: np.ndarray
    labels: np.ndarray
    truncated: int
    borrowed_truncated: int
    alone: int
    wrong: str = "NotNext"  # what label 1 means

    @property
    def report(self) -> str:
        both = np.diff(self.first) + np.diff(self.second)
        not_next = (self.labels == NOT_NEXT).mean()
        return (
            f"{len(self.labels):,} pairs, {both.sum():,} tokens, mean "
            f"length {both.mean():.1f}, {not_next:.1%} {self.wrong} "
            f"({self.alone:,} without a next sentence); cut away to fit: "
            f"{self.truncated:,} tokens, and {self.borrowed_truncated:,} of borrowed text"
        )


def sentence_pairs(
    corpus: EncodedCorpus, max_tokens: int, rng: Generator
) -> Pairs:
    """Pairs of at most max_tokens tokens; a coin decides the label.

    max_tokens: without [CLS] and the two [SEP]. Raises InputError for
    a corpus of one document."""
    documents = document_sentences(corpus)
    check_pairs(len(documents), max_tokens)
    rows = array("q")  # eight bytes a number
    lost = borrowed = singles = 0
    for number, bounds in enumerate(documents):
        at = 0
        while at < len(bounds) - 1:
            stop = chunk_end(bounds, at, max_tokens)
            alone = stop == at + 1
            middle = stop if alone else int(rng.integers(at + 1, stop))
            first = bounds[at], bounds[middle]
            if alone or rng.random() < 0.5:
                label, room = NOT_NEXT, max_tokens - size(first)
                second = other_text(documents, number, room, rng)
                at = middle  # the next chunk begins with what is left
            else:
                label, second = IS_NEXT, (bounds[middle], bounds[stop])
                at = stop
            a, b = fit(first, second, max_tokens, rng)
            rows.extend((*a, *b, label))
            lost += size(first) - size(a)
            if label == IS_NEXT:
                lost += size(second) - size(b)
            else:
                borrowed += size(second) - size(b)
            singles += alone
    table = np.array(rows).reshape(-1, 5)
    columns = table[:, 0:2], table[:, 2:4], table[:, 4]
    return Pairs(*columns, int(lost), int(borrowed), singles)


def check_pairs(documents: int, max_tokens: int) -> None:
    """Raises InputError where no pair can be made."""
    told = "next sentence prediction needs two documents, and pairs of 2 tokens: give more."
    require(documents > 1 and max_tokens > 1, told)


def sentence_order_pairs(
    corpus: EncodedCorpus, max_tokens: int, rng: Generator
) -> Pairs:
    """Two neighbors, with probability 1/2 swapped, which is label 1.

    Chunks, splits and trimming are those of `sentence_pairs`. A chunk
    of one sentence has no order: it is left out, and `alone` counts
    it. Raises InputError when that leaves no pair. ALBERT §3.1."""
    rows = array("q")
    trimmed = alone = 0
    for bounds in document_sentences(corpus):
        at = 0
        while at < len(bounds) - 1:
            start, at = at, chunk_end(bounds, at, max_tokens)
            if at - start < 2:
                alone += 1
                continue
            middle = bounds[start + int(rng.integers(1, at - start))]
            first = bounds[start], middle
            parts = fit(first, (middle, bounds[at]), max_tokens, rng)
            swapped = int(rng.random() < 0.5)  # the label
            rows.extend((*parts[swapped], *parts[1 - swapped], swapped))
            whole = bounds[at] - bounds[start]
            trimmed += whole - sum(map(size, parts))
    told = "no chunk has two sentences: give longer documents or more max_tokens."
    require(rows, told)
    table = np.array(rows).reshape(-1, 5)
    columns = table[:, 0:2], table[:, 2:4], table[:, 4]
    return Pairs(*columns, int(trimmed), 0, alone, "swapped")


def document_sentences(corpus: EncodedCorpus) -> list[np.ndarray]:
    """Of each document its start, then the end of each sentence."""
    ends = corpus.sentence_ends
    last = np.searchsorted(ends, corpus.document_ends) + 1
    bounds = np.concatenate([[0], ends])
    pairs = zip([0, *last[:-1]], last, strict=True)
    return [bounds[a : b + 1] for a, b in pairs]


def chunk_end(bounds: np.ndarray, at: int, max_tokens: int) -> int:
    """The first bound at which the chunk from `at` is full.

    bounds: as of `document_sentences`; the document may end before."""
    full = int(np.searchsorted(bounds, bounds[at] + max_tokens))
    return min(max(full, at + 1), len(bounds) - 1)


def other_text(
    documents: list[np.ndarray],
    not_this: int,
    room: int,
    rng: Generator,
) -> Segment:
    """Sentences from a random position in another document."""
    other = int(rng.integers(len(documents) - 1))
    bounds = documents[other + (other >= not_this)]
    at = int(rng.integers(len(bounds) - 1))
    return bounds[at], bounds[chunk_end(bounds, at, max(room, 1))]


def fit(
    first: Segment, second: Segment, max_tokens: int, rng: Generator
) -> tuple[Segment, Segment]:
    """Trims the longer segment, token by token, until both fit."""
    while size(first) + size(second) > max_tokens:
        from_second = size(second) > size(first)
        start, end = second if from_second else first
        front = rng.integers(2) == 0
        kept = (start + 1, end) if front else (start, end - 1)
        first, second = (first, kept) if from_second else (kept, second)
    return first, second


def size(segment: Segment) -> int:
    """Tokens of a segment."""
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
        self, corpus: EncodedCorpus, max_tokens: int, rng: Generator
    ) -> Pairs:
        found = sentence_pairs(corpus, max_tokens, rng)
        told = "no document has two sentences: give longer ones, or an objective without nsp."
        require(found.alone < len(found.labels), told)
        return found

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
        self, head: nn.Module, hidden_states: Tensor, batch: dict
    ) -> Tensor:
        logits, labels = head(hidden_states), batch[self.name]
        return F.cross_entropy(logits, labels, reduction="sum")


class SentenceOrder(NextSentence):
    """Sentence order prediction: a wrong pair is a swapped one.

    ALBERT §3.1."""

    name = "sentence_order"
    loss_name = "sop"
    weight_names = (
        ("sentence_order.pooler.", "bert.pooler.dense."),
        ("sentence_order.classifier.", "sop_classifier.classifier."),
    )

    def pairs(
        self, corpus: EncodedCorpus, max_tokens: int, rng: Generator
    ) -> Pairs:
        return sentence_order_pairs(corpus, max_tokens, rng)
