"""Span masking of a batch, raced against a plain loop of the released code's rules.

`python -m benchmarks.masking [OUTPUT.json]`: n = 512, one thread; million tokens a second of
choosing and replacing. Then the mode that breaks words as the released code does, against the same
loop.
"""

import random
from bisect import bisect

import numpy as np

from benchmarks.race import keep, race
from spanbert_tutorial.bert.masking import corrupt
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric

MASK = 4
VOCABULARY = 8_000
N = 512
CUMULATED = np.cumsum(clipped_geometric()).tolist()


def plain_block(
    ids: list[int], starts: list[int], frequent: list[int], rng: random.Random
) -> list[int]:
    """One block by the rules of the released code, in plain Python. starts: of words, and n;
    frequent: to draw from."""
    budget = -(-len(ids) * 15 // 100)
    masked = set()
    while len(masked) < budget:
        length = bisect(CUMULATED, rng.random()) + 1
        anchor = rng.randrange(len(ids))
        if anchor in masked:
            continue  # the length is thrown away, too
        word = bisect(starts, anchor) - 1
        places = range(starts[word], starts[min(word + length, len(starts) - 1)])
        masked.update([place for place in places if place not in masked][: budget - len(masked)])
    seen = list(ids)
    before = None
    for place in sorted(masked):
        if before != place - 1:
            draw = rng.random()  # once for spans that touch
        if draw < 0.9:
            seen[place] = MASK if draw < 0.8 else frequent[rng.randrange(len(frequent))]
        before = place
    return seen


def compare(rows: int, masking: SpanMasking) -> dict:
    """`select_batch` and `corrupt` against the loop, on the same random blocks."""
    rng = np.random.default_rng(0)
    loop_rng = random.Random(0)
    ids = rng.integers(5, VOCABULARY, (rows, N))
    word_starts = rng.random((rows, N)) < 0.75
    word_starts[:, 0] = True
    lengths = np.full(rows, N)
    frequent = rng.integers(5, VOCABULARY, 10**6)
    frequent_list = frequent.tolist()
    both = zip(ids.tolist(), word_starts, strict=True)
    lists = [(row, [*np.flatnonzero(starts).tolist(), N]) for row, starts in both]

    def fast():
        selected = masking.select_batch(word_starts, lengths, rng)
        return corrupt(ids, selected, rng, mask_id=MASK, random_ids=frequent)

    def plain():
        return [plain_block(row, starts, frequent_list, loop_rng) for row, starts in lists]

    result = race(fast, plain, rounds=15)
    seconds = result.pop("seconds")
    return result | {
        "million_tokens_a_second": [round(rows * N / each / 1e6, 2) for each in seconds]
    }


def main() -> None:
    results = {f"batch of {rows}": compare(rows, SpanMasking()) for rows in (32, 64, 256)}
    released = compare(64, SpanMasking(complete_words=False))
    keep("speed_masking", {"tokens": N, **results, "batch of 64, words may break": released})


if __name__ == "__main__":
    main()
