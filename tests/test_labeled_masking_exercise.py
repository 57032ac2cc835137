"""The exercise on the score of collocations: right answers pass, each mistake is named."""

import math
from itertools import pairwise

import pytest

from spanbert_tutorial.exercises import labeled_masking as exercise
from spanbert_tutorial.spanbert import collocations


def from_the_left(words, share):
    """The best way to cut the first so many words, from that of fewer."""
    best = [0.0]
    for end in range(1, len(words) + 1):
        parts = [(at, words[at:end]) for at in range(end) if words[at:end] != words]
        best.append(max(best[at] + math.log(share[part]) for at, part in parts))
    return math.log(share[words]) - best[-1]


@pytest.mark.parametrize("attempt", [exercise.best_cut, from_the_left])
def test_every_right_way_is_correct(attempt):
    assert exercise.diagnose_pmi(attempt).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", exercise.MISTAKES)
def test_each_mistake_is_named_and_differs_from_the_others(mistake, sentence):
    assert exercise.diagnose_pmi(mistake) == f"Not yet: {sentence}"


def test_what_is_wrong_otherwise_is_told():
    assert "are tuples" in exercise.diagnose_pmi(lambda words, share: share[words[0]])
    assert "returns nothing" in exercise.diagnose_pmi(lambda words, share: None)
    assert "the right answer is" in exercise.diagnose_pmi(lambda words, share: 0.5)


def test_all_cuts_of_four_words():
    words = tuple("abcd")
    some = list(exercise.cuts(words))
    assert len(some) == len({tuple(cut) for cut in some}) == 7
    assert all(sum(cut, ()) == words and len(cut) > 1 for cut in some)


def test_the_package_scores_alike():
    """The package counts; here whole numbers stand for the shares, over a common total."""
    total = 100_000
    for words, share in exercise.CASES:
        counts = [
            {part: value * total for part, value in share.items() if len(part) == n}
            for n in (1, 2, 3)
        ]
        assert collocations.score(words, counts, [total] * 3) == pytest.approx(
            exercise.best_cut(words, share)
        )


def test_each_cut_is_the_best_one_of_some_case():
    scores = [
        exercise.explained(words, share) for words, share in exercise.CASES if len(words) == 3
    ]
    assert {some.index(min(some)) for some in scores} == {0, 1, 2}
    for words, share in exercise.CASES:  # a pair is never more frequent than its words
        assert all(share[pair] <= min(share[(one,)] for one in pair) for pair in pairwise(words))
