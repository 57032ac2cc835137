"""Checks for the exercise of `book/relatives/electra`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import (
    Diagnosis,
    array,
    combined,
    differs,
    say,
    without_changing,
)

Replace = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]

# original, selected, sampled, real: a lucky sample, one that is not used, padding at the end.
CASES = [
    ([11, 12, 13, 11, 14, 0], [1, 0, 1, 0, 0, 0], [11, 15, 16, 17, 14, 18], [1, 1, 1, 1, 1, 0]),
    ([21, 22, 23, 24], [0, 1, 0, 1], [30, 22, 31, 25], [1, 1, 1, 1]),
    ([5, 6, 7, 0, 0], [0, 0, 0, 0, 0], [8, 9, 7, 0, 4], [1, 1, 1, 0, 0]),
    ([5, 6, 7, 8, 9], [1, 1, 1, 1, 1], [9, 8, 7, 6, 5], [1, 1, 1, 1, 1]),
]

RIGHT = {"lucky": "original", "sense": "replaced", "where": "selected", "scored": "real"}
# A setting of `replace_with` that is wrong, and what to say.
MISTAKES = {
    (
        "lucky",
        "replaced",
    ): "you count a sample that equals the original as replaced. It is original: compare ids, "
    "not which tokens were masked",
    ("sense", "original"): "you inverted the labels. True means replaced",
    (
        "where",
        "everywhere",
    ): "you put samples at tokens that were not masked. Use a sample only where `selected` is True",
    (
        "scored",
        "selected",
    ): "you score only the masked tokens. That is the masked language model's loss; the "
    "discriminator predicts a label for every real token",
    ("scored", "all"): "you score padding, too. Leave out what is not `real`",
    (
        "scored",
        "replaced",
    ): "you score only the replaced tokens. The discriminator predicts a label for every real "
    "token",
}


def _three_lists(answer: Any, original: np.ndarray, *case: np.ndarray) -> list[list[int]]:
    ids, replaced, scored = (array(part, original.shape).astype(int).tolist() for part in answer)
    return [ids, replaced, scored]


def _with_the_rest(answer: list, wanted: list, original: np.ndarray, *case: np.ndarray) -> str:
    selected, sampled, real = (part.astype(int).tolist() for part in case)
    return f"selected {selected}, sampled {sampled} and real {real}, {differs(answer, wanted)}"


def arrays(case: tuple) -> list[np.ndarray]:
    """New arrays of one case: original, selected, sampled, real."""
    original, selected, sampled, real = case
    return [
        np.array(original),
        np.array(selected, dtype=bool),
        np.array(sampled),
        np.array(real, dtype=bool),
    ]


def replace_with(
    original: np.ndarray,
    selected: np.ndarray,
    sampled: np.ndarray,
    real: np.ndarray,
    **changed: str,
) -> list[list[int]]:
    """The exercise's answer as lists of numbers. changed: settings that differ from `RIGHT`."""
    lucky, sense, where, scored = (RIGHT | changed).values()
    ids = np.where(selected if where == "selected" else np.ones_like(selected), sampled, original)
    replaced = ids != original if lucky == "original" else selected.copy()
    asked = {"real": real, "selected": selected, "all": np.ones_like(real), "replaced": replaced}[
        scored
    ]
    labels = replaced if sense == "replaced" else ~replaced
    return [ids.tolist(), labels.astype(int).tolist(), asked.astype(int).tolist()]


diagnose_replace = Diagnosis(
    prepare=lambda attempt: without_changing(
        attempt, "an input was changed in place, and the labels need the originals. Work on a copy."
    ),
    cases=[tuple(arrays(case)) for case in CASES],
    where=lambda original, *rest: f"for original {original.tolist()}",
    read=_three_lists,
    returns="three arrays, `ids, replaced, scored`, with one entry for each token of the input, "
    "masked or not",
    right=replace_with,
    mistakes=list(combined(replace_with, MISTAKES, max_count=len(RIGHT))),
    otherwise=_with_the_rest,
    correct="samples at the masked positions, a lucky one counts as original, and every real "
    "token is scored.",
)


def check_replace(attempt: Replace) -> None:
    """Prints whether `attempt(original, selected, sampled, real)` gives the discriminator's ids,
    labels and scored tokens."""
    say(diagnose_replace(attempt))
