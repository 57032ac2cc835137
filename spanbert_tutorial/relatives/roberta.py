"""RoBERTa: BERT's encoder with other positions, and masks that do not return.

Chapter: `book/relatives/roberta`. Byte-level tokens: `byte_bpe`. Source: RoBERTa §4. The same
weights give the same numbers as `transformers.RobertaModel` (tested). Shapes: B batch (in
`mask_epochs` all blocks), n sequence, H hidden.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, TypeVar

from torch import Tensor

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.inputs import Embeddings
from spanbert_tutorial.bert.weights import NAME_PAIRS, Layout
from spanbert_tutorial.errors import require

ROBERTA = Layout("roberta", NAME_PAIRS)
Masks = TypeVar("Masks")


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
        wrong = "max_position_embeddings leaves no row for a token"
        require(self.longest > 0, f"{wrong}: give more, such as 514.")

    @property
    def longest(self) -> int:
        """Tokens of the longest input: 512 of 514 rows."""
        return self.max_position_embeddings - self.pad_token_id - 1


def position_numbers(input_ids: Tensor, pad_id: int) -> Tensor:
    """Rows of the position table [B,n]; padding has row pad_id.

    Tokens count from `pad_id` + 1, and padding between them is not counted."""
    tokens = (input_ids != pad_id).long()  # 1 at tokens
    return tokens.cumsum(1) * tokens + pad_id


class RobertaEmbeddings(Embeddings):
    """BERT's embeddings with the positions of `position_numbers`."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__(config)
        self.pad_id = config.pad_token_id

    def positions(self, input_ids: Tensor) -> Tensor:
        """[B,n,H]."""
        rows = position_numbers(input_ids, self.pad_id)
        return self.position_embeddings(rows)


class RobertaEncoder(BertEncoder):
    """BERT's layers over RoBERTa's embeddings; used as `BertEncoder`."""

    config_class, embeddings_class = RobertaConfig, RobertaEmbeddings


def mask_epochs(
    draw: Callable[[], Masks], copies: int | None
) -> Iterator[Masks]:
    """Masks for one epoch after another, without end. RoBERTa §4.1.

    draw: gives masks of the whole text. copies: how many are drawn, to be used in turn. 1 is
    static masking, 10 what BERT's data held; None draws new ones for every epoch (dynamic
    masking)."""
    stored: list[Masks] = []
    for epoch in count():
        if copies is None:
            yield draw()
        else:
            if epoch < copies:
                stored.append(draw())
            yield stored[epoch % copies]
