"""Checks for the exercises of Part IV. Chapters: `book/relatives/roberta`,
`book/relatives/electra`, `book/relatives/beyond`.
"""

import numpy as np
import torch

from spanbert_tutorial.exercises.diagnosis import Check, plain
from spanbert_tutorial.relatives.albert import AlbertConfig, AlbertEncoder
from spanbert_tutorial.relatives.beyond import span_corruption

# --- roberta: how many numbers an ALBERT has ----------------------------------------


def counted(vocabulary: int, embedding: int, hidden: int, layers: int, sharing: str) -> int:
    sizes = vocabulary, hidden, layers, 1, 4 * hidden
    config = AlbertConfig(*sizes, embedding_size=embedding, sharing=sharing)
    with torch.device("meta"):  # only shapes
        return sum(weight.numel() for weight in AlbertEncoder(config).parameters())


#: Prints whether `attempt(V, E, H, L, sharing)` counts the numbers of an ALBERT without heads.
check_count = Check(
    [
        (30_000, 128, 768, 12, "all"),
        (30_000, 128, 768, 12, "none"),
        (30_000, 128, 768, 12, "attention"),
        (2_000, 64, 128, 4, "feed_forward"),
        (28_996, 100, 1_024, 24, "all"),
    ],
    counted,
    {
        "you count what the layers share once per layer. "
        "It is stored once.": lambda v, e, h, n, sharing: counted(v, e, h, n, "none"),
        "this is a BERT: its embeddings have width H. ALBERT's have width E, followed by "
        "a projection.": lambda v, e, h, n, sharing: counted(v, h, h, n, sharing) - (h + 1) * h,
        "the projection from E to H is missing: a matrix and a bias.": lambda v, e, h, n, sharing: (
            counted(v, e, h, n, sharing) - (e + 1) * h
        ),
    },
    "what is shared counts once, and each token costs E numbers, not H.",
    returns="a whole number",
)

# --- electra: what happens between generator and discriminator ----------------------

DRAWS = [  # original, selected, sampled, real: lucky and unused samples, padding at the end
    ([11, 12, 13, 11, 14, 0], [1, 0, 1, 0, 0, 0], [11, 15, 16, 17, 14, 18], [1, 1, 1, 1, 1, 0]),
    ([21, 22, 23, 24], [0, 1, 0, 1], [30, 22, 31, 25], [1, 1, 1, 1]),
    ([5, 6, 7, 0, 0], [0, 0, 0, 0, 0], [8, 9, 7, 0, 4], [1, 1, 1, 0, 0]),
    ([5, 6, 7, 8, 9], [1, 1, 1, 1, 1], [9, 8, 7, 6, 5], [1, 1, 1, 1, 1]),
]


def replaced(
    original: np.ndarray, selected: np.ndarray, sampled: np.ndarray, real: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = np.where(selected, sampled, original)
    return ids, ids != original, real


LUCKY = (
    "you count a sample that equals the original as replaced. It is original: compare ids, not "
    "which tokens were masked"
)
SCORED = (
    "you score only the masked tokens. That is the masked language model's loss; the "
    "discriminator predicts a label for every real token."
)

#: Prints whether `attempt(original, selected, sampled, real)` gives ids, labels and scored tokens.
check_replace = Check(
    [
        (np.array(original), np.array(selected) > 0, np.array(sampled), np.array(real) > 0)
        for original, selected, sampled, real in DRAWS
    ],
    replaced,
    {
        f"{LUCKY}.": lambda *case: (replaced(*case)[0], case[1], case[3]),
        SCORED: lambda *case: (*replaced(*case)[:2], case[1]),
        f"{LUCKY}; and {SCORED}": lambda *case: (replaced(*case)[0], case[1], case[1]),
    },
    "samples at the masked positions, a lucky one counts as original, and every real "
    "token is scored.",
    returns="three arrays, `ids, replaced, scored`",
)

# --- beyond: masked spans in T5's format --------------------------------------------

TEXT = list(range(10, 20))
SENTINELS = list(range(90, 100))
# Spans inside, at the start, at the end, of one token and of several; nothing, everything masked.
MASKED: list[list[int]] = [[2, 3, 8], [0, 1, 5], [4, 7, 8, 9], [], list(range(10))]


def corrupted(ids: list, selected: list, sentinels: list) -> tuple[list, list]:
    source, target = span_corruption(np.array(ids), np.array(selected), sentinels)
    return source.tolist(), target.tolist()


def one_each(ids: list, selected: list, sentinels: list) -> tuple[list, list]:
    marks = iter(sentinels)
    source = [next(marks) if hidden else i for i, hidden in zip(ids, selected, strict=True)]
    return source, corrupted(ids, selected, sentinels)[1]


#: Prints whether `attempt(ids, selected, sentinels)`, lists, gives T5's input and target.
check_span_corruption = Check(
    [(TEXT, [at in masked for at in range(len(TEXT))], SENTINELS) for masked in MASKED],
    corrupted,
    {
        "you give each masked token a sentinel. One sentinel replaces the whole span.": one_each,
        "the target has no closing sentinel, which marks its end.": lambda *case: (
            corrupted(*case)[0],
            corrupted(*case)[1][:-1],
        ),
        "input and target are swapped.": lambda *case: corrupted(*case)[::-1],
    },
    "one sentinel for each span, and the target gives the tokens that it replaces.",
    returns="a pair of lists of ids, the input and the target",
    read=lambda value: [plain(list(part)) for part in value],
)
