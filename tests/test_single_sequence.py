"""Blocks of one document: every token once, in order; whole sentences where they fit; greedy; cuts
are counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spanbert_tutorial.spanbert.single_sequence import cut_sentence, single_sequence_blocks
from spanbert_tutorial.text.encoding import EncodedCorpus

STARTS = np.array([True, False])  # a vocabulary of two tokens: 0 begins a word, 1 continues one


def corpus_of(documents: list[list[list[int]]]) -> EncodedCorpus:
    """A corpus in memory from documents of sentences of ids."""
    sentences = [sentence for document in documents for sentence in document]
    ids = np.array([i for sentence in sentences for i in sentence], dtype=np.uint16)
    document_lengths = [sum(map(len, document)) for document in documents]
    return EncodedCorpus(
        ids, np.cumsum([len(sentence) for sentence in sentences]), np.cumsum(document_lengths)
    )


def words(*lengths: int) -> list[int]:
    """A sentence of words of these many tokens."""
    return [token for length in lengths for token in [0] + [1] * (length - 1)]


def ranges_of(documents, max_tokens: int) -> list[tuple[int, int]]:
    blocks = single_sequence_blocks(corpus_of(documents), STARTS, max_tokens)
    return [tuple(pair) for pair in blocks.ranges.tolist()]


# a sentence is a list of word lengths; some are longer than any block asked for
sentence_strategy = st.lists(st.integers(1, 4) | st.integers(1, 25), min_size=1, max_size=6).map(
    lambda w: words(*w)
)
documents_strategy = st.lists(
    st.lists(sentence_strategy, min_size=1, max_size=6), min_size=1, max_size=4
)


@given(documents_strategy, st.integers(1, 20))
def test_the_promises(documents, max_tokens):
    corpus = corpus_of(documents)
    blocks = single_sequence_blocks(corpus, STARTS, max_tokens)
    starts, ends = blocks.ranges.T
    lengths = ends - starts
    # every token exactly once, in order
    assert starts[0] == 0 and ends[-1] == len(corpus.ids) and np.array_equal(starts[1:], ends[:-1])
    assert lengths.min() >= 1 and lengths.max() <= max_tokens
    # never across documents
    assert set(corpus.document_ends.tolist()) <= set(ends.tolist())
    # a block ends inside a sentence only where the sentence is longer than a block
    sentence_starts = np.concatenate([[0], corpus.sentence_ends[:-1]])
    long = corpus.sentence_ends - sentence_starts > max_tokens
    inside = set(ends.tolist()) - set(corpus.sentence_ends.tolist())
    sentence_of = np.searchsorted(corpus.sentence_ends, sorted(inside), side="right")
    assert long[sentence_of].all()
    assert blocks.split_sentences == long.sum() == len(set(sentence_of.tolist()))
    assert "0 tokens dropped" in blocks.report


@given(documents_strategy, st.integers(1, 20))
def test_greedy(documents, max_tokens):
    """The next sentence of the same document (or, after a cut, the next word) would not have
    fitted."""
    corpus = corpus_of(documents)
    word_starts = np.flatnonzero(corpus.ids == 0)
    for start, end in single_sequence_blocks(corpus, STARTS, max_tokens).ranges.tolist():
        if end in corpus.document_ends:
            continue
        bounds = (
            corpus.sentence_ends
            if end in corpus.sentence_ends
            else np.append(word_starts, len(corpus.ids))
        )
        next_end = bounds[np.searchsorted(bounds, end, side="right")]
        assert next_end - start > max_tokens


def test_worked_by_hand():
    first = [words(1, 1, 1), words(2, 2), words(1)]  # ends at 3, 7, 8
    second = [words(5)]  # ends at 13
    assert ranges_of([first, second], 8) == [(0, 8), (8, 13)]
    assert ranges_of([first, second], 7) == [(0, 7), (7, 8), (8, 13)]
    assert ranges_of([first, second], 5) == [(0, 3), (3, 8), (8, 13)]
    assert ranges_of([first, second], 100) == [(0, 8), (8, 13)]


def test_a_long_sentence_is_cut_at_word_starts_and_its_rest_packed_on():
    # words of 2, 3 and 2 tokens; then a sentence of 1 token
    document = [words(2, 3, 2), words(1)]
    # the rest of 2 tokens takes the next sentence in
    assert ranges_of([document], 4) == [(0, 2), (2, 5), (5, 8)]
    assert ranges_of([document], 5) == [(0, 5), (5, 8)]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=10), st.integers(1, 10))
def test_cut_sentence(lengths, max_tokens):
    ids = np.array(words(*lengths))
    cuts = cut_sentence(ids, STARTS, max_tokens)
    assert [begin for begin, _ in cuts] == [0] + [end for _, end in cuts[:-1]]
    assert cuts[-1][1] == len(ids)
    assert all(0 < end - begin <= max_tokens for begin, end in cuts)
    for begin, end in cuts[:-1]:
        # inside a word only where that word alone fills the block
        assert ids[end] == 0 or (ids[begin + 1 : end + 1] == 1).all()
