"""One small model trained in two ways, auto-encoding and auto-regressive, and what each can do.
Evidence: `book/evidence/relatives`.

Models of the same seed start from the same weights and read the same blocks in the same order; only
who may look at whom and what has to be named differ. The third row is the control for the number of
targets: auto-regressive, but only the tokens that masking has chosen are targets. All are measured
on sentences that stand nowhere in the training text.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from research.grid import text_facts
from research.measurements.frozen_states import in_training_text
from research.results import CURVE_EVERY, curve, rounded
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.masking import word_sizes
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.directions import padded_batch
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.relatives.beyond import LeftToRight, gap_by_chain_rule, pseudo_log_likelihood
from spanbert_tutorial.text.sentences import split_sentences

WAYS = (
    "auto-encoding, 15 %",
    "auto-regressive, 100 %",
    "auto-regressive, 15 %",
)  # percent: tokens that are targets
ARM = "way"
ARMS = WAYS
SEEDS = 5
# tried: gaps in which every token of the vocabulary is tried
SENTENCES = 300
TRIED = 30
START = Run(objective="mlm", steps=1_000)
SHORT = replace(START, steps=250)  # a chapter can afford to train this one
TOLERANCE = {"loss": 0.25, "share": 0.06}  # by which a figure may differ on another machine
SETTINGS = {
    "start": START,
    "sentences": SENTENCES,
    "tried": TRIED,
    "every": CURVE_EVERY,
    "tolerance": TOLERANCE,
}

Model = PretrainingModel | LeftToRight


def trained(way: str, run: Run, text: EncodedText) -> tuple[Model, list[float]]:
    """A model trained from the first weights of the run in one of `WAYS`, and its losses step by
    step."""
    start = runs.new_model(run, text)
    model: Model = start if way == WAYS[0] else LeftToRight(start, every=way == WAYS[1])
    # Like a PretrainingModel, a LeftToRight returns its losses for a batch.
    _, history = runs.pretrain(run, text, model)  # type: ignore[arg-type]
    return model.cpu().eval(), history.losses["loss"]


# --- the same questions to every model ----------------------------------------------


def new_sentences(tokens: WordPiece, most: int = SENTENCES) -> list[np.ndarray]:
    """Different held-out sentences of 8 to 24 tokens that stand nowhere in the training text, in
    random order."""
    texts = dict.fromkeys(s for d in almanac.read("validation") for s in split_sentences(d["text"]))
    rows = [row for row in map(tokens.encode, texts) if 8 <= len(row) <= 24]
    order = np.random.default_rng(0).permutation(len(rows))[: 6 * most]
    rows = [rows[i] for i in order]
    known = in_training_text([(row, None) for row in rows], tokens)
    return [row for row, old in zip(rows, known, strict=True) if not old][:most]


def log_p_at(
    model: Model,
    rows: list[np.ndarray],
    places: np.ndarray,
    tokens: WordPiece,
    end: bool = True,
) -> Tensor:
    """Log-probabilities [B,V] for the places [B] of the rows (counted without [CLS]): of a
    `LeftToRight` model from the token before, of a masked one from the place itself. end: whether
    [SEP] stands behind each row."""
    batch = padded_batch(rows, tokens)
    row = torch.arange(len(rows))
    if isinstance(model, LeftToRight):
        states = model.states(batch["input_ids"])[
            row, torch.from_numpy(places)
        ]  # the token before; [CLS] is in front
    else:
        lengths = batch["attention_mask"].sum(1)
        real = (
            batch["attention_mask"]
            if end
            else torch.arange(batch["input_ids"].shape[1]) < lengths[:, None] - 1
        )
        states = model.encoder(batch["input_ids"], attention_mask=real)[
            row, torch.from_numpy(places + 1)
        ]
    return model.masked_language_model(states).log_softmax(-1)


def with_gap(rows: list[np.ndarray], places: np.ndarray, mask_id: int) -> list[np.ndarray]:
    """Copies of the rows with [MASK] at one place each."""
    return [
        np.where(np.arange(len(row)) == place, mask_id, row)
        for row, place in zip(rows, places, strict=True)
    ]


def figures(log_p: Tensor, wanted: Tensor) -> dict[str, float]:
    """Mean loss in nats, and the share of right first guesses."""
    loss = -log_p.gather(1, wanted[:, None]).mean().item()
    return {"loss": loss, "accuracy": (log_p.argmax(1) == wanted).float().mean().item()}


@torch.no_grad()
def gaps(model: Model, rows: list[np.ndarray], tokens: WordPiece) -> dict[str, dict[str, float]]:
    """One token of each row: named from the left side only, and from both sides. "tried": the first
    TRIED rows, where a `LeftToRight` model tries every token of the vocabulary."""
    rng = np.random.default_rng(1)
    places = np.array([rng.integers(len(row)) for row in rows])
    wanted = torch.tensor([row[place] for row, place in zip(rows, places, strict=True)])
    if isinstance(model, LeftToRight):
        batch = padded_batch(rows[:TRIED], tokens)
        before_end = (
            batch["attention_mask"].sum(1) - 1
        ).tolist()  # [SEP] is no target of the third way
        parts = [
            gap_by_chain_rule(model, ids[:n], int(p) + 1)
            for ids, n, p in zip(batch["input_ids"], before_end, places, strict=False)
        ]
        left = log_p_at(model, rows, places, tokens)
        return {
            "left": figures(left, wanted),
            "left, tried": figures(left[:TRIED], wanted[:TRIED]),
            "both, tried": figures(torch.stack(parts).log(), wanted[:TRIED]),
        }
    ends = with_gap(
        [row[: place + 1] for row, place in zip(rows, places, strict=True)], places, tokens.mask_id
    )
    both = log_p_at(model, with_gap(rows, places, tokens.mask_id), places, tokens)
    return {
        "left": figures(log_p_at(model, ends, places, tokens), wanted),
        "left, no [SEP]": figures(log_p_at(model, ends, places, tokens, end=False), wanted),
        "both": figures(both, wanted),
        "both, tried": figures(both[:TRIED], wanted[:TRIED]),
    }


def swapped(row: np.ndarray, tokens: WordPiece, rng: np.random.Generator) -> np.ndarray:
    """The row with two neighboring words in each other's place; they differ, and the last word
    stays."""
    words = np.split(row, np.cumsum(word_sizes(tokens.word_starts(row)))[:-1])
    different = [i for i in range(len(words) - 2) if not np.array_equal(words[i], words[i + 1])]
    i = different[rng.integers(len(different))]
    return np.concatenate([*words[:i], words[i + 1], words[i], *words[i + 2 :]])


def score(model: Model, row: np.ndarray, tokens: WordPiece) -> float:
    """The row's log-probability by the chain rule, or its pseudo-log-likelihood; neither counts
    [SEP]."""
    ids = torch.tensor([tokens.cls_id, *row.tolist(), tokens.sep_id])
    if isinstance(model, LeftToRight):
        return model.chain_rule(ids[None, :-1]).sum().item()
    return pseudo_log_likelihood(model, ids, tokens.mask_id).sum().item()


def told_apart(model: Model, rows: list[np.ndarray], tokens: WordPiece) -> float:
    """Share of rows that score higher than the same row with two neighboring words swapped. Both
    have the same tokens, so frequencies alone are right in half of the cases."""
    rng = np.random.default_rng(2)
    return float(
        np.mean(
            [
                score(model, row, tokens) > score(model, swapped(row, tokens, rng), tokens)
                for row in rows
            ]
        )
    )


@torch.no_grad()
def copying(model: Model, text: EncodedText, rows: int = 200, length: int = 16) -> dict[str, float]:
    """Loss at one token of a random sequence of tokens that stands in the context once before
    ("copy"), and at the same token where another random sequence stands there ("other"). What
    context alone can teach."""
    rng = np.random.default_rng(3)
    tokens = text.wordpiece
    draws = text.train.ids[rng.integers(len(text.train.ids), size=(2, rows, length))]
    places = length + rng.integers(length // 2, length, size=rows)
    wanted = torch.from_numpy(draws[0][np.arange(rows), places - length].astype(np.int64))
    results = {}
    for name, before in {"copy": draws[0], "other": draws[1]}.items():
        shown = list(np.concatenate([before, draws[0]], axis=1))
        shown = shown if isinstance(model, LeftToRight) else with_gap(shown, places, tokens.mask_id)
        results[name] = figures(log_p_at(model, shown, places, tokens), wanted)["loss"]
    return results


def uses(model: Model, text: EncodedText, rows: list[np.ndarray]) -> dict[str, object]:
    """All questions to one model."""
    return {
        "gaps": gaps(model, rows, text.wordpiece),
        "told_apart": told_apart(model, rows, text.wordpiece),
        "copying": copying(model, text),
    }


def unigram(text: EncodedText, rows: list[np.ndarray]) -> dict[str, float]:
    """What a list of frequencies reaches in the gaps of `gaps`."""
    counts = torch.from_numpy(np.bincount(text.train.ids, minlength=len(text.wordpiece))).float()
    rng = np.random.default_rng(1)
    wanted = torch.tensor([row[rng.integers(len(row))] for row in rows])
    return figures((counts / counts.sum()).clamp(min=1e-9).log().expand(len(rows), -1), wanted)


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text, and the sentences with which all models are asked."""
    text = open_text("almanac", folder)
    rows = new_sentences(text.wordpiece, settings["sentences"])
    return text_facts(text), (text, rows)


def one(way: str, seed: int, settings: Mapping, text: EncodedText, rows: list[np.ndarray]) -> dict:
    """One run, trained and asked."""
    model, losses = trained(way, replace(settings["start"], seed=seed), text)
    return {"uses": rounded(uses(model, text, rows)), "curve": curve(losses)}


def beside(settings: Mapping, text: EncodedText, rows: list[np.ndarray]) -> dict:
    """A short run that the chapter does again, and two readers that need no training."""
    run = replace(settings["start"], steps=min(SHORT.steps, settings["start"].steps))
    short = {
        "way": WAYS[1],
        "run": asdict(run),
        **one(WAYS[1], run.seed, {"start": run}, text, rows),
    }
    shipped, _ = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    told = {"unigram": unigram(text, rows), "shipped": uses(shipped.eval(), text, rows)}
    return rounded(told) | {"short": short}
