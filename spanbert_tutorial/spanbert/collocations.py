"""Words that stand together more often than chance has them: collocations, found by counting.
Chapter: `book/spanbert/name_ranks`.

Source: PMI-masking (Levine and others, 2021, §4): an n-gram is as good as its worst cut. Its score
is the smallest, over all ways to cut it, of log p(n-gram) − Σ log p(part), so a frequent pair with
any word behind it does not count.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.spanbert.labeled_masking import COLLOCATION, words_of
from spanbert_tutorial.text.encoding import EncodedCorpus

LONGEST, FEWEST = (5, 10)  # words of a collocation; times that it has to occur
Word = tuple[int, ...]  # its tokens


def sentences(
    corpus: EncodedCorpus, wordpiece: WordPiece
) -> Iterator[tuple[int, np.ndarray, list[Word]]]:
    """Where each sentence begins in the corpus, its words as places [words,2], and as tuples of
    tokens."""
    start = 0
    for end in corpus.sentence_ends.tolist():
        ids = np.asarray(corpus.ids[start:end])
        places = words_of(wordpiece.word_starts(ids))
        yield (start, places, [tuple(ids[first : last + 1].tolist()) for first, last in places])
        start = end


def counted(texts: Iterable[Sequence[Word]], longest: int = LONGEST) -> list[Counter]:
    """How often each n-gram of words occurs, a Counter for each n from 1 to `longest`."""
    counts: list[Counter] = [Counter() for _ in range(longest)]
    for words in texts:
        for n, counter in enumerate(counts, start=1):
            counter.update(zip(*(words[at:] for at in range(n)), strict=False))
    return counts


def score(ngram: tuple[Word, ...], counts: Sequence[Counter], totals: Sequence[int]) -> float:
    """In nats; 0 where the words are independent of one another. totals: of each of the counts."""

    def log_p(part: tuple[Word, ...]) -> float:
        return math.log(counts[len(part) - 1][part] / totals[len(part) - 1])

    best = {0: 0.0}  # the largest sum of log p over all ways to cut the first so many words
    for end in range(1, len(ngram) + 1):
        starts = range(1 if end == len(ngram) else 0, end)  # the whole n-gram is no cut of it
        best[end] = max(
            (best[start] + log_p(ngram[start:end]) for start in starts), default=log_p(ngram)
        )
    return log_p(ngram) - best[len(ngram)]


def collocations(
    counts: Sequence[Counter], number: int, fewest: int = FEWEST
) -> set[tuple[Word, ...]]:
    """The `number` best n-grams of two words and more that occur at least `fewest` times: as many
    of each length as there are among all such n-grams, so that long ones, whose scores are larger,
    do not take all."""
    frequent = [
        [ngram for ngram, count in counter.items() if count >= fewest] for counter in counts[1:]
    ]
    total = max(sum(map(len, frequent)), 1)
    found = set()
    totals = [counter.total() for counter in counts]
    for ngrams in frequent:
        ordered = sorted(ngrams, key=lambda ngram: (-score(ngram, counts, totals), ngram))
        found.update(ordered[: round(number * len(ngrams) / total)])
    return found


def labeled(
    corpus: EncodedCorpus, wordpiece: WordPiece, known: set[tuple[Word, ...]]
) -> np.ndarray:
    """Where collocations stand, int [m,3]: (first, one past the last, `COLLOCATION`), from left to
    right, of several that fit the longest."""
    found = []
    longest = max(map(len, known), default=1)
    for start, places, words in sentences(corpus, wordpiece):
        at = 0
        while at < len(words):
            ends = range(min(at + longest, len(words)), at + 1, -1)
            end = next((end for end in ends if tuple(words[at:end]) in known), at + 1)
            if end > at + 1:
                found.append((start + places[at, 0], start + places[end - 1, 1] + 1, COLLOCATION))
            at = end
    return np.array(found, dtype=np.int64).reshape(-1, 3)
