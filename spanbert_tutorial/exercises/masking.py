"""Check for the exercise of `book/bert/masking`."""

from collections.abc import Callable

import numpy as np

from spanbert_tutorial.exercises.diagnosis import say, stopped

MASK_ID = 4
TOKENS = 60_000
RANDOM_IDS = np.arange(5, 100)  # never an original id, so each token shows what happened to it
WANTED = (0.8, 0.1, 0.1)
INDEPENDENT = (
    "unchanged and random were drawn independently, one after the other. "
    "Draw once for each token and cut that one number at 0.8 and 0.9"
)
ALL = "every selected token became [MASK]. One in ten gets a random token, one in ten stays"
# (masked, random, kept) as common mistakes give them, and what to say.
MISTAKES = {(0.81, 0.10, 0.09): INDEPENDENT, (0.81, 0.09, 0.10): INDEPENDENT, (1, 0, 0): ALL}


def check_corrupt(attempt: Callable[..., np.ndarray]) -> None:
    """Prints whether `attempt(ids, selected, rng, mask_id, random_ids)` does 80/10/10 token by
    token."""
    say(diagnose_corrupt(attempt))


def diagnose_corrupt(attempt: Callable[..., np.ndarray]) -> str:
    """One sentence: correct, or the likely mistake."""
    ids = np.arange(100, 100 + 2 * TOKENS)
    selected = np.arange(2 * TOKENS) % 2 == 0
    rng = np.random.default_rng(0)
    try:
        made = np.asarray(attempt(ids.copy(), selected, rng, MASK_ID, RANDOM_IDS))
    except Exception as error:  # whatever the reader's code raises
        return stopped(error)
    if made.shape != ids.shape:
        return f"Not yet: {len(ids)} ids went in and the shape {made.shape} came out."
    if (made != ids)[~selected].any():
        return "Not yet: tokens that are not masked have changed."
    masked, kept = (made[selected] == MASK_ID).mean(), (made == ids)[selected].mean()
    shares = (masked, 1 - masked - kept, kept)
    said = "/".join(f"{100 * share:.1f}" for share in shares)
    for known, sentence in MISTAKES.items():
        if np.abs(np.subtract(shares, known)).max() < 0.005:
            return f"Not yet: your shares are {said}: {sentence}."
    others = made[selected & (made != MASK_ID) & (made != ids)]
    if np.abs(np.subtract(shares, WANTED)).max() > 0.005:
        return f"Not yet: your shares are {said}; they should be 80/10/10 for [MASK], random, kept."
    if not np.isin(others, RANDOM_IDS).all() or len(np.unique(others)) == 1:
        return "Not yet: each random token needs a draw of its own, from `random_ids`."
    return f"Correct: {said} for [MASK], random and kept."
