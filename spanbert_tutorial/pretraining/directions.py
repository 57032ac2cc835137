"""Who may attend to whom: left, right, or both ways. Chapter:
`book/bert/directions`.

Language models whose attention mask is a setting, and queries beside
words. Sources: BERT §3.1; XLNet §2.3 (two-stream attention).
"""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    EncoderConfig,
    MaskedLanguageModelHead,
    initialize,
)
from spanbert_tutorial.errors import require
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import (
    start_positions_from_sinusoids,
)
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import TrainingConfig, train
from spanbert_tutorial.spanbert.names import with_specials
from spanbert_tutorial.spanbert.single_sequence import (
    single_sequence_blocks,
)

DIRECTIONS = (
    "left-to-right",
    "right-to-left",
    "both ways",
    "all but yourself",
)


def direction_mask(direction: str, attention_mask: Tensor) -> Tensor:
    """Who may attend to whom: bool [B,n,n] from 1 at tokens [B,n].

    True where the row's position may attend to the column's. Nobody
    attends to padding, but padding attends to itself, because softmax
    needs something. direction: one of DIRECTIONS."""
    told = f"{direction} is unknown: use one of {DIRECTIONS}."
    require(direction in DIRECTIONS, told)
    real = attention_mask.bool()
    n = real.shape[1]
    everyone = torch.ones(n, n, dtype=torch.bool, device=real.device)
    itself = everyone.tril().triu()
    allowed = {
        "left-to-right": everyone.tril(),  # the causal mask
        "right-to-left": everyone.triu(),
        "both ways": everyone,
        "all but yourself": ~itself,
    }[direction]
    return torch.where(
        real[:, :, None], allowed & real[:, None, :], itself
    )


def reach(allowed: Tensor, layers: int) -> Tensor:
    """Whether the column's input reaches the row's state [n,n].

    allowed: bool [n,n], the attention mask of each layer."""
    # the residual connection carries each state past the attention
    step = (allowed | torch.eye(len(allowed), dtype=torch.bool)).float()
    return torch.linalg.matrix_power(step, layers) > 0


class LanguageModel(nn.Module):
    """Predicts token i + 1 from the hidden state of token i.

    From right to left: token i − 1."""

    def __init__(self, config: EncoderConfig, direction: str) -> None:
        super().__init__()
        self.direction = direction
        self.encoder = BertEncoder(config)
        self.head = MaskedLanguageModelHead(
            config.hidden_size,
            self.encoder.embeddings.word_embeddings.weight,
        )
        initialize(self.head, config.initializer_range)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The mean loss in nats over all pairs of neighbors."""
        input_ids = batch["input_ids"]
        real = batch["attention_mask"]
        mask = direction_mask(self.direction, real)
        hidden_states = self.encoder(input_ids, attention_mask=mask)
        here, target = slice(None, -1), slice(1, None)
        if self.direction == "right-to-left":
            here, target = target, here
        pairs = real[:, 1:].bool()  # where both neighbors are tokens
        logits = self.head(hidden_states[:, here][pairs])
        labels = input_ids[:, target][pairs]
        return {"loss": F.cross_entropy(logits, labels)}


def new_language_model(
    direction: str, vocab_size: int, seed: int
) -> LanguageModel:
    """An untrained tiny model; the seed alone decides its weights."""
    config = EncoderConfig.preset(
        "tiny",
        vocab_size=vocab_size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=Run().initializer_range,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LanguageModel(config, direction)
    start_positions_from_sinusoids(model.encoder)
    return model


def train_language_model(
    direction: str, text: EncodedText, seed: int, steps: int = 250
) -> tuple[LanguageModel, list[float]]:
    """A trained model, and its loss in nats at each step."""
    model = new_language_model(direction, len(text.wordpiece), seed)
    batches = text_batches(text, np.random.default_rng(seed))
    warmup_steps = max(1, steps // 10)
    config = TrainingConfig(steps, 3e-3, warmup_steps)
    history = train(model, batches, config)
    return model.cpu(), history.losses["loss"]


def text_batches(
    text: EncodedText, rng: np.random.Generator, held_out: bool = False
) -> Iterator[dict[str, Tensor]]:
    """Batches of 16 blocks, without end, each block once a round, with
    [CLS] and [SEP] at most 32 tokens: input_ids [B,n], attention_mask
    bool [B,n]."""
    corpus = text.held_out if held_out else text.train
    tokens = text.wordpiece
    blocks = single_sequence_blocks(corpus, tokens.starts, 30).ranges
    while True:
        order = rng.permutation(len(blocks))
        for start in range(0, len(order), 16):
            ranges = blocks[order[start : start + 16]]
            rows = [corpus.ids[first:end] for first, end in ranges]
            ids, real = with_specials(rows, tokens)
            yield {"input_ids": ids, "attention_mask": real}


def scored_tokens(
    text: EncodedText, batches: int = 40
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """input_ids [B,n], attention_mask and chosen bool [B,n] of held-out
    text: one token in seven is chosen, always the same ones, never
    [CLS] or [SEP]."""
    rng = np.random.default_rng(12345)
    stream = text_batches(text, rng, held_out=True)
    for _, batch in zip(range(batches), stream, strict=False):
        ids, real = batch["input_ids"], batch["attention_mask"]
        chosen = torch.from_numpy(rng.random(ids.shape) < 1 / 7)
        chosen &= real & (ids != text.wordpiece.sep_id)
        chosen[:, 0] = False  # nothing is before [CLS]
        yield ids, real, chosen


def twin_mask(content: Tensor, query: Tensor) -> Tensor:
    """The attention mask of n words and their n queries, bool [2n,2n].

    content: which words a word may attend to; query: which words a
    query may attend to (both bool [n,n])."""
    words = torch.cat([content, query])
    return torch.cat([words, torch.zeros_like(words)], dim=1)


def twin_states(
    encoder: BertEncoder,
    input_ids: Tensor,
    mask_id: int,
    content: Tensor,
    query: Tensor,
) -> Tensor:
    """Hidden states [B,n,H] of queries, one [MASK] for each word.

    A query has its word's position. content, query: `twin_mask`."""
    masks = torch.full_like(input_ids, mask_id)
    parts = [encoder.embeddings(x, None) for x in (input_ids, masks)]
    hidden_states = torch.cat(parts, dim=1)
    for layer in encoder.layers:
        hidden_states = layer(hidden_states, twin_mask(content, query))
    return hidden_states[:, input_ids.shape[1] :]
