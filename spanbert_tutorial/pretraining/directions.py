"""Who may look at whom: one direction, two joined, both at once. Chapter: `book/bert/directions`.

Attention patterns and their reach; a language model whose pattern is a setting; digits at random,
where every loss under ln 10 is a leak. Sources: BERT §3.1; the twins are two-stream attention,
XLNet §2.3. What the states are good for: `experiments.frozen_states`. Shapes: B batch, n sequence,
H hidden, L layers, V vocabulary, t chosen tokens.
"""

from collections.abc import Callable, Iterable, Iterator

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
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.batches import gather
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import TrainingConfig, train
from spanbert_tutorial.spanbert.single_sequence import single_sequence_blocks

PATTERNS = ("left-to-right", "right-to-left", "both ways", "all but yourself")

# --- who may look at whom ------------------------------------------------------------


def attention_pattern(name: str, real: Tensor) -> Tensor:
    """bool [B,n,n], true where the position of the row may look at the position of the column;
    ready for `BertEncoder`. real: bool [B,n], false at padding. Nobody looks at padding, but a
    padded position looks at itself, because softmax needs something. Raises InputError for an
    unknown name, and for a token left with nothing to see."""
    if name not in PATTERNS:
        raise InputError(f'the pattern "{name}" is unknown: use one of {", ".join(PATTERNS)}.')
    n = real.shape[1]
    square = torch.ones(n, n, dtype=torch.bool, device=real.device)
    itself = torch.eye(n, dtype=torch.bool, device=real.device)
    shapes = (square.tril(), square.triu(), square, ~itself)
    allowed = shapes[PATTERNS.index(name)] & real.bool()[:, None, :]  # [B,n,n]
    if name == "all but yourself" and (real.sum(dim=1) < 2).any():
        raise InputError(
            "a sequence of one token has nobody else to look at: give at least two tokens."
        )
    return torch.where(real.bool()[:, :, None], allowed, itself)


def reach(allowed: Tensor, layers: int) -> Tensor:
    """bool [n,n]: whether the input of the column can influence the state of the row after that
    many layers.

    A layer passes on what attention lets in and, by the residual connection, the position's own
    state. `allowed`: bool [n,n]."""
    step = (allowed | torch.eye(len(allowed), dtype=torch.bool)).float()
    return torch.linalg.matrix_power(step, layers) > 0


@torch.no_grad()
def measured_reach(states: Callable[[Tensor], Tensor], ids: Tensor, other: int) -> Tensor:
    """bool [n,n]: whether the state of the row changes when the token of the column becomes
    `other`.

    states: ids [B,n] -> [B,n,H], a model in evaluation mode. ids: [n], without the token
    `other`."""
    n = len(ids)
    changed = ids.repeat(n, 1)
    changed[torch.arange(n), torch.arange(n)] = other  # row j: token j is another one
    difference = states(changed) - states(ids.repeat(n, 1))  # [n,n,H]: changed token, state
    return (difference.abs().amax(dim=-1) > 1e-5).T


# --- a language model whose pattern is a setting ------------------------------------


class LanguageModel(nn.Module):
    """Predicts token i + 1 from the state of token i, as language models do; with "right-to-left"
    token i - 1."""

    def __init__(self, config: EncoderConfig, pattern: str) -> None:
        super().__init__()
        self.encoder = BertEncoder(config)
        self.pattern = pattern
        self.head = MaskedLanguageModelHead(
            config.hidden_size, self.encoder.embeddings.words.weight
        )
        initialize(self.head, config.initializer_range)

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """batch: ids [B,n], real bool [B,n]. Returns the mean loss over all pairs of neighbors."""
        real = batch["attention_mask"]
        ids = batch["input_ids"]
        hidden = self.encoder(ids, attention_mask=attention_pattern(self.pattern, real))  # [B,n,H]
        pairs = real[:, 1:]  # where both tokens are real
        if self.pattern == "right-to-left":
            return {"loss": F.cross_entropy(self.head(hidden[:, 1:][pairs]), ids[:, :-1][pairs])}
        return {"loss": F.cross_entropy(self.head(hidden[:, :-1][pairs]), ids[:, 1:][pairs])}


def new_language_model(pattern: str, vocabulary: int, seed: int) -> LanguageModel:
    """An untrained tiny model: the same seed gives the same weights, whatever the pattern."""
    changes = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    changes["initializer_range"] = Run().initializer_range
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = LanguageModel(
            EncoderConfig.preset("tiny", vocab_size=vocabulary, **changes), pattern
        )
    start_positions_from_sinusoids(model.encoder)
    return model


def text_batches(
    text: EncodedText,
    rng: np.random.Generator,
    *,
    held_out: bool = False,
    max_length: int = 32,
    batch_size: int = 16,
) -> Iterator[dict[str, Tensor]]:
    """Without end: blocks with [CLS] and [SEP] as ids [B,n] and real bool [B,n], each block once a
    round."""
    corpus = text.held_out if held_out else text.train
    tokens = text.wordpiece
    blocks = single_sequence_blocks(corpus, tokens.starts, max_length - 2).ranges
    while True:
        order = rng.permutation(len(blocks))
        for start in range(0, len(order), batch_size):
            ids, lengths = gather(corpus, blocks[order[start : start + batch_size]], tokens.pad_id)
            yield padded_batch([row[:n] for row, n in zip(ids, lengths, strict=True)], tokens)


def padded_batch(rows: Iterable[np.ndarray], tokens: WordPiece) -> dict[str, Tensor]:
    """Rows of tokens as one batch, [CLS] before and [SEP] behind each: ids [B,n], real bool
    [B,n]."""
    framed = [torch.tensor([tokens.cls_id, *row.tolist(), tokens.sep_id]) for row in rows]
    ids = nn.utils.rnn.pad_sequence(framed, batch_first=True, padding_value=tokens.pad_id)
    lengths = torch.tensor([len(row) for row in framed])
    return {"input_ids": ids, "attention_mask": torch.arange(ids.shape[1]) < lengths[:, None]}


def train_language_model(
    pattern: str, text: EncodedText, seed: int, steps: int = 250
) -> tuple[LanguageModel, list[float]]:
    """A trained model and its losses in nats, step by step. The same seed gives the same
    batches."""
    model = new_language_model(pattern, len(text.wordpiece), seed)
    batches = text_batches(text, np.random.default_rng(seed))
    history = train(model, batches, TrainingConfig(steps, 3e-3, warmup_steps=max(1, steps // 10)))
    return model.cpu(), history.losses["loss"]  # trained on a GPU if there is one, used on the CPU


# --- the same tokens, asked in several ways -----------------------------------------


def scored_tokens(text: EncodedText, batches: int = 40) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """ids [B,n], real bool [B,n] and chosen bool [B,n] of held-out text: one token in seven is
    chosen, the same ones for every model and view; never [CLS] or [SEP]."""
    rng = np.random.default_rng(12345)
    tokens = text.wordpiece
    for _, batch in zip(range(batches), text_batches(text, rng, held_out=True), strict=False):
        ids = batch["input_ids"]
        real = batch["attention_mask"]
        chosen = torch.from_numpy(rng.random(ids.shape) < 1 / 7) & real & (ids != tokens.sep_id)
        chosen[:, 0] = False  # nothing stands before [CLS]
        yield ids, real, chosen


VIEWS = ("in sight", "behind [MASK]", "not looked at")


@torch.no_grad()
def score(
    model: LanguageModel, text: EncodedText, view: str, batches: int = 40
) -> dict[str, float]:
    """Loss in nats and accuracy on one token in seven of held-out text, the same tokens for every
    model and view.

    view: "in sight", all tokens stand there; "behind [MASK]", the scored tokens are replaced; "not
    looked at", attention is closed to everything on the right. Not for right-to-left models."""
    if view not in VIEWS:
        raise InputError(f'the view "{view}" is unknown: use one of {", ".join(VIEWS)}.')
    losses = []
    right = []
    pattern = "left-to-right" if view == "not looked at" else model.pattern
    for ids, real, chosen in scored_tokens(text, batches):
        seen = torch.where(chosen, text.wordpiece.mask_id, ids) if view == "behind [MASK]" else ids
        hidden = model.encoder(seen, attention_mask=attention_pattern(pattern, real))
        logits = model.head(hidden[:, :-1][chosen[:, 1:]])
        losses.append(F.cross_entropy(logits, ids[chosen], reduction="none"))
        right.append(logits.argmax(dim=-1) == ids[chosen])
    return {
        "loss": torch.cat(losses).mean().item(),
        "accuracy": torch.cat(right).double().mean().item(),
    }


SIDES = ("both sides", "left side", "left side, length known")


def gap_inputs(
    ids: Tensor, place: Tensor, end: Tensor, side: str, tokens: WordPiece
) -> tuple[Tensor, Tensor]:
    """Inputs [t,n] of a masked language model and which of their places are real, bool [t,n], for
    one gap a row.

    ids: whole blocks [t,n]; place: of the gap, [t]; end: of [SEP], [t]. side: "both sides", all but
    the gap stands there; "left side", the input ends with the gap, as when a text is continued;
    "left side, length known", all that follows is hidden, too, and [SEP] stands. Raises InputError
    for another side."""
    if side not in SIDES:
        raise InputError(f'the side "{side}" is unknown: use one of {", ".join(SIDES)}.')
    at = torch.arange(ids.shape[1])
    place = place[:, None]
    end = end[:, None]
    hidden = (at >= place) & (at < end) if side == "left side, length known" else at == place
    return torch.where(hidden, tokens.mask_id, ids), at <= (place if side == "left side" else end)


@torch.no_grad()
def score_gaps(
    model: PretrainingModel, text: EncodedText, side: str, batches: int = 40
) -> dict[str, float]:
    """Loss in nats and accuracy of a masked language model on the tokens that `score` takes, one
    gap at a time."""
    losses = []
    right = []
    for ids, real, chosen in scored_tokens(text, batches):
        rows, place = chosen.nonzero(as_tuple=True)
        seen, kept = gap_inputs(ids[rows], place, real.sum(dim=1)[rows] - 1, side, text.wordpiece)
        states = model.encoder(seen, attention_mask=kept)[torch.arange(len(rows)), place]
        logits = model.masked_language_model(states)
        losses.append(F.cross_entropy(logits, ids[chosen], reduction="none"))
        right.append(logits.argmax(dim=-1) == ids[chosen])
    return {
        "loss": torch.cat(losses).mean().item(),
        "accuracy": torch.cat(right).double().mean().item(),
    }


@torch.no_grad()
def write_on(model: PretrainingModel, start: str, tokens: WordPiece, count: int) -> str:
    """The text `start` and `count` more tokens: a masked language model fills a [MASK] at the end,
    again and again, each time with its likeliest token."""
    ids = [tokens.cls_id, *tokens.encode(start).tolist()]
    for _ in range(count):
        states = model.encoder(torch.tensor([[*ids, tokens.mask_id]]))
        ids.append(model.masked_language_model(states[0, -1]).argmax().item())
    return tokens.decode(np.array(ids[1:]))


# --- digits at random: every loss under ln 10 is a leak -----------------------------


def twin_mask(content: Tensor, query: Tensor) -> Tensor:
    """bool [2n,2n] for n words and, after them, their n twins. content: which words a word may look
    at; query: which words a twin may look at (both bool [n,n]). Nobody looks at a twin."""
    return torch.cat(
        [
            torch.cat([content, query]),
            torch.zeros(2 * len(content), len(content), dtype=torch.bool),
        ],
        1,
    )


def twin_states(
    encoder: BertEncoder, ids: Tensor, mask_id: int, content: Tensor, query: Tensor
) -> Tensor:
    """States [B,n,H] of the twins: each word stands twice, as itself and as a [MASK] at the same
    position."""
    words = encoder.embeddings(ids, None)
    twins = encoder.embeddings(torch.full_like(ids, mask_id), None)
    hidden = torch.cat([words, twins], dim=1)
    mask = twin_mask(content, query)
    for layer in encoder.layers:
        hidden = layer(hidden, mask)
    return hidden[:, ids.shape[1] :]


# ids 0 to 9, the id of [MASK], digits in a row
DIGITS = 10
MASK = 10
SPOTS = 6
GAMES = {  # name → layers, and how the states are made
    "left-to-right": (2, "next"),
    "both ways": (2, "next"),
    "all but yourself": (1, "own"),
    "all but yourself, twins, 1 layer": (1, "twin"),
    "all but yourself, twins, 2 layers": (2, "twin"),
    "one digit behind [MASK]": (2, "mask"),
}


def digit_game(
    name: str, encoder: BertEncoder, ids: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """States [t,H] of one game of GAMES and the digits [t] that they have to name."""
    kind = GAMES[name][1]
    everywhere = torch.ones_like(ids, dtype=torch.bool)
    if kind == "next":
        return encoder(ids, attention_mask=attention_pattern(name, everywhere))[:, :-1].flatten(
            0, 1
        ), ids[:, 1:].flatten()
    if kind == "own":
        return encoder(ids, attention_mask=attention_pattern(name, everywhere)).flatten(
            0, 1
        ), ids.flatten()
    if kind == "twin":
        others = attention_pattern("all but yourself", everywhere[:1])[0]
        return twin_states(encoder, ids, MASK, everywhere[:1].T | others, others).flatten(
            0, 1
        ), ids.flatten()
    rows = torch.arange(len(ids))
    spot = torch.randint(SPOTS, (len(ids),), generator=generator)
    seen = ids.clone()
    seen[rows, spot] = MASK
    return encoder(seen)[rows, spot], ids[rows, spot]


def play(name: str, seed: int, steps: int = 100) -> float:
    """Trains a small encoder on digits drawn at random, new ones at each step, and returns the mean
    loss of the last tenth. Nothing can be learned about the digits: an honest model cannot pass
    below ln 10 = 2.303."""
    generator = torch.Generator().manual_seed(seed)
    config = EncoderConfig(
        vocab_size=DIGITS + 1,
        num_hidden_layers=GAMES[name][0],
        hidden_size=64,
        intermediate_size=256,
        num_attention_heads=2,
        max_position_embeddings=SPOTS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    encoder = BertEncoder(config, generator)
    head = MaskedLanguageModelHead(64, encoder.embeddings.words.weight)
    initialize(head, 0.1, generator)
    weights = list(
        {*encoder.parameters(), *head.parameters()}
    )  # a set: the word embeddings belong to both
    optimizer = torch.optim.AdamW(weights, lr=5e-3, betas=(0.9, 0.98))
    losses = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 5e-3 * min(1, (step + 1) / 10) * (1 - step / steps)
        states, digits = digit_game(
            name, encoder, torch.randint(DIGITS, (32, SPOTS), generator=generator), generator
        )
        loss = F.cross_entropy(head(states), digits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses[-(steps // 10) :]))
