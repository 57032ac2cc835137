"""80/10/10 and two other shares in miniature, and names filled gap by gap. Chapter:
`book/evidence/plateau`.

After BERT's appendix C.2 (Table 8), at tiny size: token masking, paired seeds; only the shares of
[MASK], of the same token and of a random one differ. Measured on held-out text: the loss at chosen
places that show [MASK], the same token, or a random one, the same places for all; and what becomes
of names of two tokens that are both hidden.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from research.grid import text_facts
from research.measurements import two_gaps
from research.measurements.names import named_blocks
from research.results import CURVES, curve, rounded
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.inputs import collate, masked_labels
from spanbert_tutorial.bert.masking import CORRUPTION, MaskedBlocks, corrupt
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.baselines import unigram_baselines
from spanbert_tutorial.pretraining.batches import PretrainingData, gather
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train

# Named as in BERT's Table 8, percent of [MASK], of the same token, of a random one; the values are
# those of `corrupt`.
ARM = "variant"
SEEDS = 5
ARMS = {"80/10/10": CORRUPTION, "100/0/0": (1.0, 0.0), "80/20/0": (0.8, 0.0)}
SHOWN = {
    "mask": (1.0, 0.0),
    "same": (0.0, 0.0),
    "random": (0.0, 1.0),
}  # what all chosen places show when we measure
ROWS = 64
GAPS = 1_000
START = Run(objective="mlm", steps=1_000)
SETTINGS = {"start": START, **CURVES}


def with_shares(
    run: Run, text: EncodedText, shares: tuple[float, float]
) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with other shares: a model trained from its first weights."""
    model = runs.new_model(run, text)
    objective = replace(Objective.named(run.objective), shares=shares)
    data = PretrainingData(text.train, text.wordpiece, objective, run.max_length, run.batch_size)
    return model, train(model, data.batches(np.random.default_rng(run.seed)), run.recipe())


def chosen_tokens(
    text: EncodedText, length: int = START.max_length
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """ids [B,n], masked bool [B,n] and lengths [B] of all held-out blocks: the same tokens for
    every model."""
    data = PretrainingData(text.held_out, text.wordpiece, Objective.named("mlm"), length, ROWS)
    choose = np.random.default_rng(1)
    for start in range(0, len(data), ROWS):
        ids, lengths = gather(
            text.held_out, data.segments[0][start : start + ROWS], text.wordpiece.pad_id
        )
        yield (
            ids,
            data.objective.masking.select_batch(text.wordpiece.word_starts(ids), lengths, choose),
            lengths,
        )


def without_context(text: EncodedText, length: int = START.max_length) -> dict[str, float]:
    """What is reached at these tokens by somebody who sees nothing: the share of the commonest of
    them, and the accuracy of a table that knows how frequent each token is at each position (see
    `unigram_baselines`)."""
    chosen = [
        (masked.nonzero()[1] + 1, ids[masked]) for ids, masked, _ in chosen_tokens(text, length)
    ]
    positions, ids = (np.concatenate(part) for part in zip(*chosen, strict=True))
    tables = unigram_baselines(
        PretrainingData(text.train, text.wordpiece, Objective.named("mlm"), length, ROWS)
    )
    predictions = tables.by_position.argmax(axis=1)[positions]
    return {
        "one token": np.bincount(ids).max() / len(ids),
        "by position": float((predictions == ids).mean()),
    }


@torch.no_grad()
def by_input(
    model: PretrainingModel, text: EncodedText, length: int = START.max_length
) -> dict[str, dict[str, float]]:
    """Mean loss in nats and accuracy at the same chosen tokens of all held-out blocks, for each of
    `SHOWN`."""
    results = {}
    for shown, shares in SHOWN.items():
        draw = np.random.default_rng(2)
        losses = []
        right = []
        for ids, masked, lengths in chosen_tokens(text, length):
            shown_ids = corrupt(
                ids,
                masked,
                draw,
                mask_id=text.wordpiece.mask_id,
                random_ids=text.train.ids,
                unit="token",
                probs=shares,
            )
            batch = collate([MaskedBlocks(ids, shown_ids, masked, lengths)], text.wordpiece)
            hidden = model.encoder(
                batch["input_ids"],
                token_type_ids=batch["token_type_ids"],
                attention_mask=batch["attention_mask"],
            )
            logits = model.masked_language_model(hidden[batch["labels"] != -100])
            losses.append(F.cross_entropy(logits, masked_labels(batch), reduction="none"))
            right.append((logits.argmax(-1) == masked_labels(batch)).float())
        results[shown] = {
            "loss": torch.cat(losses).mean().item(),
            "accuracy": torch.cat(right).mean().item(),
        }
    return results


def hidden_names(wordpiece: WordPiece, most: int = GAPS) -> tuple[two_gaps.TwoGaps, torch.Tensor]:
    """The first `most` held-out names of two tokens, and which pairs are names of the almanac at
    all, bool [V,V]."""
    gaps = two_gaps.two_gaps(named_blocks(almanac.read("validation"), wordpiece), wordpiece)
    every = chain(almanac.read("train"), almanac.read("validation"))
    return gaps.first_rows(most), two_gaps.known_pairs(every, wordpiece)


def by_filling(
    model: PretrainingModel, gaps: two_gaps.TwoGaps, exists: torch.Tensor
) -> dict[str, dict[str, float]]:
    """Shares of names that exist and that are right, the gaps filled apart and one at a time."""
    ways = {"apart": two_gaps.apart, "one at a time": two_gaps.one_at_a_time}
    results = {way: two_gaps.shares(fill(model, gaps), gaps, exists) for way, fill in ways.items()}
    results["apart"]["mass"] = two_gaps.mass_on_names(model, gaps, exists)
    return results


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text, and held-out names to fill in."""
    text = open_text("almanac", folder)
    gaps, exists = hidden_names(text.wordpiece)
    return text_facts(text) | {"hidden_names": len(gaps.ids)}, (text, gaps, exists)


def one(
    variant: str,
    seed: int,
    settings: Mapping,
    text: EncodedText,
    gaps: two_gaps.TwoGaps,
    exists: torch.Tensor,
) -> dict:
    """One run, trained and measured."""
    model, history = with_shares(replace(settings["start"], seed=seed), text, ARMS[variant])
    figures = {"shown": by_input(model, text), "names": by_filling(model, gaps, exists)}
    return rounded(figures) | {"curve": curve(history.losses["mlm"])}


def beside(settings: Mapping, text: EncodedText, *_: object) -> dict:
    """A short run that the chapter does again."""
    run = replace(settings["start"], steps=min(50, settings["start"].steps))
    variant = "100/0/0"
    again = curve(with_shares(run, text, ARMS[variant])[1].losses["mlm"])
    return {"short": {"variant": variant, "run": asdict(run), "curve": again}}
