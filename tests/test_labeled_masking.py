"""Labeled units, such as entities, as units of masking."""

import numpy as np
import pytest

from spanbert_tutorial.bert.masking import Blocks
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.spanbert.labeled_masking import ENTITY, LabeledMasking, words_of
from spanbert_tutorial.spanbert.span_masking import spans_of


def blocks(spans, words=20, rows=1, kind=ENTITY):
    """Rows of words of two tokens, with these spans in each."""
    starts = np.tile(np.arange(2 * words) % 2 == 0, (rows, 1))
    labeled = np.array([(row, *span, kind) for row in range(rows) for span in spans]).reshape(-1, 4)
    return Blocks(starts, np.full(rows, 2 * words), np.zeros(starts.shape, dtype=int), labeled)


def test_spans_and_words_are_chosen_whole_and_within_the_budget():
    some = blocks([(4, 7), (20, 21), (30, 35)], rows=300)
    rng = np.random.default_rng(0)
    selected = LabeledMasking(0.2).select_blocks(some, rng)  # 8 of 40 tokens
    assert selected.sum(1).max() == 8 and selected.sum(1).min() >= 6
    for row in selected:
        assert all(first % 2 == 0 and last % 2 == 1 for first, last in spans_of(row))
    inside = [
        selected[:, first : last + 1].all(1).mean() for first, last in ((4, 7), (20, 21), (30, 35))
    ]
    # a span is chosen far more often than a word outside
    assert min(inside) > 2 * selected[:, 10:12].all(1).mean()


def test_the_share_of_spans_among_the_draws():
    """A budget of one unit, spans as long as words: the first draw decides."""
    some = blocks([(0, 1), (2, 3)], rows=4_000)
    rng = np.random.default_rng(0)
    for share, wanted in ((0.0, 2 / 20), (0.5, 0.5 + 0.5 * 2 / 20), (1.0, 1.0)):
        selected = LabeledMasking(0.05, share=share).select_blocks(some, rng)
        assert (selected.sum(1) == 2).all()
        assert selected[:, :4].any(1).mean() == pytest.approx(wanted, abs=0.03)


def test_a_text_without_labels_and_wrong_numbers_are_refused():
    with pytest.raises(InputError, match="no labeled units of kind 1"):
        LabeledMasking().check(np.array([[0, 2, 3]]))
    LabeledMasking().check(np.array([[0, 2, ENTITY]]))
    for wrong in ({"share": 1.5}, {"share": float("nan")}, {"share": "half"}):
        with pytest.raises(InputError):
            LabeledMasking(**wrong)


def test_words_have_first_and_last_tokens():
    assert words_of(np.array([True, False, True, True])).tolist() == [[0, 1], [2, 2], [3, 3]]
