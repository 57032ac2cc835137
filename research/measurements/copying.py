"""How well a masked language model gives back tokens that its block shows once more. Chapter:
`book/tasks/real_questions`.

Of the masked tokens of unseen text the rare ones are kept: a common word stands twice in nearly
every block, whatever a model does about it. Each has an unmasked copy in its block, or it has none.
A model that copies gains where there is one.
"""

from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spanbert_tutorial.bert.inputs import masked_labels
from spanbert_tutorial.pretraining.model import PretrainingModel

RARE = 2 / 10_000  # of the tokens of the training text, at most
AGAIN = "again"  # the block shows the token once more
NEW = "new"


def rare_tokens(ids: np.ndarray, vocabulary: int) -> np.ndarray:
    """Which tokens are rare in a text, bool [V]. ids: int, all of the text."""
    counts = np.bincount(ids, minlength=vocabulary)
    return counts < RARE * len(ids)


def shown_again(batch: dict[str, Tensor]) -> Tensor:
    """For each masked token whether its block shows it unmasked, bool [t]. batch: with every chosen
    token replaced by [MASK], so that what a block shows is what it holds."""
    rows, _ = (batch["labels"] != -100).nonzero(as_tuple=True)
    rows = batch["input_ids"][rows]  # [t, n]
    return (rows == masked_labels(batch)[:, None]).any(1)


@torch.no_grad()
def measured(
    model: PretrainingModel, batches: Iterable[dict[str, Tensor]], rare: np.ndarray
) -> dict[str, dict[str, float]]:
    """For rare masked tokens that the block shows again, and for those that it does not: how many,
    the share in percent that the MLM head gets right, and its loss in nats. Raises ValueError
    where there are none of a kind."""
    model.eval()
    device = next(model.parameters()).device
    again, right, nats = [], [], []
    for batch in batches:
        chosen = torch.from_numpy(rare)[masked_labels(batch)]
        again.append(shown_again(batch)[chosen])
        moved = {name: value.to(device) for name, value in batch.items()}
        logits = model.masked_logits(model.encode(moved), moved).float().cpu()[chosen]
        wanted = masked_labels(batch)[chosen]
        right.append(logits.argmax(-1) == wanted)
        nats.append(F.cross_entropy(logits, wanted, reduction="none"))
    stands, hits, losses = torch.cat(again), torch.cat(right).float(), torch.cat(nats)
    found = {}
    for name, kind in ((AGAIN, stands), (NEW, ~stands)):
        if not kind.any():
            raise ValueError(f"no rare masked token is {name}: give more text")
        found[name] = {
            "tokens": int(kind.sum()),
            "right": 100 * hits[kind].mean().item(),
            "nats": losses[kind].mean().item(),
        }
    return found
