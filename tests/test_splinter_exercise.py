"""The exercise's check accepts the right clusters and names each likely mistake."""

from functools import partial
from unittest.mock import patch

import pytest

from spanbert_tutorial.exercises import splinter as exercise
from spanbert_tutorial.exercises.splinter import (
    CASES,
    MISTAKES,
    check_clusters,
    clusters_with,
    diagnose_clusters,
)
from spanbert_tutorial.relatives import splinter


def test_the_answer_is_accepted_in_any_order():
    assert diagnose_clusters(clusters_with).startswith("Correct")
    assert diagnose_clusters(
        lambda words, stop: [spans[::-1] for spans in clusters_with(words, stop)[::-1]]
    ).startswith("Correct")


@pytest.mark.parametrize("words, stop", CASES)
def test_the_answer_is_that_of_the_module(words, stop):
    with patch.object(splinter, "STOP_WORDS", frozenset(stop)):
        found = splinter.recurring_spans(words)
    assert sorted(found) == clusters_with(words, stop)


@pytest.mark.parametrize("mistake, sentence", MISTAKES.items())
def test_each_mistake_is_named(mistake, sentence):
    told = diagnose_clusters(partial(clusters_with, **dict([mistake])))
    assert told == f"Not yet: {sentence}."


def test_two_mistakes_are_both_named():
    told = diagnose_clusters(partial(clusters_with, single=True, lower=True))
    assert MISTAKES["single", True] in told and MISTAKES["lower", True] in told


def test_other_answers(capsys):
    assert "returns nothing" in diagnose_clusters(lambda words, stop: None)
    assert "Return a list of clusters" in diagnose_clusters(lambda words, stop: [(1, 2)])
    assert "the right answer is [[" in diagnose_clusters(lambda words, stop: [])
    assert "IndexError" in diagnose_clusters(lambda words, stop: [words[999]])
    check_clusters(clusters_with)
    assert capsys.readouterr().out.startswith("Correct: the longest choose first")
    assert exercise.MAX_WORDS == splinter.MAX_TOKENS
