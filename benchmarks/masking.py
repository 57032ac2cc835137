"""Span masking of a batch, raced against a plain loop of the released code's rules (SpanBERT §3.1).

`python -m benchmarks.masking [OUTPUT.json]`: n = 512, one thread; million tokens a second of choosing and replacing.
"""

import random
from bisect import bisect

import numpy as np

from benchmarks.race import keep, race
from spanbert_tutorial.masking import corrupt
from spanbert_tutorial.span_masking import SpanMasking, clipped_geometric

MASK, VOCABULARY, N = 4, 8_000, 512
CUMULATED = np.cumsum(clipped_geometric()).tolist()


def plain_block(ids: list[int], starts: list[int], rng: random.Random) -> list[int]:
    """One block: spans of whole words until the budget is spent, then 80/10/10 a span. starts: of words, and n."""
    budget, masked, seen = -(-len(ids) * 15 // 100), set(), list(ids)
    while len(masked) < budget:
        length = bisect(CUMULATED, rng.random()) + 1
        word = bisect(starts, rng.randrange(len(ids))) - 1
        first, last = starts[word], starts[min(word + length, len(starts) - 1)]
        if first in masked:
            continue
        chosen = [place for place in range(first, last) if place not in masked][: budget - len(masked)]
        masked.update(chosen)
        draw = rng.random()
        for place in chosen:
            seen[place] = MASK if draw < 0.8 else rng.randrange(VOCABULARY) if draw < 0.9 else ids[place]
    return seen


def main() -> None:
    results = {"tokens": N}
    rng, loop_rng = np.random.default_rng(0), random.Random(0)
    for rows in (32, 64, 256):
        ids = rng.integers(5, VOCABULARY, (rows, N))
        word_starts = rng.random((rows, N)) < 0.75
        word_starts[:, 0] = True
        lengths, frequent = np.full(rows, N), rng.integers(5, VOCABULARY, 10**6)
        both = zip(ids.tolist(), word_starts, strict=True)
        lists = [(row, [*np.flatnonzero(starts).tolist(), N]) for row, starts in both]

        def fast(ids=ids, word_starts=word_starts, lengths=lengths, frequent=frequent):
            selected = SpanMasking().select_batch(word_starts, lengths, rng)
            return corrupt(ids, selected, rng, mask_id=MASK, random_ids=frequent)

        def plain(lists=lists):
            return [plain_block(row, starts, loop_rng) for row, starts in lists]

        result = race(fast, plain, rounds=15)
        result["million_tokens_a_second"] = [round(rows * N / time / 1e6, 2) for time in result.pop("seconds")]
        results[f"batch of {rows}"] = result
    keep("speed_masking", results)


if __name__ == "__main__":
    main()
