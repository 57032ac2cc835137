"""Check for the exercise of `book/bert/sentence_pairs`."""

from collections.abc import Callable

import numpy as np

from spanbert_tutorial.bert.sentence_pairs import IS_NEXT, NOT_NEXT
from spanbert_tutorial.exercises.diagnosis import say, stopped

# Four documents in which every sentence is another one, so that a sentence tells where it comes
# from.
DOCUMENTS = [[f"{name}{i}" for i in range(1, 8)] for name in "abcd"]
CHUNKS = [(1, 0, 5), (0, 2, 6), (2, 3, 7), (3, 4, 6)]  # document, first sentence, end
DRAWS = 100  # times each chunk is tried
FAIR = (0.35, 0.65)  # 400 tosses of a fair coin are outside less than once in a billion times
PAIR = "a pair is the chunk's beginning, then its rest or a run of sentences of another document"


def check_pair(attempt: Callable[..., tuple]) -> None:
    """Prints whether `attempt(documents, number, at, stop, rng)` makes a pair from one chunk as
    BERT does: (first, second, label, next_at)."""
    say(diagnose_pair(attempt))


def diagnose_pair(attempt: Callable[..., tuple]) -> str:
    """One sentence: correct, or the likely mistake. The chunk is `documents[number][at:stop]`."""
    rng = np.random.default_rng(0)
    labels, splits = [], set()
    for number, at, stop in CHUNKS * DRAWS:
        try:
            first, second, label, next_at = attempt(DOCUMENTS, number, at, stop, rng)
            problem = _problem(number, at, stop, list(first), list(second), label, next_at)
        except Exception as error:  # whatever the reader's code raises
            return stopped(error)
        if problem:
            return f"Not yet: {problem}."
        labels.append(label)
        splits.add((number, len(first)))
    share = float(np.mean(labels))
    if not FAIR[0] < share < FAIR[1]:
        return f"Not yet: {share:.0%} of the pairs are NotNext. Toss a fair coin for each pair."
    if len(splits) < sum(stop - at - 1 for _, at, stop in CHUNKS):
        return "Not yet: some splits of a chunk never occur. Draw from at + 1 to stop − 1."
    return "Correct: a random split, a fair coin, and no sentence lost."


def _problem(
    number: int, at: int, stop: int, first: list, second: list, label: int, next_at: int
) -> str:
    chunk, middle = DOCUMENTS[number][at:stop], at + len(first)
    if not first or not second or first != chunk[: len(first)] or first == chunk:
        return PAIR
    if second == chunk[len(first) :]:
        wanted, after = IS_NEXT, stop
    else:
        homes = [document for document in DOCUMENTS if second[0] in document]
        wanted, after = NOT_NEXT, middle
        if homes == [DOCUMENTS[number]]:
            return "you take a NotNext segment from the same document. Draw it from another one"
        begin = homes[0].index(second[0]) if homes else 0
        if not homes or second != homes[0][begin : begin + len(second)]:
            return PAIR
    if label != wanted:
        return "a label is wrong. Here, as in transformers, 0 is IsNext and 1 is NotNext"
    if wanted == NOT_NEXT and next_at == stop:
        return (
            "you lose the replaced part of the chunk after a NotNext pair. "
            "It is in no pair yet, so the next chunk begins with it"
        )
    return "" if next_at == after else f"the next chunk begins at {next_at}; it should be {after}"
