"""Check for the exercise of `book/relatives/roberta`: how many numbers an ALBERT has."""

from operator import index

import torch

from spanbert_tutorial.exercises.diagnosis import Check
from spanbert_tutorial.relatives.albert import AlbertConfig, AlbertEncoder

CASES = [  # vocabulary, E, H, layers, sharing
    (30_000, 128, 768, 12, "all"),
    (30_000, 128, 768, 12, "none"),
    (30_000, 128, 768, 12, "attention"),
    (2_000, 64, 128, 4, "feed_forward"),
    (28_996, 100, 1_024, 24, "all"),
]


def counted(vocabulary: int, embedding: int, hidden: int, layers: int, sharing: str) -> int:
    sizes = vocabulary, hidden, layers, 1, 4 * hidden
    config = AlbertConfig(*sizes, embedding_size=embedding, sharing=sharing)
    with torch.device("meta"):  # only shapes
        return sum(weight.numel() for weight in AlbertEncoder(config).parameters())


def projection(embedding: int, hidden: int) -> int:
    return (embedding + 1) * hidden


#: Prints whether `attempt(V, E, H, L, sharing)` counts the numbers of an ALBERT without heads.
check_count = Check(
    CASES,
    counted,
    {
        "you count what the layers share once per layer. "
        "It is stored once.": lambda v, e, h, n, sharing: counted(v, e, h, n, "none"),
        "this is a BERT: its embeddings have width H. ALBERT's have width E, followed by "
        "a projection.": lambda v, e, h, n, sharing: (
            counted(v, h, h, n, sharing) - projection(h, h)
        ),
        "the projection from E to H is missing: a matrix and a bias.": lambda v, e, h, n, sharing: (
            counted(v, e, h, n, sharing) - projection(e, h)
        ),
    },
    "what is shared counts once, and each token costs E numbers, not H.",
    returns="a whole number",
    read=index,
)
