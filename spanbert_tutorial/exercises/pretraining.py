"""Checks for the exercises of `book/bert/pretraining`."""

import numpy as np

from spanbert_tutorial.exercises.diagnosis import Diagnosis

# Blocks of ids, padded on the right with 0.
BLOCKS = (
    [[5, 6, 5, 7], [5, 6, 0, 0]],
    [[3, 3, 3, 3]],
    [[4, 9, 4, 4, 8], [9, 4, 0, 0, 0], [4, 0, 0, 0, 0]],
)
RECIPES = [(1.0, 4, 20), (3e-3, 100, 1_000), (0.5, 1, 5)]  # peak, warm-up steps, steps of a run


def entropy(ids: np.ndarray, pad_id: int) -> float:
    """−Σ p ln p over the tokens that are not padding."""
    counts = np.unique(ids[ids != pad_id], return_counts=True)[1]
    p = counts / counts.sum()
    return float((p * np.log(1 / p)).sum())


def rate(step: int, peak: float, warmup: int, steps: int) -> float:
    """The rate of step 1, 2, …: `done` updates are made before it, so the first step has 0."""
    done = step - 1
    return peak * (done / warmup if done < warmup else (steps - done) / (steps - warmup))


PLATEAU_MISTAKES = (
    (lambda ids, pad: entropy(ids, -1), "you count padding as a token. Take the real tokens only."),
    (
        lambda ids, pad: entropy(ids, pad) / np.log(2),
        "this is in bits. A loss in nats needs the natural logarithm.",
    ),
    (
        lambda ids, pad: float(np.mean([entropy(row, pad) for row in ids])),
        "you take the frequencies block by block. Count over the whole text, then take the entropy "
        "once.",
    ),
)
SCHEDULE_MISTAKES = (
    (
        lambda step, *recipe: rate(step + 1, *recipe),
        "you are one step ahead. The schedule counts the updates already made, so the first step "
        "has 0.",
    ),
    (
        lambda step, peak, warmup, steps: peak * min(1, (step - 1) / warmup),
        "the fall is missing. After the warm-up the rate sinks to 0 in a straight line.",
    ),
    (
        lambda step, peak, warmup, steps: peak * (steps - step + 1) / steps,
        "the warm-up is missing. The first steps climb from 0 to the peak.",
    ),
)

diagnose_plateau = Diagnosis(
    [(np.array(ids), 0) for ids in BLOCKS],
    entropy,
    PLATEAU_MISTAKES,
    "frequencies alone get no lower.",
    returns="one number",
    read=float,
)
diagnose_schedule = Diagnosis(
    [(step, *recipe) for recipe in RECIPES for step in range(1, recipe[2] + 1)],
    rate,
    SCHEDULE_MISTAKES,
    "up from 0 to the peak, then down in a straight line.",
    returns="one number",
    read=float,
)

#: Prints whether `attempt(ids, pad_id)` is the unigram entropy in nats of the real tokens in ids
#: [B, n].
check_plateau = diagnose_plateau.say

#: Prints whether `attempt(step, peak, warmup, steps)` is the rate that training step 1, 2, …
#: uses.
check_schedule = diagnose_schedule.say
