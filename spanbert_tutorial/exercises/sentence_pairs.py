"""Check for the exercise of `book/bert/sentence_pairs`."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.bert.sentence_pairs import IS_NEXT, NOT_NEXT
from spanbert_tutorial.exercises.diagnosis import NotYet, ask, say, verdict

# Four documents in which every sentence is another one, so that a sentence tells where it comes
# from.
DOCUMENTS = [[f"{name}{i}" for i in range(1, 8)] for name in "abcd"]
CHUNKS = [(1, 0, 5), (0, 2, 6), (2, 3, 7), (3, 4, 6)]  # document, first sentence, end
DRAWS = 100  # times each chunk is tried
FAIR = (
    0.35,
    0.65,
)  # 400 tosses of a fair coin lie outside of this less than once in a billion times

Attempt = Callable[[list, int, int, int, np.random.Generator], tuple]


def check_pair(attempt: Attempt) -> None:
    """Prints whether `attempt(documents, number, at, stop, rng)` makes a pair from one chunk as
    BERT does."""
    say(diagnose_pair(attempt))


@verdict
def diagnose_pair(attempt: Attempt) -> str:
    """One sentence: correct, or the likely mistake.

    The chunk is `documents[number][at:stop]`. The attempt returns (first, second, label, next_at):
    two lists of sentences, the label, and the sentence with which the next chunk begins.
    """
    kinds: Counter[tuple[int, int]] = Counter()
    middles: Counter[tuple[int, int, int]] = Counter()
    borrowed = defaultdict(set)
    rng = np.random.default_rng(0)
    answers = ask(
        lambda documents, number, at, stop: attempt(documents, number, at, stop, rng),
        [(DOCUMENTS, *chunk) for chunk in CHUNKS * DRAWS],
        read=_four,
        returns="four things: the first segment, the second, the label, and the next chunk's start",
    )
    for (_, number, at, stop), _, pair in answers:
        first, second, label, _ = pair
        kind = pair_kind(pair, number, at, stop)
        kinds[kind, label] += 1
        middles[at, stop, len(first)] += 1
        if kind == NOT_NEXT:
            borrowed[number].add(second[0])
    judge_draws(kinds, middles, borrowed)
    return "a random split, a fair coin, and no sentence lost."


def _four(answer: Any, *case: object) -> tuple:
    first, second, label, next_at = answer
    return list(first), list(second), label, next_at


def pair_kind(pair: tuple, number: int, at: int, stop: int) -> int:
    """What the second segment of an answer really is, IS_NEXT or NOT_NEXT. Raises NotYet if the
    pair is none."""
    first, second, label, next_at = pair
    chunk = DOCUMENTS[number][at:stop]
    middle = at + len(first)
    if not first:
        raise NotYet(
            "a first segment is empty. Split after the first sentence at the earliest: draw from "
            "at + 1."
        )
    if not second and len(first) < len(chunk):
        raise NotYet(
            "a borrowed segment is empty. Draw its first sentence from 0 to the length of its "
            "document − 1."
        )
    if not second:
        raise NotYet("a second segment is empty. Leave at least one sentence of the chunk for it.")
    if first != chunk[: len(first)]:
        raise NotYet(
            f"of the chunk {chunk}, the first segment is {first}. It is the chunk's beginning, "
            f"in order."
        )
    if first == chunk:
        raise NotYet(
            "a first segment is the whole chunk. Split before its last sentence at the latest: "
            "draw up to stop − 1."
        )
    if label not in (IS_NEXT, NOT_NEXT):
        raise NotYet(f"a label is {label!r}. Give 0 for IsNext and 1 for NotNext.")
    if second == chunk[len(first) :]:
        if next_at == middle:
            raise NotYet(
                "you begin the next chunk inside an IsNext pair, so its second segment is "
                "used twice."
            )
        if next_at != stop:
            raise NotYet(f"the next chunk begins at {next_at}, and the chunk ends at {stop}.")
        return IS_NEXT
    if second[: len(chunk) - len(first)] == chunk[len(first) :]:
        raise NotYet("the second segment runs past the chunk. End it before sentence `stop`.")
    homes = {sentence[0] for sentence in second}
    if homes == {DOCUMENTS[number][0][0]}:
        raise NotYet("you take a NotNext segment from the same document. Draw it from another one.")
    run = [sentence for document in DOCUMENTS for sentence in document if sentence[0] in homes]
    begin = run.index(second[0]) if second[0] in run else 0
    if len(homes) > 1 or second != run[begin : begin + len(second)]:
        raise NotYet("a NotNext segment is not a run of sentences of one other document.")
    if next_at == stop:
        raise NotYet(
            "you lose the replaced part of the chunk after a NotNext pair. "
            "It is in no pair yet, so the next chunk begins with it."
        )
    if next_at != middle:
        raise NotYet(f"the next chunk begins at {next_at}; the first segment ends at {middle}.")
    return NOT_NEXT


def judge_draws(kinds: Counter, middles: Counter, borrowed: dict[int, set[str]]) -> None:
    """Judges labels, shares and places; raises NotYet. kinds: (what it is, label) → times; middles:
    (at, stop, length of first) → times; borrowed: number of the chunk's document → first sentences
    of NotNext segments."""
    wrong = kinds[IS_NEXT, NOT_NEXT] + kinds[NOT_NEXT, IS_NEXT]
    if wrong == sum(kinds.values()):
        raise NotYet(
            "you reverse the labels. Here, as in transformers, 0 is IsNext and 1 is NotNext."
        )
    if wrong:
        raise NotYet(f"{wrong} of {sum(kinds.values())} labels are wrong for their pairs.")
    share = kinds[NOT_NEXT, NOT_NEXT] / sum(kinds.values())
    if not FAIR[0] < share < FAIR[1]:
        raise NotYet(f"{share:.0%} of the pairs are NotNext. Toss a fair coin for each pair.")
    # about 50 draws from three documents of seven sentences: two or fewer of either come less than
    # once in a million
    documents, places = (
        [{s[part] for s in found} for found in borrowed.values()] for part in (0, slice(1, None))
    )
    if min(map(len, [*documents, *places])) < 3:
        raise NotYet(
            "you always take the NotNext text for a chunk from the same document or begin at the "
            "same sentence. "
            "Draw both."
        )
    at, stop, _ = max(middles, key=lambda key: key[1] - key[0])
    lengths = {length for a, b, length in middles if (a, b) == (at, stop)}
    if len(lengths) < stop - at - 1:
        raise NotYet(
            f"a chunk of {stop - at} sentences is split only after {sorted(lengths)}. "
            f"Draw the split: 1 to {stop - at - 1}."
        )
