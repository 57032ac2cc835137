"""Checks for the exercise of `book/bert/masking`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spanbert_tutorial.exercises.diagnosis import (
    NotYet,
    array,
    ask,
    call,
    say,
    verdict,
    without_changing,
)

MASK_ID = 4
TOKENS = 60_000
RANDOM_IDS = np.arange(5, 100)  # never an original id, so each token shows what happened to it
WANTED = (0.8, 0.1, 0.1)

INDEPENDENT = (
    "unchanged and random were drawn independently, one after the other. "
    "Draw once for each token and cut that one number at 0.8 and 0.9"
)
TENTH_OF_REST = "a second draw cut the remaining 20% at 0.1. Random and kept get half of it each"

# (masked, random, kept) as common mistakes give them, and what to say.
MISTAKES = {
    (0.81, 0.10, 0.09): INDEPENDENT,
    (0.81, 0.09, 0.10): INDEPENDENT,
    (0.80, 0.02, 0.18): TENTH_OF_REST,
    (0.80, 0.18, 0.02): TENTH_OF_REST,
    (
        0.80,
        0.16,
        0.04,
    ): "a second draw cut the remaining 20% at 0.8. Random and kept get half of it each",
    (
        1.00,
        0.00,
        0.00,
    ): "every selected token became [MASK]. One in ten gets a random token, one in ten stays",
    (0.80, 0.20, 0.00): "no selected token kept its id. One in ten stays as it was",
    (0.80, 0.00, 0.20): "no selected token was replaced by a random one",
    (0.90, 0.00, 0.10): "no selected token was replaced by a random one",
    (0.10, 0.10, 0.80): "the shares of [MASK] and of kept tokens are swapped",
    (0.10, 0.80, 0.10): "the shares of [MASK] and of random tokens are swapped",
    (
        0.00,
        0.90,
        0.10,
    ): "random tokens replaced the [MASK]s, too. Random is for draws from 0.8 to 0.9 only",
    (0.72, 0.10, 0.18): (
        "a second draw put random tokens in place of some [MASK]s. "
        "Draw once for each token and cut that one number at 0.8 and 0.9"
    ),
    (0.00, 0.00, 1.00): "nothing was replaced yet",
}


def check_corrupt(attempt: Callable[..., np.ndarray]) -> None:
    """Prints whether `attempt(ids, selected, rng, mask_id, random_ids)` does 80/10/10 token by
    token."""
    say(diagnose_corrupt(attempt))


@verdict
def diagnose_corrupt(attempt: Callable[..., np.ndarray]) -> str:
    """One sentence: correct, or the likely mistake."""
    ids = np.arange(100, 100 + 2 * TOKENS)
    selected = np.arange(2 * TOKENS) % 2 == 0
    case = ids, selected, np.random.default_rng(0), MASK_ID, RANDOM_IDS
    careful = without_changing(
        attempt,
        "the original ids were changed in place, and they are the answers. Work on `ids.copy()`.",
    )
    (answer,) = ask(
        careful, [case], read=_all_tokens, returns="all tokens of the block, one id for each"
    )
    corrupted = answer.value
    if (corrupted != ids)[~selected].any():
        raise NotYet("tokens that were not selected have changed.")
    if _one_draw_for_all(attempt):
        raise NotYet("one draw decided for all selected tokens. Each token needs its own draw.")
    seen = corrupted[selected]
    masked = (seen == MASK_ID).mean()
    kept = (seen == ids[selected]).mean()
    return _judge_shares(
        (masked, 1 - masked - kept, kept), seen[(seen != MASK_ID) & (seen != ids[selected])]
    )


def _all_tokens(answer: Any, ids: np.ndarray, *case: object) -> np.ndarray:
    shape = np.shape(answer)
    if shape != ids.shape:
        raise NotYet(
            f"{len(ids)} ids went in and shape {shape} came out. Return all tokens of the block."
        )
    return array(answer, ids.shape)


def _one_draw_for_all(attempt: Callable[..., np.ndarray]) -> bool:
    """Whether some blocks become all [MASK] and all others have none."""
    ids = np.arange(100, 120)
    every = np.ones(20, dtype=bool)
    blocks = [
        call(attempt, ids.copy(), every, np.random.default_rng(seed), MASK_ID, RANDOM_IDS)
        for seed in range(30)
    ]
    return {(np.asarray(block) == MASK_ID).mean() for block in blocks} == {0.0, 1.0}


def _judge_shares(shares: tuple[float, float, float], random_tokens: np.ndarray) -> str:
    """Compares (masked, random, kept) with what is wanted and with common mistakes. Raises NotYet
    for the latter."""
    said = "/".join(f"{100 * share:.1f}" for share in shares)
    distance = {
        pattern: np.abs(np.subtract(shares, pattern)).max() for pattern in [WANTED, *MISTAKES]
    }
    nearest = min(distance, key=lambda pattern: distance[pattern])
    if distance[nearest] > 0.005:
        raise NotYet(f"your shares are {said}; they should be 80/10/10 for [MASK], random, kept.")
    if nearest != WANTED:
        raise NotYet(f"your shares are {said}: {MISTAKES[nearest]}.")
    if not np.isin(random_tokens, RANDOM_IDS).all():
        raise NotYet("the random tokens do not come from `random_ids`.")
    if len(np.unique(random_tokens)) == 1:
        raise NotYet("all random tokens are the same. Each token needs its own draw.")
    return f"{said} for [MASK], random and kept."
