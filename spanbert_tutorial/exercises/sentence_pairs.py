"""Check for the exercise of `book/bert/sentence_pairs`."""

from collections import Counter, defaultdict
from collections.abc import Callable
from textwrap import fill

import numpy as np

from spanbert_tutorial.sentence_pairs import IS_NEXT, NOT_NEXT

# Four documents in which every sentence is another one, so that a sentence tells where it comes from.
DOCUMENTS = [[f"{name}{i}" for i in range(1, 8)] for name in "abcd"]
CHUNKS = [(1, 0, 5), (0, 2, 6), (2, 3, 7), (3, 4, 6)]  # document, first sentence, end
DRAWS = 100  # times each chunk is tried
FAIR = (0.35, 0.65)  # 400 tosses of a fair coin lie outside of this less than once in a billion times

Attempt = Callable[[list, int, int, int, np.random.Generator], tuple]


def check_pair(attempt: Attempt) -> None:
    """Prints whether `attempt(documents, number, at, stop, rng)` makes a pair from one chunk as BERT does."""
    print(fill(diagnose_pair(attempt), 68))


def diagnose_pair(attempt: Attempt) -> str:
    """One sentence: correct, or the likely mistake.

    The chunk is `documents[number][at:stop]`. The attempt returns (first, second, label, next_at): two lists of
    sentences, the label, and the sentence with which the next chunk begins.
    """
    kinds, middles, borrowed, rng = Counter(), Counter(), defaultdict(set), np.random.default_rng(0)
    for number, at, stop in CHUNKS * DRAWS:
        answer = attempt([list(document) for document in DOCUMENTS], number, at, stop, rng)
        if answer is None:
            return "Not yet: the function returns nothing. End it with `return`."
        if not isinstance(answer, (tuple, list)) or len(answer) != 4:
            return "Not yet: return four things: the first segment, the second, the label, and the next chunk's start."
        kind = pair_kind(answer, number, at, stop)
        if kind not in (IS_NEXT, NOT_NEXT):
            return f"Not yet: {kind}."
        kinds[kind, answer[2]] += 1
        middles[at, stop, len(answer[0])] += 1
        if kind == NOT_NEXT:
            borrowed[number].add(answer[1][0])
    return verdict(kinds, middles, borrowed)


def pair_kind(answer: tuple, number: int, at: int, stop: int) -> int | str:
    """What the second segment of an answer really is, IS_NEXT or NOT_NEXT; or what is wrong with the pair."""
    first, second, label, next_at = list(answer[0]), list(answer[1]), answer[2], answer[3]
    chunk, middle = DOCUMENTS[number][at:stop], at + len(first)
    if not first:
        return "a first segment is empty. Split after the first sentence at the earliest: draw from at + 1"
    if not second and len(first) < len(chunk):
        return "a borrowed segment is empty. Draw its first sentence from 0 to the length of its document − 1"
    if not second:
        return "a second segment is empty. Leave at least one sentence of the chunk for it"
    if first != chunk[: len(first)]:
        return f"of the chunk {chunk}, the first segment is {first}. It is the chunk's beginning, in order"
    if first == chunk:
        return "a first segment is the whole chunk. Split before its last sentence at the latest: draw up to stop − 1"
    if label not in (IS_NEXT, NOT_NEXT):
        return f"a label is {label!r}. Give 0 for IsNext and 1 for NotNext"
    if second == chunk[len(first) :]:
        if next_at == middle:
            return "after an IsNext pair the next chunk begins inside the pair, so its second segment is used twice"
        return IS_NEXT if next_at == stop else f"the next chunk begins at {next_at}, and the chunk ends at {stop}"
    if second[: len(chunk) - len(first)] == chunk[len(first) :]:
        return "the second segment goes on behind the chunk. End it before sentence `stop`"
    homes = {sentence[0] for sentence in second}
    if homes == {DOCUMENTS[number][0][0]}:
        return "a NotNext segment comes from the same document. Draw it from another one"
    run = [sentence for document in DOCUMENTS for sentence in document if sentence[0] in homes]
    begin = run.index(second[0]) if second[0] in run else 0
    if len(homes) > 1 or second != run[begin : begin + len(second)]:
        return "a NotNext segment is no run of sentences of one other document"
    if next_at == stop:
        return (
            "after a NotNext pair the replaced part of the chunk is lost. "
            "Nobody has read it yet, so the next chunk begins with it"
        )
    return NOT_NEXT if next_at == middle else f"the next chunk begins at {next_at}; the first segment ends at {middle}"


def verdict(kinds: Counter, middles: Counter, borrowed: dict[int, set[str]]) -> str:
    """Judges labels, shares and places. kinds: (what it is, label) → times; middles: (at, stop, length of first) →
    times; borrowed: number of the chunk's document → first sentences of NotNext segments."""
    wrong = kinds[IS_NEXT, NOT_NEXT] + kinds[NOT_NEXT, IS_NEXT]
    if wrong == sum(kinds.values()):
        return "Not yet: the labels are reversed. Here, as in transformers, 0 is IsNext and 1 is NotNext."
    if wrong:
        return f"Not yet: {wrong} of {sum(kinds.values())} labels do not fit their pairs."
    share = kinds[NOT_NEXT, NOT_NEXT] / sum(kinds.values())
    if not FAIR[0] < share < FAIR[1]:
        return f"Not yet: {share:.0%} of the pairs are NotNext. Toss a fair coin for each pair."
    # about 50 draws from three documents of seven sentences: two or fewer of either come less than once in a million
    documents, places = ([{s[part] for s in found} for found in borrowed.values()] for part in (0, slice(1, None)))
    if min(map(len, [*documents, *places])) < 3:
        return (
            "Not yet: NotNext text for a chunk always comes from the same document or begins at the same sentence. "
            "Draw both."
        )
    at, stop, _ = max(middles, key=lambda key: key[1] - key[0])
    lengths = {length for a, b, length in middles if (a, b) == (at, stop)}
    if len(lengths) < stop - at - 1:
        return (
            f"Not yet: a chunk of {stop - at} sentences is split only after {sorted(lengths)}. "
            f"Draw the place: 1 to {stop - at - 1}."
        )
    return "Correct: a random split, a fair coin, and no sentence lost."
