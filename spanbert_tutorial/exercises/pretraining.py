"""Checks for the exercise of `book/bert/pretraining`."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Check

# Blocks of ids, padded on the right with 0.
BLOCKS = (
    [[5, 6, 5, 7], [5, 6, 0, 0]],
    [[3, 3, 3, 3]],
    [[4, 9, 4, 4, 8], [9, 4, 0, 0, 0], [4, 0, 0, 0, 0]],
)


def entropy(ids: np.ndarray, pad_id: int) -> float:
    """−Σ p ln p over the tokens that are not padding."""
    counts = np.unique(ids[ids != pad_id], return_counts=True)[1]
    p = counts / counts.sum()
    return float((p * np.log(1 / p)).sum())


#: Prints whether `attempt(ids, pad_id)` is the unigram entropy in nats of the real tokens in ids.
check_plateau = Check(
    [(np.array(ids), 0) for ids in BLOCKS],
    entropy,
    {
        "you count padding as a token. Take the real tokens only.": lambda ids, pad: entropy(
            ids, -1
        ),
        "this is in bits. A loss in nats needs the natural logarithm.": lambda *case: (
            entropy(*case) / np.log(2)
        ),
        "you take the frequencies block by block. Count over the whole text, then take "
        "the entropy once.": lambda ids, pad: float(np.mean([entropy(row, pad) for row in ids])),
    },
    "frequencies alone get no lower.",
    returns="one number",
    read=float,
)
