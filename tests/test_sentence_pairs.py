"""Pairs for next sentence prediction: labels, neighbors, other documents, shares, lengths, nothing
lost uncounted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.bert.sentence_pairs import IS_NEXT, NOT_NEXT, sentence_pairs
from spanbert_tutorial.text.encoding import EncodedCorpus

documents_strategy = st.lists(
    st.lists(st.integers(1, 6) | st.integers(1, 60), min_size=1, max_size=12),
    min_size=2,
    max_size=6,
)


def corpus_of(documents: list[list[int]]) -> EncodedCorpus:
    """A corpus in memory from the lengths of each document's sentences; its ids are its
    positions."""
    lengths = [length for document in documents for length in document]
    return EncodedCorpus(
        np.arange(sum(lengths)), np.cumsum(lengths), np.cumsum([sum(d) for d in documents])
    )


def document_of(corpus: EncodedCorpus, ranges: np.ndarray) -> np.ndarray:
    """Number of the document of each range; fails if one crosses documents."""
    first = np.searchsorted(corpus.document_ends, ranges[:, 0], side="right")
    last = np.searchsorted(corpus.document_ends, ranges[:, 1] - 1, side="right")
    assert np.array_equal(first, last)
    return first


def many_documents(count: int, seed: int = 0) -> EncodedCorpus:
    """Documents of 60 to 80 sentences of 3 to 12 tokens each."""
    rng = np.random.default_rng(seed)
    return corpus_of([rng.integers(3, 13, rng.integers(60, 81)).tolist() for _ in range(count)])


@given(documents_strategy, st.integers(2, 40), st.integers(0, 9))
def test_the_promises(documents, max_tokens, seed):
    corpus = corpus_of(documents)
    pairs = sentence_pairs(corpus, max_tokens, np.random.default_rng(seed))
    lengths = np.diff(pairs.first)[:, 0], np.diff(pairs.second)[:, 0]
    assert min(lengths[0].min(), lengths[1].min()) >= 1
    assert (lengths[0] + lengths[1]).max() <= max_tokens
    assert set(pairs.labels.tolist()) <= {IS_NEXT, NOT_NEXT}
    # a true next segment comes from the same document, any other from another one
    same = document_of(corpus, pairs.first) == document_of(corpus, pairs.second)
    assert np.array_equal(same, pairs.labels == IS_NEXT)
    # it follows the first directly, but for tokens cut away so that the pair fits
    gaps = (pairs.second[:, 0] - pairs.first[:, 1])[same]
    assert (gaps >= 0).all() and gaps.sum() <= pairs.truncated
    assert 0 <= pairs.alone <= (pairs.labels == NOT_NEXT).sum()


@given(documents_strategy, st.integers(2, 40), st.integers(0, 9))
def test_nothing_is_lost_but_what_is_counted(documents, max_tokens, seed):
    corpus = corpus_of(documents)
    pairs = sentence_pairs(corpus, max_tokens, np.random.default_rng(seed))
    kept = [*pairs.first.tolist(), *pairs.second[pairs.labels == IS_NEXT].tolist()]
    times = np.zeros(len(corpus.ids), dtype=int)
    for start, end in kept:
        times[start:end] += 1
    assert times.max() == 1  # no token is used twice in these places
    assert (
        times == 0
    ).sum() == pairs.truncated  # borrowed text is counted apart: it stands elsewhere, too


def test_without_truncation_neighbors_touch_and_nothing_is_lost():
    # one token a sentence: a chunk fits exactly, so nothing needs cutting
    corpus = corpus_of([[1] * 500 for _ in range(20)])
    pairs = sentence_pairs(corpus, 10, np.random.default_rng(0))
    next_ones = pairs.labels == IS_NEXT
    assert pairs.truncated == pairs.borrowed_truncated == 0 and next_ones.any()
    assert np.array_equal(pairs.second[next_ones, 0], pairs.first[next_ones, 1])
    covered = np.concatenate([np.arange(*r) for r in [*pairs.first, *pairs.second[next_ones]]])
    assert np.array_equal(np.sort(covered), corpus.ids)


def test_segments_begin_and_end_with_sentences_when_nothing_is_cut():
    corpus = corpus_of([[2] * 400 for _ in range(10)])
    pairs = sentence_pairs(corpus, 12, np.random.default_rng(1))
    assert pairs.truncated == 0
    assert (pairs.first % 2 == 0).all() and (pairs.second % 2 == 0).all()


def test_about_half_are_not_next_and_from_all_other_documents():
    corpus = many_documents(60)
    pairs = sentence_pairs(corpus, 64, np.random.default_rng(0))
    n = len(pairs.labels)
    documents = len(corpus.document_ends)
    share = (pairs.labels == NOT_NEXT).mean()
    deviation = 0.5 / np.sqrt(n)
    # at most once a document a last sentence is left alone, and has no true next one
    assert 0 < pairs.alone <= documents
    assert abs(share - (1 + pairs.alone / n) / 2) < 5 * deviation
    counts = np.bincount(
        document_of(corpus, pairs.second[pairs.labels == NOT_NEXT]), minlength=documents
    )
    expected = counts.mean()  # every document alike: chi-square with 59 degrees of freedom
    assert expected > 5 and ((counts - expected) ** 2 / expected).sum() < 59 + 5 * np.sqrt(2 * 59)


def test_half_in_the_binomial_sense_where_no_sentence_is_alone():
    # two long documents: a sentence is alone twice at most
    corpus = corpus_of([[1] * 40_000, [1] * 40_000])
    labels = sentence_pairs(corpus, 8, np.random.default_rng(3)).labels
    assert abs((labels == NOT_NEXT).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(labels))
    assert len(labels) > 10_000


def test_documents_of_one_sentence_are_always_not_next():
    corpus = corpus_of([[5], [7], [3]])
    pairs = sentence_pairs(corpus, 20, np.random.default_rng(0))
    assert pairs.labels.tolist() == [NOT_NEXT] * 3
    assert pairs.first.tolist() == [[0, 5], [5, 12], [12, 15]]
    assert pairs.truncated == 0
    assert pairs.alone == 3


def test_determinism_by_seed():
    corpus = many_documents(20)
    one, same, other = (
        sentence_pairs(corpus, 64, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    for name in ("first", "second", "labels"):
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert (one.truncated, one.borrowed_truncated, one.alone) == (
        same.truncated,
        same.borrowed_truncated,
        same.alone,
    )
    assert len(one.labels) != len(other.labels) or not np.array_equal(one.labels, other.labels)
