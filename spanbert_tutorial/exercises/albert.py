"""Check for the exercise of `book/relatives/roberta`: how many numbers an ALBERT has."""

from functools import partial
from operator import index

from spanbert_tutorial.exercises.diagnosis import Check

CASES = [  # vocabulary, E, H, layers, sharing
    (30_000, 128, 768, 12, "all"),
    (30_000, 128, 768, 12, "none"),
    (30_000, 128, 768, 12, "attention"),
    (2_000, 64, 128, 4, "feed_forward"),
    (28_996, 100, 1_024, 24, "all"),
]


def counted(
    vocabulary: int,
    embedding: int,
    hidden: int,
    layers: int,
    sharing: str,
    *,
    projected: bool = True,
) -> int:
    """The right count; projected: whether the projection from E to H is counted."""
    attention = 4 * hidden**2 + 6 * hidden
    feed_forward = 8 * hidden**2 + 7 * hidden
    embeddings = (vocabulary + 512 + 2 + 2) * embedding  # words, positions, segments, LayerNorm
    return (
        embeddings
        + projected * (embedding + 1) * hidden
        + attention * (1 if sharing in ("all", "attention") else layers)
        + feed_forward * (1 if sharing in ("all", "feed_forward") else layers)
    )


#: Prints whether `attempt(V, E, H, L, sharing)` counts the numbers of an ALBERT without pooler
#: and heads.
check_count = Check(
    CASES,
    counted,
    {
        "you count what the layers share once per layer. "
        "It is stored once.": lambda v, e, h, n, sharing: counted(v, e, h, n, "none"),
        "this is a BERT: its embeddings have width H. ALBERT's have width E, followed by "
        "a projection.": lambda v, e, h, n, sharing: counted(v, h, h, n, sharing, projected=False),
        "the projection from E to H is missing: a matrix and a bias.": partial(
            counted, projected=False
        ),
    },
    "what is shared counts once, and each token costs E numbers, not H.",
    returns="a whole number",
    read=index,
)
