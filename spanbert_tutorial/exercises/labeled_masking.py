"""Check for the exercise on collocations of `book/spanbert/name_ranks`."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import log, prod

from spanbert_tutorial.exercises.diagnosis import Diagnosis

Words = tuple[str, ...]
Shares = Mapping[Words, float]  # n-gram → its share among all n-grams of its length


def case(text: str, *shares: float) -> tuple[Words, Shares]:
    """An n-gram with the shares of its words, then of its pairs, then its own."""
    words = tuple(text.split())
    runs = [words[a : a + n] for n in range(1, len(words) + 1) for a in range(len(words) - n + 1)]
    return words, dict(zip(runs, shares, strict=True))


CASES = [
    case("fire engine", 0.01, 0.02, 0.008),
    case("in the", 0.04, 0.05, 0.002),
    case("a fire engine", 0.03, 0.01, 0.02, 0.003, 0.008, 0.002),
    case("town hall is", 0.02, 0.01, 0.05, 0.006, 0.001, 0.0005),
    case("big red house", 0.02, 0.02, 0.02, 0.0001, 0.0002, 0.00005),  # rarely in pairs
]


def cuts(words: Words) -> Iterator[list[Words]]:
    """All ways to cut an n-gram into two parts and more."""
    for count in range(1, len(words)):
        for places in combinations(range(1, len(words)), count):
            ends = [0, *places, len(words)]
            yield [words[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def scores(words: Words, shares: Shares) -> list[float]:
    """By each cut, in nats: how much likelier the n-gram is than its parts side by side."""
    return [log(shares[words] / prod(shares[part] for part in cut)) for cut in cuts(words)]


MISTAKES = (
    (
        lambda *case: scores(*case)[-1],
        "you only cut into single words. For three words there are cuts into two parts, too: one "
        "word and a pair.",
    ),
    (
        lambda *case: max(scores(*case)),
        "you take the largest score, that of the cut which explains the n-gram worst. Take the "
        "smallest.",
    ),
    (lambda *case: min(scores(*case)) / log(2), "this is in bits. Take the natural logarithm."),
)

diagnose_pmi = Diagnosis(
    CASES,
    lambda *case: min(scores(*case)),
    MISTAKES,
    "the cut that explains the n-gram best decides, so a frequent part does not lift the whole.",
    returns="one number, in nats",
    read=float,
)

#: Prints whether `attempt(words, shares)` gives the score of a pair or a triple of words by its
#: best cut, in nats. shares: each n-gram, a tuple of words, → its share among its length.
check_pmi = diagnose_pmi.say
