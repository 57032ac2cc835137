"""Checks for the exercises of Part II. Chapters: `book/spanbert/span_masking`,
`book/spanbert/boundary`, `book/spanbert/single_sequence`, `book/spanbert/pretraining_spanbert`,
`book/spanbert/name_ranks`.
"""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.spanbert.name_ranks import rank, score_names
from spanbert_tutorial.spanbert.span_masking import spans_of

# --- span_masking: the words that fit a budget --------------------------------------

#: Prints whether `attempt(sizes, budget)` says how many words of a span fit the budget.
check_cut = Check(
    [
        ([1, 1, 1], 3),
        ([1, 1, 1], 2),
        ([2, 3, 4], 4),
        ([4, 1, 1], 3),
        ([1, 5, 1, 1], 3),
        ([3], 3),
        ([], 5),
    ],
    lambda sizes, budget: (np.cumsum(sizes) <= budget).sum(),
    {
        "your last word is broken, or exceeds the budget. Check "
        "before you take a word.": lambda sizes, budget: (np.cumsum(sizes) - sizes < budget).sum(),
        "a span may spend the budget to the last token: use ≤, not <.": lambda sizes, budget: (
            np.cumsum(sizes) < budget
        ).sum(),
        "that is a number of tokens. Count words.": lambda sizes, budget: min(budget, sum(sizes)),
    },
    "the span ends after the last whole word that fits.",
    returns="one number: how many words fit",
)

# --- boundary: the rows of the boundary head ----------------------------------------


def rows(spans: list, n: int, *, shift: int = 1, first: int = 1, fused: bool = True) -> list:
    """The exercise's answer. shift: of [CLS]; first: the first position; fused: touching spans are
    one."""
    if fused:
        inside = [any(a <= at <= b for a, b in spans) for at in range(n)]
        spans = spans_of(np.array(inside)).tolist()
    inner = [(a, b) for a, b in spans if a > 0 and b < n - 1]
    return [(a - 1 + shift, b + 1 + shift, list(range(first, first + b - a + 1))) for a, b in inner]


BLOCK = "you give indices in the block. The model's input has [CLS] in front, so add 1"
APART = "you give touching or overlapping spans separate rows. Merge them: they are one span."

#: Prints whether `attempt(spans, n)` gives (left, right, positions) of each span, in order.
check_boundary_rows = Check(
    [  # the football example, touching spans, overlapping ones out of order, edges
        ([(4, 7)], 12),
        ([(2, 3), (4, 5)], 9),
        ([(6, 8), (1, 2), (7, 9)], 12),
        ([(1, 2), (4, 4)], 7),  # a shared neighbor
        ([(0, 1), (3, 3)], 6),
        ([(2, 2), (4, 5)], 6),
        ([], 5),
    ],
    rows,
    {
        f"{BLOCK}.": lambda *case: rows(*case, shift=0),
        f"{BLOCK}; and {APART}": lambda *case: rows(*case, shift=0, fused=False),
        "you count positions from 0. The first token has p1; "
        "only the table's rows count from 0.": lambda *case: rows(*case, first=0),
    },
    "the neighbors outside, counted with [CLS]; positions from 1; no row at an edge.",
    returns="a list of (left, right, positions) like [(4, 9, [1, 2, 3, 4])]",
    read=lambda value: sorted(plain(row) for row in value),
)

# --- single_sequence: blocks of whole sentences -------------------------------------


def pack(documents: list, n: int) -> list:
    """Whole sentences of one document, greedily, at most n − 2 tokens a block."""
    blocks = []
    for document in documents:
        block: list[str] = []
        for sentence in document:
            if block and len(block) + len(sentence) > n - 2:
                blocks.append(block)
                block = []
            block = block + sentence
        blocks.append(block)
    return blocks


# Documents of sentences, each letter a token; n. No sentence is longer than n − 2.
TEXTS = [
    (["abcd efg hi", "ABCD EF G HIJKL"], 9),  # other blocks for n and n − 1; both leave a rest
    (["ab cd", "efg h", "ijklmn"], 12),  # each document fits one block, and two would
    (["abcde fghij", "k"], 12),  # a block is filled to its last token
    (["abcdef ghijk lmnop", "ABC DEFGHI J"], 12),
    (["a b c d e f g"], 5),
]

#: Prints whether `attempt(documents, n)` packs blocks for an input of n with [CLS] and [SEP].
check_packing = Check(
    [([list(map(list, text.split())) for text in texts], n) for texts, n in TEXTS],
    pack,
    {
        "you put tokens of two documents in one block. "
        "Close the block where a document ends.": lambda texts, n: pack([sum(texts, [])], n),
        "the last block of a document is lost. Close it, however short it is.": lambda texts, n: (
            sum((pack([one], n)[:-1] for one in texts), [])
        ),
        "a block has more than n − 2 tokens: "
        "[CLS] and [SEP] need two positions.": lambda texts, n: pack(texts, n + 2),
    },
    "whole sentences of one document, as many as fit between [CLS] and [SEP].",
    returns="a list of blocks, each a list of tokens",
    read=lambda blocks: [plain(list(block)) for block in blocks],
)

# --- pretraining_spanbert: the loss of a block --------------------------------------


def total(mlm: list[float], sbo: list[float | None]) -> float:
    return sum(mlm) + sum(part or 0 for part in sbo)


#: Prints whether `attempt(mlm, sbo)` is SpanBERT's loss of a block (§3.2).
check_loss = Check(
    [  # −log P of each masked token by the MLM head, and by the boundary head if it has a row
        ([1.0, 2.0, 3.0, 4.0], [0.5, 1.5, None, None]),
        ([2.0, 2.0], [None, None]),
        ([0.7, 1.9, 2.3], [1.1, 0.4, 3.6]),
    ],
    lambda mlm, sbo: total(mlm, sbo) / len(mlm),
    {
        "you divide the boundary part by the number of its own tokens. The paper adds both losses of "
        "a token, so both parts are divided by the number of masked tokens.": lambda mlm, sbo: (
            total(mlm, []) / len(mlm) + total([], sbo) / max(1, len(sbo) - sbo.count(None))
        ),
        "you leave out the boundary part. SpanBERT adds it to the first part.": lambda mlm, sbo: (
            total(mlm, []) / len(mlm)
        ),
        "this is the sum. Divide by the number of masked tokens.": total,
    },
    "each masked token adds both of its parts.",
    returns="one number",
)

# --- name_ranks: the rank of the true name ------------------------------------------


def true_rank(logs: list, candidates: list, true: int, *, bonus: float = 0) -> float:
    """bonus: added to the score of the true name."""
    scores = score_names(np.array(logs), np.array(candidates))
    scores[true] += bonus
    return rank(scores, true)


#: Prints whether `attempt(logs, candidates, true)` gives the rank of the true name. logs: [k,V]
#: log-probabilities; candidates: k ids each. Of equal scores each has the mean of their ranks.
check_rank = Check(
    [
        ([[-0.5, -1.5, -3.0, -2.0]], [(0,), (1,), (2,), (3,)], 3),
        (
            [[-0.1, -3.0, -4.0, -5.0], [-6.0, -5.0, -0.5, -1.0]],
            [(0, 1), (1, 2), (2, 3), (0, 2), (3, 0)],
            1,
        ),
        (
            [[-0.2, -0.9, -2.0, -4.0], [-9.0, -1.0, -1.5, -2.0]],
            [(0, 0), (1, 1), (2, 2), (3, 3), (2, 3)],
            2,
        ),
        ([[-2.0, -1.0, -3.0, -2.0]], [(0,), (3,), (1,), (2,)], 0),  # two of equal scores, then all
        ([[-1.4] * 4, [-1.4] * 4], [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0)], 0),
    ],
    true_rank,
    {
        "you give every tie to the true name. A model that scores all names alike would then "
        "always be right. Count half of the names with an equal score.": lambda *case: true_rank(
            *case, bonus=1e-6
        ),
        "you look at the first token only. Add the log-probabilities of all tokens.": (
            lambda logs, names, true: true_rank(logs[:1], [name[:1] for name in names], true)
        ),
        "you count from 0. The best rank is 1.": lambda *case: true_rank(*case) - 1,
    },
    "each token counts at its own position, and equal scores share their ranks, so knowing "
    "nothing gives no gain.",
    returns="one number, the rank",
)
