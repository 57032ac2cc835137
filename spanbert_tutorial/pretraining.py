"""The objectives put together: the model with its heads and losses. Chapter: `book/spanbert/pretraining_spanbert`
(the first two objectives also in `book/bert/pretraining`).

Sources: BERT §3.1, SpanBERT §3. The loss of a masked token is its masked language model loss plus, with the span
boundary objective, its boundary loss; sums are divided by the number of masked tokens. What is shown of the boundary
loss is the mean over its own targets, which are fewer. Batches: `batches`.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.batches import OBJECTIVES, Batches, Objective, PretrainingData, gather, unigram_entropy
from spanbert_tutorial.bert import BertEncoder, EncoderConfig, MaskedLanguageModelHead, NextSentenceHead, initialise
from spanbert_tutorial.boundary import BoundaryTargets, SpanBoundaryObjective, boundary_loss, boundary_targets
from spanbert_tutorial.context_free import ContextFree, boundary_places
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.inputs import NO_TARGET, frame
from spanbert_tutorial.span_masking import spans_of
from spanbert_tutorial.wordpiece import WordPiece

__all__ = [
    "OBJECTIVES", "Batches", "Filled", "Objective", "PretrainingData", "PretrainingModel", "best", "fill", "gather",
    "measure", "start_positions_from_sinusoids", "unigram_entropy",
]  # fmt: skip

# --- the model and its losses -------------------------------------------------------------------------------


class PretrainingModel(nn.Module):
    """Encoder with the heads of an objective. Called with a batch it returns its losses in nats.

    encoder: of a relative, with this config; by default BERT's."""

    def __init__(self, config: EncoderConfig, objective: Objective, encoder: BertEncoder | None = None):
        super().__init__()
        self.encoder = BertEncoder(config) if encoder is None else encoder
        width, embedding = config.hidden_size, self.encoder.embeddings.words.weight
        self.masked_language_model = MaskedLanguageModelHead(width, embedding, config.layer_norm_eps, config.gelu)
        self.boundary = SpanBoundaryObjective(config.hidden_size, embedding) if objective.boundary else None
        self.next_sentence = NextSentenceHead(config.hidden_size) if objective.next_sentence else None
        for head in (self.masked_language_model, self.boundary, self.next_sentence):
            if head is not None:  # the encoder, made first, keeps its start: the same for every objective
                initialise(head, config.initializer_range)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": what is trained, "mlm": a masked token's, and where model and batch have them "sbo": a boundary
        target's, "nsp": a pair's}, each a scalar. The boundary losses' part of "loss" is their sum over the number of
        masked tokens, the paper's sum a token; "sbo" is the same sum over the number of targets."""
        hidden = self.encoder(batch["ids"], batch["segments"], batch["attention_mask"])  # [B, n, H]
        chosen = hidden[batch["masked_batch"], batch["masked_position"]]  # [t, H]: only chosen tokens are scored
        logits = self.masked_language_model(chosen)
        count = batch["masked_count"] if "masked_count" in batch else max(len(chosen), 1)
        losses = {"mlm": F.cross_entropy(logits, batch["masked_ids"], reduction="sum") / count}
        trained = losses["mlm"]
        if self.boundary is not None and "boundary_batch" in batch:
            rows = BoundaryTargets(*(batch[f"boundary_{name}"] for name in ("batch", "pairs", "targets")))
            total = boundary_loss(self.boundary(hidden, rows), rows, masked_tokens=1)
            losses["sbo"] = total / (batch["boundary_count"] if "boundary_count" in batch else max(rows.count(), 1))
            trained = trained + total / count
        if self.next_sentence is not None and "next_sentence" in batch:
            sentences = F.cross_entropy(self.next_sentence(hidden), batch["next_sentence"], reduction="sum")
            losses["nsp"] = sentences / (batch["rows"] if "rows" in batch else len(hidden))
            trained = trained + losses["nsp"]
        return {"loss": trained, **losses}


def start_positions_from_sinusoids(encoder: BertEncoder, scale: float = 0.05) -> None:
    """Fills the learned position table with the original Transformer's sinusoids, in place; `scale`: their deviation.

    Not in BERT or SpanBERT. Neighbouring positions start out similar, as in the original Transformer. Five seeds of a
    tiny model do not show that it leaves the plateau sooner (chapter `book/bert/pretraining`).
    """
    table = encoder.embeddings.positions.weight  # [n, H]
    n, width = table.shape
    angle = torch.arange(n)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)  # [n, H/2]
    waves = torch.cat([angle.sin(), angle.cos()], dim=1)
    with torch.no_grad():
        table.copy_(waves * (scale / waves.std()))


# --- using a trained model ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filled:
    """One masked span of a text. mlm, sbo: for each of its pieces the likeliest pieces with their probabilities; sbo is
    empty when the model has no boundary head or the span touches the text's edge."""

    first: int
    last: int
    mlm: list[list[tuple[str, float]]]
    sbo: list[list[tuple[str, float]]]


@torch.no_grad()
def fill(model: PretrainingModel, wordpiece: WordPiece, text: str, top: int = 3) -> list[Filled]:
    """What both heads put into each run of [MASK] in `text`. Raises InputError when there is none."""
    ids = wordpiece.encode(text)
    selected = ids == wordpiece.mask_id
    if not selected.any():
        raise InputError("the text has no [MASK]: write one [MASK] for each hidden piece.")
    model.eval()
    embedding = model.encoder.embeddings.words.weight
    framed, _ = frame(ids, cls_id=wordpiece.cls_id, sep_id=wordpiece.sep_id)
    hidden = model.encoder(torch.from_numpy(framed).to(embedding.device)[None])  # [1, n + 2, H]
    mlm = best(model.masked_language_model(hidden[0, 1:-1]), wordpiece, top)
    sbo: dict[int, list] = {}
    if model.boundary is not None:
        rows = boundary_targets(selected[None], ids[None], [len(ids)]).to(embedding.device)
        predictions = iter(best(model.boundary(hidden, rows), wordpiece, top))
        for (left, _), targets in zip(rows.pairs.tolist(), rows.targets, strict=True):
            sbo[left] = [next(predictions) for _ in range(int((targets != NO_TARGET).sum()))]
    # `left` counts [CLS], so it equals the block position of the span's first token
    return [Filled(a, b, mlm[a : b + 1], sbo.get(a, [])) for a, b in spans_of(selected).tolist()]


def best(logits: Tensor, wordpiece: WordPiece, top: int) -> list[list[tuple[str, float]]]:
    """For each row of logits [t, V] the `top` pieces with their probabilities."""
    values, ids = logits.softmax(-1).topk(top)
    rows = zip(ids.tolist(), values.tolist(), strict=True)
    return [list(zip(wordpiece.tokens(row), p, strict=True)) for row, p in rows]


@torch.no_grad()
def measure(
    model: PretrainingModel,
    data: PretrainingData,
    rng: np.random.Generator,
    most: int | None = None,
    tables: ContextFree | None = None,
) -> dict[str, float]:
    """Means over one pass of held-out data, or over its first `most` batches: every loss in nats, and `accuracy`.

    accuracy: the share of chosen tokens whose likeliest prediction by the masked language model head is the original.
    tables: what frequencies alone reach on the same pieces is then there, too, under `frequency` and `by_position`,
    and for the targets of the boundary objective under `sbo_frequency` and `sbo_by_position`.
    """
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for batch in islice(data.epoch(rng), most):
        batch = {name: value.to(device) for name, value in batch.items()}
        values = {name: loss.item() for name, loss in model(batch).items()}
        hidden = model.encoder(batch["ids"], batch["segments"], batch["attention_mask"])
        guesses = model.masked_language_model(hidden[batch["masked_batch"], batch["masked_position"]]).argmax(-1)
        values["accuracy"] = (guesses == batch["masked_ids"]).float().mean().item()
        targets = boundary_places(batch) if "sbo" in values else (np.array([]), np.array([]))
        if tables is not None:
            pieces = batch["masked_position"].cpu().numpy(), batch["masked_ids"].cpu().numpy()
            values |= tables.losses(*pieces)
            if "sbo" in values:
                values |= {f"sbo_{name}": loss for name, loss in tables.losses(*targets).items()}
        sizes = {"sbo": len(targets[1]), "nsp": len(batch["ids"])}
        for name, value in values.items():
            n = sizes.get(name.split("_")[0], len(batch["masked_ids"]))  # a mean over so many
            sums[name] = sums.get(name, 0.0) + (value * n if n else 0.0)
            counts[name] = counts.get(name, 0) + n
    model.train(training)
    return {name: value / max(counts[name], 1) for name, value in sums.items()}
