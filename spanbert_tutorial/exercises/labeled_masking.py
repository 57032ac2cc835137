"""Checks for the exercise on collocations of `book/spanbert/name_ranks`."""

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from math import exp, log, prod

from spanbert_tutorial.exercises.diagnosis import Diagnosis, number, say

Words = tuple[str, ...]
Shares = Mapping[Words, float]  # n-gram → its share among all n-grams of its length
Score = Callable[[Words, Shares], float]

CASES = [
    (("fire", "engine"), {("fire",): 0.01, ("engine",): 0.02, ("fire", "engine"): 0.008}),
    (("in", "the"), {("in",): 0.04, ("the",): 0.05, ("in", "the"): 0.002}),
    (
        ("a", "fire", "engine"),
        {
            ("a",): 0.03,
            ("fire",): 0.01,
            ("engine",): 0.02,
            ("a", "fire"): 0.003,
            ("fire", "engine"): 0.008,
            ("a", "fire", "engine"): 0.002,
        },
    ),
    (
        ("town", "hall", "is"),
        {
            ("town",): 0.02,
            ("hall",): 0.01,
            ("is",): 0.05,
            ("town", "hall"): 0.006,
            ("hall", "is"): 0.001,
            ("town", "hall", "is"): 0.0005,
        },
    ),
    (
        ("big", "red", "house"),  # words that rarely occur in pairs
        {
            ("big",): 0.02,
            ("red",): 0.02,
            ("house",): 0.02,
            ("big", "red"): 0.0001,
            ("red", "house"): 0.0002,
            ("big", "red", "house"): 0.00005,
        },
    ),
]


def _how_to_go_on(error: Exception, *case: object) -> str:
    return (
        'The keys of `shares` are tuples, for one word, too: ("fire",).'
        if isinstance(error, KeyError)
        else ""
    )


def cuts(words: Words) -> Iterator[list[Words]]:
    """All ways to cut an n-gram into two parts and more."""
    for number_of_cuts in range(1, len(words)):
        for places in combinations(range(1, len(words)), number_of_cuts):
            ends = [0, *places, len(words)]
            yield [words[first:last] for first, last in zip(ends, ends[1:], strict=False)]


def explained(words: Words, shares: Shares) -> list[float]:
    """The score by each cut, in nats: how much likelier the n-gram is than its parts side by
    side."""
    return [log(shares[words] / prod(shares[part] for part in cut)) for cut in cuts(words)]


def best_cut(words: Words, shares: Shares) -> float:
    """The right answer: the smallest of the scores, that of the cut which explains the n-gram
    best."""
    return min(explained(words, shares))


# --- the likely mistakes ------------------------------------------------------------


MISTAKES: list[tuple[Score, str]] = [
    (
        lambda words, shares: explained(words, shares)[-1],
        "you only cut into single words. For three words there are cuts into two parts, too: one "
        "word and a pair.",
    ),
    (
        lambda words, shares: max(explained(words, shares)),
        "you take the largest score, that of the cut which explains the n-gram worst. Take the "
        "smallest.",
    ),
    (
        lambda words, shares: sum(explained(words, shares)) / len(explained(words, shares)),
        "this is the mean over the cuts. The smallest decides.",
    ),
    (
        lambda words, shares: min(explained(words, shares)[: len(words) - 1]),
        "you cut into two parts only. Three single words are a cut, too, and it may be the one "
        "that explains best.",
    ),
    (
        lambda words, shares: exp(best_cut(words, shares)),
        "you leave out the logarithm: where the words are independent the score is 0, not 1.",
    ),
    (
        lambda words, shares: best_cut(words, shares) / log(2),
        "this is in bits. Take the natural logarithm.",
    ),
    (
        lambda words, shares: -best_cut(words, shares),
        "you flip the sign: divide the n-gram's share by that of its parts.",
    ),
    (
        lambda words, shares: log(shares[words]),
        "this is the log-probability of the n-gram alone. Divide by the probability of its parts "
        "if they were independent.",
    ),
]


diagnose_pmi = Diagnosis(
    cases=CASES,
    where=lambda words, shares: f'for "{" ".join(words)}"',
    read=number,
    returns="one number, in nats",
    hint=_how_to_go_on,
    right=best_cut,
    mistakes=MISTAKES,
    correct="the cut that explains the n-gram best decides, so a frequent part does not lift the "
    "whole.",
)


def check_pmi(attempt: Score) -> None:
    """Prints whether `attempt(words, shares)` gives the score of a pair or a triple of words by its
    best cut, in nats.

    shares: each n-gram, a tuple of words, → its share among all n-grams of its length.
    """
    say(diagnose_pmi(attempt))
