"""The objectives put together: the model with its heads and losses. Chapter:
`book/spanbert/pretraining_spanbert` (the first two objectives also in `book/bert/pretraining`).

Sources: BERT §3.1, SpanBERT §3. The loss of a masked token is its masked language model loss plus,
with the span boundary objective, its boundary loss; sums are divided by the number of masked
tokens. What is shown of the boundary loss is the mean over its own targets, which are fewer.
Batches: `batches`; what is trained: `objectives`.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    initialize,
)
from spanbert_tutorial.bert.inputs import frame, masked_labels, masked_positions
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.objectives import Mixture, Objective
from spanbert_tutorial.spanbert.span_masking import spans_of

Batch = dict[str, Tensor]


class PretrainingModel(nn.Module):
    """Encoder and heads; called with a batch: its losses in nats.

    "loss" is what is trained; "mlm" and the name of each auxiliary
    objective are means over its own targets."""

    def __init__(
        self,
        config: EncoderConfig,
        objective: Objective | Mixture,
        encoder: Any = None,
    ) -> None:
        super().__init__()
        H, eps = config.hidden_size, config.layer_norm_eps
        # made first: its start is the same for every objective
        self.encoder = encoder or BertEncoder(config)
        # all heads score the tokens with one matrix, the input's
        words = self.encoder.embeddings.word_embeddings.weight  # [V,H]
        self.masked_language_model = MaskedLanguageModelHead(
            H, words, eps, config.gelu
        )
        self.tasks = objective.tasks
        for task in self.tasks:
            self.add_module(task.name, task.head(H, words))
        for name, head in self.named_children():
            if name != "encoder":
                initialize(head, config.initializer_range)

    def forward(self, batch: Batch) -> Batch:
        return pretraining_losses(self, self.encode(batch), batch)

    def encode(self, batch: Batch) -> Tensor:
        """Hidden states [B,n,H]."""
        return self.encoder.of(batch)


def masked_logits(
    model: PretrainingModel, hidden_states: Tensor, batch: Batch
) -> Tensor:
    """Logits [t,V] of the MLM head, for the masked tokens only."""
    states = hidden_states.flatten(0, 1)[masked_positions(batch)]
    return model.masked_language_model(states)


def pretraining_losses(
    model: PretrainingModel, hidden_states: Tensor, batch: Batch
) -> Batch:
    """What the model returns, from hidden states [B,n,H]."""
    logits = masked_logits(model, hidden_states, batch)
    labels = masked_labels(batch)
    # several processes divide by what all of them have masked
    count = batch.get("masked_count", max(len(labels), 1))
    mlm = F.cross_entropy(logits, labels, reduction="sum") / count
    losses = {"loss": mlm, "mlm": mlm}
    for task in model.tasks:
        head = getattr(model, task.name)
        if task.has_targets(batch):
            total = task.loss(head, hidden_states, batch)
            targets = max(task.count(batch), 1)
            mean = total / batch.get(f"{task.name}_count", targets)
            # SBO: a masked token costs the sum of both its losses
            added = total / count if task.per_masked_token else mean
            losses[task.loss_name] = mean
        else:  # of a mixture; processes wait for each gradient
            added = 0.0 * sum(w.sum() for w in head.parameters())
        losses["loss"] = losses["loss"] + added
    return losses


def start_positions_from_sinusoids(encoder: BertEncoder) -> None:
    """Fills the learned position table with the original Transformer's sinusoids, of a deviation of
    0.05, in place.

    Not in BERT or SpanBERT. Neighboring positions start out similar, as in the original
    Transformer. Five seeds of a tiny model do not show that it leaves the plateau sooner (chapter
    `book/bert/pretraining`).
    """
    table = encoder.embeddings.position_embeddings.weight  # [n, H]
    n, width = table.shape
    angle = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)  # [n, H/2]
    waves = torch.cat([angle.sin(), angle.cos()], dim=1)
    with torch.no_grad():
        table.copy_(waves * (0.05 / waves.std()))


# --- using a trained model ----------------------------------------------------------


@dataclass(frozen=True)
class FilledSpan:
    """One masked span of a text, its first and last position. predictions: by the loss name of a head
    ("mlm", "sbo"), for each of its tokens the top tokens with their probabilities; empty
    where the head has no guess, as that of the boundary where the span touches the text's edge."""

    first: int
    last: int
    predictions: dict[str, list[list[tuple[str, float]]]]


@torch.no_grad()
def fill_masks(
    model: PretrainingModel, wordpiece: WordPiece, text: str, top: int = 3
) -> list[FilledSpan]:
    """What each head puts into each span of [MASK] in `text`. Leaves the model in evaluation
    mode. Raises InputError when there is no [MASK]."""
    ids = wordpiece.encode(text)
    masked = ids == wordpiece.mask_id
    require(masked.any(), "the text has no [MASK]: write one [MASK] for each masked token.")
    model.eval()
    device = model.encoder.embeddings.word_embeddings.weight.device
    framed, _ = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    input_ids = torch.from_numpy(framed).to(device)[None]
    hidden_states = model.encode({"input_ids": input_ids})  # [1, n + 2, H]
    # head → place → logits [V]
    found = {"mlm": dict(enumerate(model.masked_language_model(hidden_states[0, 1:-1])))}
    for task in model.tasks:
        head = getattr(model, task.name)
        found[task.loss_name] = task.predictions(head, hidden_states, masked, ids)

    def guesses(logits: dict[int, Tensor], first: int, last: int) -> list:
        inside = [logits[place] for place in range(first, last + 1) if place in logits]
        best = [one.softmax(-1).topk(top) for one in inside]
        return [[*zip(wordpiece.tokens(ids.tolist()), p.tolist(), strict=True)] for p, ids in best]

    return [
        FilledSpan(a, b, {head: guesses(logits, a, b) for head, logits in found.items()})
        for a, b in spans_of(masked).tolist()
    ]
