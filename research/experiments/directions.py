"""One direction, two joined, both at once: what the models predict and what their states are good
for, five seeds. Chapter: `book/evidence/questions`.

Models of the same seed start from the same weights and see the same blocks; only who may look at
whom differs.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from research.grid import CURVE_EVERY, almanac_text, curve, rounded
from research.measurements.frozen_states import (
    Mention,
    accuracy,
    four_ways,
    in_training_text,
    linear_probe,
    most_frequent_tag,
    next_token_list,
    role_split,
    roles_of,
    samples,
    states_at,
    town_mentions,
    words_at,
)
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.directions import (
    LanguageModel,
    direction_mask,
    new_language_model,
    scored_tokens,
    train_language_model,
)
from spanbert_tutorial.pretraining.encoded_text import EncodedText

SEEDS = 5
TOLERANCE = {"loss": 0.2, "accuracy": 0.04}  # by which a figure may differ on another machine
SETTINGS = {"tolerance": TOLERANCE, "curve_every": CURVE_EVERY}
JOINED = "two directions joined"
# The family of comparisons on a town's role.
ROLES = (
    ("untrained", "word embedding"),
    ("spanbert-tiny", "untrained"),
    (JOINED, "left-to-right"),
    ("right-to-left", "left-to-right"),
    (JOINED, "right-to-left"),
    ("both ways", "left-to-right"),
    ("both ways", "spanbert-tiny"),
    ("a list of next tokens", "spanbert-tiny"),
)

VIEWS = ("in sight", "behind [MASK]", "not looked at")


@torch.no_grad()
def score(
    model: LanguageModel, text: EncodedText, view: str, batches: int = 40
) -> dict[str, float]:
    """Loss in nats and accuracy on the tokens of `scored_tokens`. view: one of VIEWS; all tokens
    are there, the scored ones are replaced, or attention is closed to everything on the right."""
    losses = []
    right = []
    direction = "left-to-right" if view == "not looked at" else model.direction
    for ids, real, chosen in scored_tokens(text, batches):
        seen = ids.masked_fill(chosen, text.wordpiece.mask_id) if view == "behind [MASK]" else ids
        states = model.encoder(seen, attention_mask=direction_mask(direction, real))
        logits = model.head(states[:, :-1][chosen[:, 1:]])
        losses.append(F.cross_entropy(logits, ids[chosen], reduction="none"))
        right.append(logits.argmax(dim=-1) == ids[chosen])
    return {
        "loss": torch.cat(losses).mean().item(),
        "accuracy": torch.cat(right).double().mean().item(),
    }


def role_rows(
    encoders: dict, mentions: list[Mention], tokens: WordPiece, seed: int
) -> dict[str, float]:
    """Accuracy of the probe for each encoder. encoders: name → (encoder, pattern), or several to be
    joined."""
    seen, unseen = role_split(mentions, seed)
    labels = roles_of(seen)
    answers = roles_of(unseen)
    found = {}
    for name, parts in encoders.items():
        both = [
            torch.cat([states_at(e, m, tokens, p) for e, p in parts], dim=-1)
            for m in (seen, unseen)
        ]
        found[name] = accuracy(linear_probe(both[0], labels), both[1], answers)
    shipped = encoders["spanbert-tiny"][0][0]
    both = [words_at(shipped, m) for m in (seen, unseen)]
    found["word embedding"] = accuracy(linear_probe(both[0], labels), both[1], answers)
    shuffled = labels[torch.from_numpy(np.random.default_rng(seed).permutation(len(labels)))]
    both = [states_at(shipped, m, tokens) for m in (seen, unseen)]
    found["spanbert-tiny, labels shuffled"] = accuracy(
        linear_probe(both[0], shuffled), both[1], answers
    )
    found["a list of next tokens"] = next_token_list(seen, unseen)
    return found


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text, and the shipped encoder."""
    facts, given = almanac_text(folder, settings)
    shipped, _ = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    return facts, (*given, shipped.encoder)


def one(seed: int, settings: Mapping, text: EncodedText, shipped: BertEncoder) -> dict:
    """All figures of one seed."""
    tokens = text.wordpiece
    trained = {}
    views = {}
    curves = {}
    for pattern in ("left-to-right", "right-to-left", "both ways"):
        trained[pattern], losses = train_language_model(pattern, text, seed)
        curves[pattern] = curve(losses)
        if pattern != "right-to-left":
            views[pattern] = {view: score(trained[pattern], text, view) for view in VIEWS}
    alone = {pattern: [(model.encoder, pattern)] for pattern, model in trained.items()}
    untrained = new_language_model("both ways", len(tokens), seed).encoder
    encoders = {"untrained": [(untrained, "both ways")], **alone}
    encoders[JOINED] = alone["left-to-right"] + alone["right-to-left"]
    encoders["spanbert-tiny"] = [(shipped, "both ways")]
    mentions = town_mentions(almanac.read("validation"), tokens)
    rows, tests = samples(tokens, seed)
    known = in_training_text(tests, tokens)
    parts = {
        "tags": tests,
        "tags_new": [row for row, old in zip(tests, known, strict=True) if not old],
    }
    figures = {name: tag_rows(shipped, rows, part, tokens, seed) for name, part in parts.items()}
    figures["roles"] = role_rows(encoders, mentions, tokens, seed)
    return {"curves": curves} | rounded(
        {"views": views, "in_training_text": known.mean().item(), **figures}
    )


def tag_rows(
    shipped: BertEncoder, rows: list, tests: list, tokens: WordPiece, seed: int
) -> dict[str, float]:
    """Accuracy of each way to use the encoder, and of the list of most frequent tags."""
    ways = four_ways(shipped, rows, tests, tokens, seed)
    return ways | {"most frequent tag": most_frequent_tag(rows, tests)}


def place(path: tuple) -> tuple | None:
    """The model, or what is read, is the condition."""
    return (path[1], (path[0], *path[2:])) if len(path) > 1 else None
