"""Who took spans up: the formats of T5 and BART, T5's and UL2's masks, the orders of XLNet.

Chapter: `book/relatives/beyond`. Sources: T5 §3.1.4 and the released code, BART §2.2, UL2 §3.1,
XLNet §2.3. Shapes: n sequence, k spans.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial.errors import require
from spanbert_tutorial.spanbert.span_masking import spans_of


def replace_spans(
    ids: np.ndarray, spans: np.ndarray, marks: Sequence[int]
) -> np.ndarray:
    """The ids with one mark in place of each span, int64.

    spans: int [k,2], first and last position; marks: k of them."""
    parts: list[Sequence[int] | np.ndarray] = []
    start = 0
    for mark, (first, last) in zip(marks, spans, strict=True):
        parts += [ids[start:first], [mark]]
        start = last + 1
    parts.append(ids[start:])
    return np.concatenate(parts).astype(np.int64)


def text_infilling(
    ids: np.ndarray, masked: np.ndarray, mask_id: int
) -> np.ndarray:
    """BART's input: one [MASK] per span. The target is all of ids.

    BART §2.2, which also puts [MASK] where nothing is missing; not here. ids: int [n]; masked:
    bool [n]."""
    spans = spans_of(masked)
    return replace_spans(ids, spans, [mask_id] * len(spans))


def span_corruption(
    ids: np.ndarray, masked: np.ndarray, sentinels: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """T5's input and target: a sentinel for each span, and one more.

    The target is each sentinel and what it replaces; the last one ends it. T5 §3.1.4. ids: int
    [n]; masked: bool [n], as from `SpanMasking`; sentinels: k + 1 ids that the text lacks."""
    spans = spans_of(masked)
    k = len(spans)
    require(len(sentinels) > k, f"give {k + 1} sentinels or more.")
    source = replace_spans(ids, spans, sentinels[:k])
    target: list[int] = []
    for sentinel, (first, last) in zip(sentinels, spans, strict=False):
        target += [sentinel, *ids[first : last + 1]]
    return source, np.array([*target, sentinels[k]], dtype=np.int64)


def noise_mask(
    n: int, rate: float, mean_length: float, rng: np.random.Generator
) -> np.ndarray:
    """T5's spans, bool [n]: their number is fixed, their ends drawn.

    rate: of the tokens; mean_length: of a span, in tokens. The text begins visible and ends with
    a span."""
    tokens = min(max(round(n * rate), 1), n - 1)
    k = min(max(round(tokens / mean_length), 1), n - tokens)

    def cut(length: int) -> np.ndarray:  # into k parts, at random
        ends = 1 + rng.choice(length - 1, size=k - 1, replace=False)
        return np.diff(np.sort(ends), prepend=0, append=length)

    lengths = np.stack([cut(n - tokens), cut(tokens)], axis=1)
    return np.repeat(np.arange(2 * k) % 2 == 1, lengths.ravel())


def order_patterns(order: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Attention masks (content, query) of an order, bool [n,n] each.

    Row i: what position i may look at. content: itself and all that come earlier in the order.
    query, which predicts: only those. The order 0, 1, 2, … is left-to-right. XLNet §2.3."""
    positions = torch.tensor(list(order), dtype=torch.long)
    n = len(positions)
    require(
        torch.equal(positions.sort().values, torch.arange(n)),
        f"{order} is no order: give 0 to {n - 1} once each.",
    )
    rank = torch.empty(n, dtype=torch.long)
    rank[positions] = torch.arange(n)
    return rank[:, None] >= rank, rank[:, None] > rank
