"""RoBERTa: BERT's encoder with other positions, masks drawn anew, and blocks without pairs.
Chapter: `book/relatives/roberta`. Byte-level tokens: `byte_bpe`.

Source: RoBERTa §4. The same weights give the same numbers as `transformers.RobertaModel` (tested).
Shapes: B batch (in `views` all blocks), n sequence, H hidden.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import BertEncoder, Layer, initialize
from spanbert_tutorial.bert.inputs import Embeddings, collate
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.bert.sentence_pairs import (
    NOT_NEXT,
    Pairs,
    document_sentences,
    fit,
    other_text,
    size,
)
from spanbert_tutorial.bert.weights import NAME_PAIRS, Layout
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.text.encoding import EncodedCorpus

# --- the encoder ---------------------------------------------------------------------

HEADS = ("lm_head", "pooler", "classifier", "qa_outputs", "embeddings.position_ids")
ROBERTA = Layout("roberta", NAME_PAIRS, HEADS)


@dataclass(frozen=True)
class RobertaConfig(EncoderConfig):
    """Sizes of RoBERTa, base by default. The position table has `pad_token_id` + 1 rows that no
    token uses."""

    layout: ClassVar[Layout] = ROBERTA

    vocab_size: int = 50_265
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    pad_token_id: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest < 1:
            raise InputError(
                f"max_position_embeddings {self.max_position_embeddings} leaves no row for a "
                f"token behind "
                f"those up to pad_token_id {self.pad_token_id}: make it larger, such as 514."
            )

    @property
    def longest(self) -> int:
        """Tokens of the longest input: 512 of 514 rows."""
        return self.max_position_embeddings - self.pad_token_id - 1


def position_numbers(ids: Tensor, pad_id: int) -> Tensor:
    """Rows of the position table [B,n]: padding has row `pad_id`; the real tokens count on from
    `pad_id` + 1, and padding between them is not counted."""
    real = (ids != pad_id).long()
    return real.cumsum(1) * real + pad_id


class RobertaEmbeddings(Embeddings):
    """As BERT's, with the positions of `position_numbers`."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.pad_id = config.pad_token_id

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """Vectors [B,n,H]; token_type_ids, where there are any, are all 0."""
        segment = (
            self.segments.weight[0] if token_type_ids is None else self.segments(token_type_ids)
        )
        position = self.positions(
            position_numbers(input_ids, self.pad_id)
        )  # [B,n,H]: rows differ where padding does
        return self.dropout(self.layer_norm(self.words(input_ids) + segment + position))


class RobertaEncoder(BertEncoder):
    """BERT's layers over RoBERTa's embeddings: ids [B,n] -> hidden states [B,n,H]; used as
    `BertEncoder`."""

    config_class = RobertaConfig

    def __init__(self, config: RobertaConfig, generator: torch.Generator | None = None) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.embeddings = RobertaEmbeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        initialize(self, config.initializer_range, generator)

    def _empty_huggingface(self) -> nn.Module:
        from transformers import (
            RobertaConfig as TheirConfig,
        )  # here, because importing it takes seconds
        from transformers import RobertaModel

        return RobertaModel(TheirConfig(**asdict(self.config)), add_pooling_layer=False)


# --- masks: static, copied, dynamic -------------------------------------------------

View = list[
    tuple
]  # of all blocks, for each segment: original ids, corrupted ids, masked [B,n] and lengths [B]


def views(data: PretrainingData, copies: int | None, rng: np.random.Generator) -> Iterator[View]:
    """All blocks with their masks, epoch after epoch without end.

    copies: how many views are drawn, to be shown in turn. 1 is static masking, 10 what BERT's data
    held; None draws a new view for every epoch (dynamic masking). With one `rng` all three begin
    with the same view. RoBERTa §4.1. Raises InputError for less than one copy. For small data: a
    view holds all blocks.
    """
    if copies is not None and copies < 1:
        raise InputError(
            f"{copies} copies show nothing: give 1 or more, or None for masks that are drawn anew."
        )
    kept: list[View] = []
    for epoch in count():
        if copies is None or epoch < copies:
            kept.append([data.masked_segment(ranges, rng) for ranges in data.segments])
        yield kept.pop() if copies is None else kept[epoch % copies]


def view_batches(
    data: PretrainingData,
    copies: int | None,
    order: np.random.Generator,
    masks: np.random.Generator,
) -> Iterator[dict[str, Tensor]]:
    """Batches for `train`, each epoch with its view. Two generators, so that the order of the
    blocks is the same however often masks are drawn."""
    for view in views(data, copies, masks):
        places = order.permutation(len(data))
        for start in range(0, len(places), data.batch_size):
            rows = places[start : start + data.batch_size]
            yield collate(
                [MaskedBlocks(*(part[rows] for part in segment)) for segment in view],
                data.wordpiece,
            )


# --- input formats ------------------------------------------------------------------

FORMATS = ("SEGMENT-PAIR+NSP", "SENTENCE-PAIR+NSP", "FULL-SENTENCES", "DOC-SENTENCES")


def natural_sentence_pairs(
    corpus: EncodedCorpus, max_tokens: int, rng: np.random.Generator
) -> Pairs:
    """Pairs of two grammatical sentences with NSP labels: SENTENCE-PAIR of RoBERTa §4.2. Arguments:
    `sentence_pairs`.

    Each sentence of the corpus stands in one first or true next segment. Most pairs are far shorter
    than `max_tokens`.
    """
    documents = document_sentences(corpus)
    rows = []
    cut = [0, 0]
    alone = 0
    for number, bounds in enumerate(documents):
        at = 0
        while at < len(bounds) - 1:
            last = at == len(bounds) - 2
            not_next = last or rng.random() < 0.5
            second = (
                other_text(documents, number, 1, rng)
                if not_next
                else (bounds[at + 1], bounds[at + 2])
            )
            first = (bounds[at], bounds[at + 1])
            fitted = fit(first, second, max_tokens, rng)
            rows.append((*fitted[0], *fitted[1], int(not_next)))
            cut[0] += size(first) - size(fitted[0])
            cut[not_next] += size(second) - size(fitted[1])
            at = at + (1 if not_next else 2)
            alone = alone + last
    table = np.array(rows, dtype=np.int64)
    return Pairs(table[:, 0:2], table[:, 2:4], table[:, 4], int(cut[0]), int(cut[1]), alone)


def with_separators(corpus: EncodedCorpus, sep_id: int) -> EncodedCorpus:
    """The corpus as one document, with a separator behind each of its documents, so that blocks may
    cross borders."""
    before = np.searchsorted(
        corpus.document_ends, corpus.sentence_ends, side="right"
    )  # separators up to each end
    ids = np.insert(np.asarray(corpus.ids), corpus.document_ends, sep_id)
    return EncodedCorpus(ids, corpus.sentence_ends + before, np.array([len(ids)]))


@dataclass
class FormatData(PretrainingData):
    """Pre-training data in one of the four `FORMATS`, with token masking. RoBERTa §4.2.

    objective is set by the format. FULL-SENTENCES goes on in the next document, behind a separator
    that is never chosen. crossing: bool [blocks], whether an input holds text of two documents or
    more. Raises InputError for an unknown format.
    """

    objective: Objective = field(init=False)
    form: str = "DOC-SENTENCES"
    crossing: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        if self.form not in FORMATS:
            raise InputError(
                f'the format "{self.form}" is unknown: use one of {", ".join(FORMATS)}.'
            )
        self.objective = Objective.named("mlm+nsp" if "NSP" in self.form else "mlm")
        if self.form == "SENTENCE-PAIR+NSP":
            pairs = natural_sentence_pairs(
                self.corpus, self.max_length - 3, np.random.default_rng(0)
            )
            self.segments = [pairs.first, pairs.second]
            self.labels = pairs.labels
            self.report = pairs.report
        else:
            if self.form == "FULL-SENTENCES":
                self.corpus = with_separators(self.corpus, self.wordpiece.sep_id)
            super().__post_init__()
        if self.labels is None:
            self._trim()
            before = np.concatenate([[0], np.cumsum(self.borders)])  # separators up to each place
            self.crossing = np.diff(before[self.segments[0]])[:, 0] > 0
        else:
            self.crossing = self.labels == NOT_NEXT

    @property
    def borders(self) -> np.ndarray:
        """Where the corpus has separators, bool [N]."""
        return np.asarray(self.corpus.ids) == self.wordpiece.sep_id

    def _trim(self) -> None:
        """Takes separators off both ends of the blocks: there each input has its own [CLS] and
        [SEP]."""
        (ranges,), borders = self.segments, np.append(self.borders, False)
        ranges[:, 1] -= borders[ranges[:, 1] - 1]
        ranges[:, 0] += borders[ranges[:, 0]]
        self.segments = [ranges[ranges[:, 0] < ranges[:, 1]]]

    def masked_segment(self, ranges: np.ndarray, rng: np.random.Generator) -> MaskedBlocks:
        """As in `PretrainingData`, but a separator between documents is never chosen."""
        blocks = super().masked_segment(ranges, rng)
        border = blocks.ids == self.wordpiece.sep_id
        corrupted = np.where(border, blocks.ids, blocks.corrupted)
        return blocks._replace(corrupted=corrupted, masked=blocks.masked & ~border)

    def statistics(self) -> dict[str, float]:
        """inputs; mean_length in tokens, with [CLS] and [SEP]; padding: its share if all inputs
        were padded to `max_length`; crossing: share of the inputs with text of two documents or
        more."""
        lengths = self.lengths()
        return {
            "inputs": len(self),
            "mean_length": float(lengths.mean()),
            "padding": float(1 - lengths.mean() / self.max_length),
            "crossing": float(self.crossing.mean()),
        }
