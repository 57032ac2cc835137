"""Pairs of segments with next sentence prediction labels. Chapter: `book/bert/sentence_pairs`.

Source: BERT §3.1 (task 2) and appendix A.2. Label 0 = IsNext, 1 = NotNext, as in `transformers`; other sources write it
the other way round.
"""

from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.corpora import EncodedCorpus
from spanbert_tutorial.errors import InputError

IS_NEXT, NOT_NEXT = 0, 1


@dataclass(frozen=True)
class Pairs:
    """Pairs as ranges of `EncodedCorpus.ids`. first, second: int64 [B, 2] (start, end); labels: int64 [B].

    truncated: pieces cut away so that pairs fit. Every sentence stands in a first segment or a true next one.
    """

    first: np.ndarray
    second: np.ndarray
    labels: np.ndarray
    truncated: int

    @property
    def report(self) -> str:
        lengths = np.diff(self.first, axis=1) + np.diff(self.second, axis=1)
        return (
            f"{len(self.labels):,} pairs, {lengths.sum():,} pieces, mean length {lengths.mean():.1f}, "
            f"{(self.labels == NOT_NEXT).mean():.1%} NotNext; {self.truncated:,} pieces cut away to fit"
        )


def sentence_pairs(corpus: EncodedCorpus, max_pieces: int, rng: np.random.Generator) -> Pairs:
    """Pairs of at most `max_pieces` pieces together (without [CLS] and the two [SEP]).

    A chunk of whole sentences is divided at a random sentence. With probability 1/2 the second part is replaced by text
    from another document (NotNext); the replaced part then begins the next chunk. A chunk of one sentence has no
    second part, so it is always NotNext. Raises InputError for a corpus of one document.
    """
    if len(corpus.document_ends) < 2:
        raise InputError("next sentence prediction draws from other documents: give at least two documents.")
    if max_pieces < 2:
        raise InputError(f"a pair of {max_pieces} pieces has no two segments: give at least 2.")
    documents = document_sentences(corpus)
    rows, truncated = [], 0
    for number, bounds in enumerate(documents):
        at = 0
        while at < len(bounds) - 1:
            stop = chunk_end(bounds, at, max_pieces)
            middle = at + int(rng.integers(1, stop - at)) if stop - at > 1 else stop
            first = (bounds[at], bounds[middle])
            not_next = middle == stop or rng.random() < 0.5
            if not_next:
                second = other_text(documents, number, max_pieces - (first[1] - first[0]), rng)
            else:
                second = (bounds[middle], bounds[stop])
            first, second, cut = fit(first, second, max_pieces, rng)
            rows.append((*first, *second, NOT_NEXT if not_next else IS_NEXT))
            truncated += cut
            at = middle if not_next else stop
    table = np.array(rows, dtype=np.int64)
    return Pairs(table[:, 0:2], table[:, 2:4], table[:, 4], truncated)


def document_sentences(corpus: EncodedCorpus) -> list[np.ndarray]:
    """For each document its sentence bounds: the document's start, then the end of each sentence."""
    last = np.searchsorted(corpus.sentence_ends, corpus.document_ends) + 1
    bounds = np.concatenate([[0], corpus.sentence_ends])
    return [bounds[a : b + 1] for a, b in zip([0, *last[:-1]], last, strict=True)]


def chunk_end(bounds: np.ndarray, at: int, max_pieces: int) -> int:
    """Index of the bound that ends the chunk: sentences are added until the chunk reaches `max_pieces`."""
    reached = int(np.searchsorted(bounds, bounds[at] + max_pieces))
    return min(max(reached, at + 1), len(bounds) - 1)


def other_text(documents: list[np.ndarray], not_this: int, wanted: int, rng: np.random.Generator) -> tuple[int, int]:
    """Whole sentences, about `wanted` pieces, from a random place of another document."""
    other = int(rng.integers(len(documents) - 1))
    bounds = documents[other + (other >= not_this)]
    at = int(rng.integers(len(bounds) - 1))
    return bounds[at], bounds[chunk_end(bounds, at, max(wanted, 1))]


def fit(first: tuple[int, int], second: tuple[int, int], max_pieces: int, rng: np.random.Generator):
    """Cuts single pieces from a random end of the longer segment until both fit. Returns both and the pieces cut."""
    segments = [list(first), list(second)]
    cut = 0
    while sum(end - start for start, end in segments) > max_pieces:
        longer = max(segments, key=lambda segment: segment[1] - segment[0])
        end = int(rng.integers(2))
        longer[end] += 1 if end == 0 else -1
        cut += 1
    return tuple(segments[0]), tuple(segments[1]), cut
