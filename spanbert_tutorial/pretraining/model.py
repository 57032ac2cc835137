"""The objectives put together: the model with its heads and losses. Chapter:
`book/spanbert/pretraining_spanbert` (the first two objectives also in `book/bert/pretraining`).

Sources: BERT §3.1, SpanBERT §3. The loss of a masked token is its masked language model loss plus,
with the span boundary objective, its boundary loss; sums are divided by the number of masked
tokens. What is shown of the boundary loss is the mean over its own targets, which are fewer.
Batches: `batches`; what is trained: `objectives`.
"""

from dataclasses import dataclass

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
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.objectives import Mixture, Objective
from spanbert_tutorial.spanbert.span_masking import spans_of

# --- the model and its losses --------------------------------------------------------


class PretrainingModel(nn.Module):
    """Encoder with the heads of an objective. Called with a batch it returns its losses in nats.

    encoder: of a relative, with this config; by default BERT's."""

    def __init__(
        self,
        config: EncoderConfig,
        objective: Objective | Mixture,
        encoder: BertEncoder | None = None,
    ):
        super().__init__()
        self.encoder = BertEncoder(config) if encoder is None else encoder
        width = config.hidden_size
        embedding = self.encoder.embeddings.words.weight
        self.masked_language_model = MaskedLanguageModelHead(
            width, embedding, config.layer_norm_eps, config.gelu
        )
        self.tasks = objective.tasks
        for task in self.tasks:
            self.add_module(task.name, task.head(width, embedding))
        for name in ("masked_language_model", *(task.name for task in self.tasks)):
            # the encoder, made first, keeps its start: the same for every objective
            initialize(getattr(self, name), config.initializer_range)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": what is trained, "mlm": a masked token's, and of each task that the batch was
        made for, under its `loss_name` ("sbo", "nsp", …), the mean over its own targets}, each a
        scalar. A task that is `per_masked_token` enters "loss" as its sum over the number of masked
        tokens, the paper's sum a token."""
        return self.losses(self.encode(batch), batch)

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """Hidden states [B,n,H]. token_type_ids and attention_mask may be left out."""
        return self.encoder(
            batch["input_ids"],
            token_type_ids=batch.get("token_type_ids"),
            attention_mask=batch.get("attention_mask"),
        )

    def masked_logits(self, hidden_states: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Logits [t,V] of the MLM head: only masked tokens are scored."""
        return self.masked_language_model(hidden_states.flatten(0, 1)[masked_positions(batch)])

    def losses(self, hidden_states: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """What `forward` returns, from the hidden states."""
        logits = self.masked_logits(hidden_states, batch)
        # of all processes
        count = batch["masked_count"] if "masked_count" in batch else max(len(logits), 1)
        mlm = F.cross_entropy(logits, masked_labels(batch), reduction="sum") / count
        losses = {"mlm": mlm}
        trained = mlm
        for task in self.tasks:
            if task.has_targets(batch):
                total = task.loss(getattr(self, task.name), hidden_states, batch)
                counted = f"{task.name}_count"
                targets = batch[counted] if counted in batch else max(task.count(batch), 1)
                losses[task.loss_name] = total / targets
                trained = trained + (
                    total / count if task.per_masked_token else losses[task.loss_name]
                )
            elif self.training:
                # a batch of another part of a mixture: several processes wait for each gradient
                head = getattr(self, task.name)
                trained = trained + 0.0 * sum(weight.sum() for weight in head.parameters())
        return {"loss": trained, **losses}


def start_positions_from_sinusoids(encoder: BertEncoder, scale: float = 0.05) -> None:
    """Fills the learned position table with the original Transformer's sinusoids, in place;
    `scale`: their deviation.

    Not in BERT or SpanBERT. Neighboring positions start out similar, as in the original
    Transformer. Five seeds of a tiny model do not show that it leaves the plateau sooner (chapter
    `book/bert/pretraining`).
    """
    table = encoder.embeddings.positions.weight  # [n, H]
    n, width = table.shape
    angle = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)  # [n, H/2]
    waves = torch.cat([angle.sin(), angle.cos()], dim=1)
    with torch.no_grad():
        table.copy_(waves * (scale / waves.std()))


# --- using a trained model ----------------------------------------------------------


@dataclass(frozen=True)
class FilledSpan:
    """One masked span of a text, its first and last place. guesses: by the loss name of a head
    ("mlm", "sbo"), for each of its tokens the likeliest tokens with their probabilities; empty
    where the head has no guess, as that of the boundary where the span touches the text's edge."""

    first: int
    last: int
    predictions: dict[str, list[list[tuple[str, float]]]]


@torch.no_grad()
def fill_masks(
    model: PretrainingModel, wordpiece: WordPiece, text: str, top: int = 3
) -> list[FilledSpan]:
    """What each head puts into each run of [MASK] in `text`. Raises InputError when there is
    none."""
    ids = wordpiece.encode(text)
    masked = ids == wordpiece.mask_id
    if not masked.any():
        raise InputError("the text has no [MASK]: write one [MASK] for each hidden token.")
    model.eval()
    device = model.encoder.embeddings.words.weight.device
    framed, _ = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    hidden_states = model.encoder(torch.from_numpy(framed).to(device)[None])  # [1, n + 2, H]
    found = {
        "mlm": dict(enumerate(model.masked_language_model(hidden_states[0, 1:-1])))
    }  # head → place → logits [V]
    found |= {
        task.loss_name: task.predictions(getattr(model, task.name), hidden_states, masked, ids)
        for task in model.tasks
    }
    return [
        FilledSpan(
            first,
            last,
            {
                head: [
                    top_tokens(logits[place], wordpiece, top)
                    for place in range(first, last + 1)
                    if place in logits
                ]
                for head, logits in found.items()
            },
        )
        for first, last in spans_of(masked).tolist()
    ]


def top_tokens(logits: Tensor, wordpiece: WordPiece, top: int) -> list[tuple[str, float]]:
    """The `top` tokens of logits [V], with their probabilities."""
    values, ids = logits.softmax(-1).topk(top)
    return list(zip(wordpiece.tokens(ids.tolist()), values.tolist(), strict=True))
