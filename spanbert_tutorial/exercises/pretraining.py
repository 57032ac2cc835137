"""Checks for the exercises of `book/bert/pretraining`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import (
    Diagnosis,
    NotYet,
    ask,
    differs,
    named,
    number,
    same,
    say,
)

PAD_ID = 0
# Blocks of ids, padded on the right with PAD_ID.
BLOCKS = [
    [[5, 6, 5, 7], [5, 6, 0, 0]],
    [[3, 3, 3, 3]],
    [[4, 9, 4, 4, 8], [9, 4, 0, 0, 0], [4, 0, 0, 0, 0]],
]
# peak, warm-up steps, steps of a run
RECIPES = [(1.0, 4, 20), (3e-3, 100, 1_000), (0.5, 1, 5)]

Entropy = Callable[[np.ndarray, int], float]
Rate = Callable[[int, float, int, int], float]


# --- where the plateau lies ---------------------------------------------------------


def _entropy_in(answer: Any, *case: object) -> float:
    found = number(answer)
    if np.isnan(found):
        raise NotYet("the answer is nan, as 0 · ln 0 is. Leave out the tokens that do not occur.")
    return found


def shares(ids: np.ndarray) -> np.ndarray:
    """The frequency of each token that occurs."""
    return np.unique(ids, return_counts=True)[1] / ids.size


def entropy(ids: np.ndarray, pad_id: int) -> float:
    """−Σ p ln p over the tokens that are not padding."""
    return float(terms(shares(ids[ids != pad_id])).sum())


def terms(p: np.ndarray) -> np.ndarray:
    """−p ln p of each share, what its token adds to the entropy."""
    return p * np.log(1 / p)


def mean_of_blocks(ids: np.ndarray, pad_id: int) -> float:
    return float(np.mean([entropy(row, pad_id) for row in ids]))


PLATEAU_MISTAKES = [
    (
        lambda ids, pad: entropy(ids, -1),
        "you count padding as a token. Take the real tokens only.",
    ),
    (
        lambda ids, pad: terms(np.unique(ids[ids != pad], return_counts=True)[1] / ids.size).sum(),
        "you leave padding out of the counts but not out of the divisor. Divide by the number of "
        "real tokens.",
    ),
    (
        lambda ids, pad: terms(shares(ids[ids != pad])).mean(),
        "this is the mean over the kinds of tokens. Take the sum.",
    ),
    (
        lambda ids, pad: entropy(ids, pad) / np.log(2),
        "this is in bits. A loss in nats needs the natural logarithm.",
    ),
    (
        lambda ids, pad: -entropy(ids, pad),
        "the sign is missing. The logarithm of a probability is below zero.",
    ),
    (
        lambda ids, pad: float(np.log(len(np.unique(ids[ids != pad])))),
        "this is the logarithm of the number of kinds, where all are equally likely. Weigh each "
        "by its frequency.",
    ),
    (
        lambda ids, pad: float(-np.log(shares(ids[ids != pad])).mean()),
        "you count every kind of token once. Weigh −ln p by p, because a frequent token is masked "
        "more often.",
    ),
    (
        mean_of_blocks,
        "you take the frequencies block by block. Count over the whole text, then take the "
        "entropy once.",
    ),
    (
        lambda ids, pad: float(np.exp(entropy(ids, pad))),
        "this is the perplexity, the exponential of the loss. Leave the exponential out.",
    ),
]


diagnose_plateau = Diagnosis(
    cases=[(np.array(ids), PAD_ID) for ids in BLOCKS],
    where=lambda ids, pad_id: f"for the ids {ids.tolist()}",
    read=_entropy_in,
    returns="one number: sum over the tokens",
    right=entropy,
    mistakes=PLATEAU_MISTAKES,
    correct="frequencies alone get no lower.",
)


def check_plateau(attempt: Entropy) -> None:
    """Prints whether `attempt(ids, pad_id)` is the unigram entropy in nats of the real tokens in
    ids [B, n]."""
    say(diagnose_plateau(attempt))


# --- the learning rate --------------------------------------------------------------


def rate(step: int, peak: float, warmup: int, steps: int) -> float:
    """The rate of step 1, 2, …: `done` updates are made before it, so the first step has 0."""
    done = step - 1
    return peak * (done / warmup if done < warmup else (steps - done) / (steps - warmup))


def rates(law: Rate, *recipe: float) -> list[float]:
    """The rates of all steps of a run."""
    steps = [(step, *recipe) for step in range(1, int(recipe[2]) + 1)]
    asked = ask(
        law, steps, where=lambda step, *_: f"in step {step}", read=number, returns="one number"
    )
    return [answer.value for answer in asked]


def _schedule_mistake(answer: list[float], wanted: list[float], *recipe: float) -> str:
    known = named(answer, ((rates(law, *recipe), sentence) for law, sentence in SCHEDULE_MISTAKES))
    step = next(
        step for step, both in enumerate(zip(answer, wanted, strict=True)) if not same(*both)
    )
    return known or f"in step {step + 1}, {differs(answer[step], wanted[step])}"


SCHEDULE_MISTAKES = [
    (
        lambda step, *recipe: rate(step + 1, *recipe),
        "you are one step ahead. The schedule counts the updates already made, so the first step "
        "has 0.",
    ),
    (lambda step, *recipe: rate(max(step - 1, 1), *recipe), "you are one step behind."),
    (
        lambda step, peak, warmup, steps: peak * min(1, (step - 1) / warmup),
        "the fall is missing. After the warm-up the rate sinks to 0 in a straight line.",
    ),
    (
        lambda step, peak, warmup, steps: peak * (steps - step + 1) / steps,
        "the warm-up is missing. The first steps climb from 0 to the peak.",
    ),
    (
        lambda step, peak, warmup, steps: (
            peak * min((step - 1) / warmup, (steps - step + 1) / steps)
        ),
        "you measure the fall from step 0. Divide by the steps that are left after the warm-up.",
    ),
    (
        lambda step, peak, warmup, steps: rate(step, 1.0, warmup, steps),
        "the peak is missing. Multiply the shape by it.",
    ),
]


diagnose_schedule = Diagnosis(
    prepare=lambda attempt: partial(rates, attempt),
    cases=RECIPES,
    where=lambda peak, warmup, steps: (
        f"for a peak of {peak}, {warmup} steps of warm-up and {steps} steps"
    ),
    right=partial(rates, rate),
    otherwise=_schedule_mistake,
    correct="up from 0 to the peak, then down in a straight line.",
)


def check_schedule(attempt: Rate) -> None:
    """Prints whether `attempt(step, peak, warmup, steps)` is the rate that training step 1, 2, …
    uses."""
    say(diagnose_schedule(attempt))
