"""The objectives put together: `mlm`, `mlm+nsp`, `span`, `span+sbo`. Chapter: `book/spanbert/pretraining_spanbert`
(the first two also in `book/bert/pretraining`).

Sources: BERT §3.1, SpanBERT §3. The loss of a masked token is its masked language model loss plus, with the span
boundary objective, its boundary loss; sums are divided by the number of masked tokens.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert import BertEncoder, EncoderConfig, MaskedLanguageModelHead, NextSentenceHead, initialise
from spanbert_tutorial.boundary import BoundaryTargets, SpanBoundaryObjective, boundary_loss, boundary_targets
from spanbert_tutorial.corpora import EncodedCorpus
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.inputs import NO_TARGET, assemble, frame
from spanbert_tutorial.masking import TokenMasking, corrupt
from spanbert_tutorial.sentence_pairs import sentence_pairs
from spanbert_tutorial.single_sequence import single_sequence_blocks
from spanbert_tutorial.span_masking import SpanMasking, spans_of
from spanbert_tutorial.wordpiece import WordPiece


@dataclass(frozen=True)
class Objective:
    """What a run predicts. unit: 80/10/10 is decided once a "token" or once a "span"."""

    masking: TokenMasking | SpanMasking
    unit: str
    next_sentence: bool = False
    boundary: bool = False

    @classmethod
    def named(cls, name: str) -> "Objective":
        if name not in OBJECTIVES:
            raise InputError(f'the objective "{name}" is unknown: use one of {", ".join(OBJECTIVES)}.')
        return OBJECTIVES[name]


OBJECTIVES = {
    "mlm": Objective(TokenMasking(), "token"),
    "mlm+nsp": Objective(TokenMasking(), "token", next_sentence=True),
    "span": Objective(SpanMasking(), "span"),
    "span+sbo": Objective(SpanMasking(), "span", boundary=True),
}


# --- from encoded text to batches ---------------------------------------------------------------------------


def unigram_entropy(ids: np.ndarray, vocabulary: int) -> float:
    """Entropy in nats of the pieces' frequencies: the loss of a model that knows frequency and nothing else."""
    p = np.bincount(ids, minlength=vocabulary) / len(ids)
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())


def gather(corpus: EncodedCorpus, ranges: np.ndarray, pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """ids int64 [B, n] of the ranges [B, 2], padded on the right, and their lengths [B]."""
    lengths = ranges[:, 1] - ranges[:, 0]
    ids = np.full((len(ranges), lengths.max()), pad_id, dtype=np.int64)
    for row, (start, end) in enumerate(ranges):
        ids[row, : end - start] = corpus.ids[start:end]
    return ids, lengths


@dataclass
class PretrainingData:
    """Batches of one objective over an encoded corpus, masked anew each time they are drawn.

    length: n of the model's input, with [CLS] and [SEP]. keep_none: replace every chosen token by [MASK], as one does
    when measuring (80/10/10 is a habit for training).
    """

    corpus: EncodedCorpus
    wordpiece: WordPiece
    objective: Objective
    length: int
    batch_size: int
    keep_none: bool = False
    report: str = field(init=False)

    def __post_init__(self):
        specials = 3 if self.objective.next_sentence else 2
        if self.length <= specials + 1:
            raise InputError(f"a length of {self.length} leaves no room beside [CLS] and [SEP]: give at least 8.")
        if not self.objective.next_sentence:
            blocks = single_sequence_blocks(self.corpus, self.wordpiece.starts, self.length - specials)
            self.segments, self.labels, self.report = [blocks.ranges], None, blocks.report
        else:
            # the pairs are drawn once, from a fixed stream, so that they do not depend on the order of training
            pairs = sentence_pairs(self.corpus, self.length - specials, np.random.default_rng(0))
            self.segments, self.labels, self.report = [pairs.first, pairs.second], pairs.labels, pairs.report

    def __len__(self) -> int:
        return len(self.segments[0])

    def epoch(self, rng: np.random.Generator) -> Iterator[dict[str, Tensor]]:
        """Every block once, in random order; the last batch may be smaller."""
        order = rng.permutation(len(self))
        for start in range(0, len(self), self.batch_size):
            yield self.batch(order[start : start + self.batch_size], rng)

    def batches(self, rng: np.random.Generator) -> "Batches":
        """Epochs without end, which can be stopped and continued."""
        return Batches(self, rng)

    def masked_segment(self, ranges: np.ndarray, rng: np.random.Generator):
        """One segment of each row: original ids, corrupted ids, selected (all [B, n]) and lengths [B]."""
        ids, lengths = gather(self.corpus, ranges, self.wordpiece.pad_id)
        selected = self.objective.masking.select_batch(self.wordpiece.word_starts(ids), lengths, rng)
        mask_id = self.wordpiece.mask_id
        if self.keep_none:
            corrupted = np.where(selected, mask_id, ids)
        else:
            # drawn from the corpus itself, so that random replacements follow its frequencies
            options = {"mask_id": mask_id, "random_ids": self.corpus.ids, "unit": self.objective.unit}
            corrupted = corrupt(ids, selected, rng, **options)
        return ids, corrupted, selected, lengths

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """The named tensors that `PretrainingModel` takes, for these blocks."""
        segments = [self.masked_segment(ranges[rows], rng) for ranges in self.segments]
        batch = assemble(segments, self.wordpiece)
        if self.objective.boundary:
            ids, _, selected, lengths = segments[0]
            rows_of_spans = boundary_targets(selected, ids, lengths)
            batch |= {f"boundary_{name}": value for name, value in vars(rows_of_spans).items()}
        if self.labels is not None:
            batch["next_sentence"] = torch.from_numpy(self.labels[rows])
        return batch


class Batches:
    """Batches without end, epoch after epoch, that know their place: `state_dict` says it, `load_state_dict` goes there
    and draws the same batches from there on."""

    def __init__(self, data: PretrainingData, rng: np.random.Generator):
        self.data, self.rng = data, rng
        self.new_epoch()

    def new_epoch(self) -> None:
        self.before_epoch = self.rng.bit_generator.state  # enough to draw the same order again
        self.order, self.at = self.rng.permutation(len(self.data)), 0

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> dict[str, Tensor]:
        if self.at >= len(self.order):
            self.new_epoch()
        rows = self.order[self.at : self.at + self.data.batch_size]
        self.at += self.data.batch_size
        return self.data.batch(rows, self.rng)

    def state_dict(self) -> dict[str, str | int]:
        states = {"before_epoch": self.before_epoch, "rng": self.rng.bit_generator.state}
        return {"at": self.at, **{name: json.dumps(state) for name, state in states.items()}}

    def load_state_dict(self, state: dict[str, str | int]) -> None:
        self.rng.bit_generator.state = json.loads(state["before_epoch"])
        self.new_epoch()
        self.rng.bit_generator.state, self.at = json.loads(state["rng"]), state["at"]


# --- the model and its losses -------------------------------------------------------------------------------


class PretrainingModel(nn.Module):
    """Encoder with the heads of an objective. Called with a batch it returns its losses in nats."""

    def __init__(self, config: EncoderConfig, objective: Objective):
        super().__init__()
        self.encoder = BertEncoder(config)
        embedding = self.encoder.embeddings.words.weight
        self.masked_language_model = MaskedLanguageModelHead(config.hidden_size, embedding, config.layer_norm_eps)
        self.boundary = SpanBoundaryObjective(config.hidden_size, embedding) if objective.boundary else None
        self.next_sentence = NextSentenceHead(config.hidden_size) if objective.next_sentence else None
        for head in (self.masked_language_model, self.boundary, self.next_sentence):
            if head is not None:  # the encoder, made first, keeps its start: the same for every objective
                initialise(head, config.initializer_range)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": the sum, "mlm": …, and "sbo" or "nsp" where model and batch have them}, each a scalar."""
        hidden = self.encoder(batch["ids"], batch["segments"], batch["attention_mask"])  # [B, n, H]
        chosen = hidden[batch["masked_batch"], batch["masked_position"]]  # [t, H]: only chosen tokens are scored
        logits = self.masked_language_model(chosen)
        count = max(len(chosen), 1)
        losses = {"mlm": F.cross_entropy(logits, batch["masked_ids"], reduction="sum") / count}
        if self.boundary is not None and "boundary_batch" in batch:
            rows = BoundaryTargets(*(batch[f"boundary_{name}"] for name in ("batch", "pairs", "targets")))
            losses["sbo"] = boundary_loss(self.boundary(hidden, rows), rows, masked_tokens=count)
        if self.next_sentence is not None and "next_sentence" in batch:
            losses["nsp"] = F.cross_entropy(self.next_sentence(hidden), batch["next_sentence"])
        return {"loss": sum(losses.values()), **losses}


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
def measure(model: PretrainingModel, data: PretrainingData, rng: np.random.Generator) -> dict[str, float]:
    """Means over one pass of held-out data: every loss in nats, and `accuracy`.

    accuracy: the share of chosen tokens whose likeliest prediction by the masked language model head is the original.
    """
    model.eval()
    device = next(model.parameters()).device
    sums: dict[str, float] = {}
    count = 0
    for batch in data.epoch(rng):
        batch = {name: value.to(device) for name, value in batch.items()}
        n = len(batch["masked_ids"])
        values = {name: loss.item() * n for name, loss in model(batch).items()}
        hidden = model.encoder(batch["ids"], batch["segments"], batch["attention_mask"])
        guesses = model.masked_language_model(hidden[batch["masked_batch"], batch["masked_position"]]).argmax(-1)
        values["accuracy"] = (guesses == batch["masked_ids"]).sum().item()
        sums = {name: sums.get(name, 0.0) + value for name, value in values.items()}
        count += n
    return {name: value / count for name, value in sums.items()}
