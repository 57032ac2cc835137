"""Who may attend to whom: left, right, or both ways. Chapter:
`book/bert/directions`.

Language models whose attention mask is a setting, and a game of random
digits in which every loss below ln 10 is a leak. Sources: BERT §3.1;
queries are the two-stream attention of XLNet §2.3.
"""

from collections.abc import Iterable, Iterator

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
from spanbert_tutorial.bert.inputs import NO_TARGET
from spanbert_tutorial.bert.wordpiece import WordPiece
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
    check_direction(direction, attention_mask)
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


def check_direction(direction: str, attention_mask: Tensor) -> None:
    """Raises InputError for an unknown direction, and for a token left
    with nothing to attend to."""
    require(
        direction in DIRECTIONS,
        f'the direction "{direction}" is unknown: use one of {", ".join(DIRECTIONS)}.',
    )
    require(
        direction != "all but yourself"
        or (attention_mask.sum(dim=1) > 1).all(),
        "a sequence of one token has nobody else to attend to: give at least two tokens.",
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
    text: EncodedText,
    rng: np.random.Generator,
    *,
    held_out: bool = False,
    max_length: int = 32,
    batch_size: int = 16,
) -> Iterator[dict[str, Tensor]]:
    """Blocks without end, each once a round, as `padded_batch` has
    them."""
    corpus = text.held_out if held_out else text.train
    tokens = text.wordpiece
    blocks = single_sequence_blocks(
        corpus, tokens.starts, max_length - 2
    ).ranges
    while True:
        order = rng.permutation(len(blocks))
        for start in range(0, len(order), batch_size):
            rows = blocks[order[start : start + batch_size]]
            yield padded_batch(
                [corpus.ids[a:b] for a, b in rows], tokens
            )


def padded_batch(
    rows: Iterable[np.ndarray], tokens: WordPiece
) -> dict[str, Tensor]:
    """Rows of ids as one batch, with [CLS] and [SEP]: input_ids [B,n],
    attention_mask bool [B,n]."""
    names = ("input_ids", "attention_mask")
    arrays = map(torch.from_numpy, with_specials(list(rows), tokens))
    return dict(zip(names, arrays, strict=True))


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


# --- random digits: every loss below ln 10 is a leak -----------------

DIGITS = 10
MASK_ID = 10  # the digits have the ids 0 to 9
POSITIONS = 6
GAMES = {  # layers, who may attend to whom, which digit is predicted
    "left-to-right": (2, "left-to-right", "next"),
    "both ways": (2, "both ways", "next"),
    "all but yourself": (1, "all but yourself", "own"),
    "all but yourself, queries, 1 layer": (1, "queries", "own"),
    "all but yourself, queries, 2 layers": (2, "queries", "own"),
    "one digit is [MASK]": (2, "both ways", "masked"),
}


def twin_mask(content: Tensor, query: Tensor) -> Tensor:
    """The attention mask of n words and their n queries, bool [2n,2n].

    content: which words a word may attend to; query: which words a
    query may attend to (both bool [n,n])."""
    nobody = torch.zeros_like(torch.cat([content, query]))
    return torch.cat([torch.cat([content, query]), nobody], dim=1)


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


class DigitGame(nn.Module):
    """Predicts digits under the rules of one of GAMES."""

    def __init__(self, name: str, generator: torch.Generator) -> None:
        super().__init__()
        layers, self.direction, _ = GAMES[name]
        config = EncoderConfig(
            vocab_size=DIGITS + 1,
            num_hidden_layers=layers,
            hidden_size=64,
            intermediate_size=256,
            num_attention_heads=2,
            max_position_embeddings=POSITIONS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            initializer_range=0.1,
        )
        self.encoder = BertEncoder(config, generator)
        self.head = MaskedLanguageModelHead(
            64, self.encoder.embeddings.word_embeddings.weight
        )
        initialize(self.head, 0.1, generator)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loss of the digits that have labels."""
        ids, labels = batch["input_ids"], batch["labels"]
        ones = torch.ones_like(ids)
        if self.direction == "queries":
            every = direction_mask("both ways", ones[:1])[0]
            others = direction_mask("all but yourself", ones[:1])[0]
            states = twin_states(
                self.encoder, ids, MASK_ID, every, others
            )
        else:
            mask = direction_mask(self.direction, ones)
            states = self.encoder(ids, attention_mask=mask)
        logits = self.head(states).flatten(0, 1)
        return {"loss": F.cross_entropy(logits, labels.flatten())}


def digit_batches(
    target: str, generator: torch.Generator
) -> Iterator[dict[str, Tensor]]:
    """Batches of 32 rows of random digits; target: of GAMES."""
    rows = torch.arange(32)
    while True:
        digits = torch.randint(
            DIGITS, (32, POSITIONS), generator=generator
        )
        ids, labels = digits.clone(), digits.clone()
        if target == "next":
            labels = digits.roll(-1, dims=1)
            labels[:, -1] = NO_TARGET
        if target == "masked":
            spot = torch.randint(POSITIONS, (32,), generator=generator)
            ids[rows, spot] = MASK_ID
            labels[ids != MASK_ID] = NO_TARGET
        yield {"input_ids": ids, "labels": labels}


def play(name: str, seed: int, steps: int = 100) -> float:
    """Trains on random digits; the mean loss of the last tenth.

    Nothing can be learned about them: a model that cannot see its
    answer does not pass below ln 10 = 2.303."""
    generator = torch.Generator().manual_seed(seed)
    model = DigitGame(name, generator)
    batches = digit_batches(GAMES[name][2], generator)
    config = TrainingConfig(steps, 5e-3, warmup_steps=steps // 10)
    losses = train(model, batches, config).losses["loss"]
    return float(np.mean(losses[-(steps // 10) :]))
