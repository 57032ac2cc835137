"""Masked names ranked by a model, in batches, and by what reads no state. Chapter:
`book/spanbert/name_ranks`. Candidates, scores and ranks: `spanbert_tutorial/spanbert/name_ranks`.
"""

from collections.abc import Sequence

import numpy as np
import torch

from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining.baselines import UnigramBaselines
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.spanbert.name_ranks import (
    ELSEWHERE,
    INFERRED,
    OTHERWISE,
    Gap,
    Known,
    by_companions,
    by_frequency,
    rank,
    score_names,
    true_place,
)
from spanbert_tutorial.spanbert.names import with_specials

ROWS = 64


@torch.no_grad()
def model_ranks(
    model: PretrainingModel, wordpiece: WordPiece, some: Sequence[Gap], known: Known
) -> np.ndarray:
    """The rank of each true name by the masked language model head, float [gaps]."""
    found = []
    device = next(model.parameters()).device
    for start in range(0, len(some), ROWS):
        part = some[start : start + ROWS]
        ids, real = with_specials([hidden(gap, wordpiece.mask_id) for gap in part], wordpiece)
        states = model.encoder(ids.to(device), attention_mask=real.to(device))
        # [CLS] in front
        inside = [
            row[gap.name.first + 1 : gap.name.last + 2]
            for gap, row in zip(part, states, strict=True)
        ]
        logs = model.masked_language_model(torch.cat(inside)).float().log_softmax(-1).cpu().numpy()
        parts = np.split(logs, np.cumsum([len(rows) for rows in inside])[:-1])
        found += [ranked(gap, known, rows) for gap, rows in zip(part, parts, strict=True)]
    return np.array(found)


def hidden(gap: Gap, mask_id: int) -> np.ndarray:
    """The block with the name hidden."""
    ids = gap.block.ids.copy()
    ids[gap.name.first : gap.name.last + 1] = mask_id
    return ids


def ranked(gap: Gap, known: Known, logs: np.ndarray) -> float:
    """The rank of the true name. logs: float [k,V], log-probabilities at each masked token."""
    return rank(score_names(logs, known.candidates[gap.key]), true_place(gap, known))


# --- controls -----------------------------------------------------------------------


def control_ranks(
    some: Sequence[Gap], known: Known, tables: UnigramBaselines
) -> dict[str, np.ndarray]:
    """The rank of each true name by what reads no state, float [gaps] each."""
    return {
        "frequency": np.array([by_frequency(gap, known) for gap in some]),
        "table": np.array([by_table(gap, known, tables) for gap in some]),
        "companions": np.array([by_companions(gap, known) for gap in some]),
    }


def by_table(gap: Gap, known: Known, tables: UnigramBaselines) -> float:
    """The log-probabilities of the tokens at these positions of a block, without context."""
    return ranked(gap, known, tables.by_position[gap.name.first + 1 : gap.name.last + 2])


def figures(some: Sequence[Gap], ranks: np.ndarray) -> dict[str, dict[str, float]]:
    """For each group of gaps: how many, the share in percent ranked first, and the mean of 1 /
    rank."""
    found = {}
    for group in (INFERRED, OTHERWISE, ELSEWHERE):
        inside = ranks[[gap.where == group for gap in some]]
        found[group] = {
            "gaps": len(inside),
            "first": 100 * float(np.mean(inside == 1)) if len(inside) else 0.0,
            "reciprocal": float(np.mean(1 / inside)) if len(inside) else 0.0,
        }
    return found
