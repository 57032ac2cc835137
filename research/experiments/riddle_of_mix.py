"""Why does a model with good losses answer badly? Chapters: `book/tasks/real_questions`,
`book/evidence/spans_and_boundaries`.

Four models were trained alike but for the masks (`copying_and_answers` has their losses and scores).
*Mix*, with batches of token masks and of spans in turn, is within 0.1 nats of each specialist at its
own task, and answers questions of SQuAD 1.1 worst. Here *mlm* and *mix* learn the same questions in
the same order, in short windows around the answers as there: with all weights, with the embeddings
and the lower half of the layers frozen, and with the upper half. For each the loss on questions of
the training, on unseen ones, and F1: a model that learns less is bad at all three, one that answers
worse than it learned at the last.

`--arms` is the folder of both models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from research.experiments.spans_on_wikipedia import begun_from
from research.grid import fingerprint, rounded
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import few_questions, squad
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnsweringData,
    QuestionAnsweringModel,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question

ALL, LOWER, UPPER = "all weights", "lower half frozen", "upper half frozen"
MODELS = ("mlm", "mix")
ARMS = tuple((model, way) for way in (ALL, LOWER, UPPER) for model in MODELS)
SEEDS = 1
FINE_TUNING = True
SETTINGS = {"fine_tuning": replace(PRESETS["short-first"], epochs=2.0), "scored": 1_000}


def prepare(folder: Path, settings: Mapping, arms: Path, data: Path) -> tuple[dict, tuple]:
    """Questions to learn from and unseen ones; the folder of both models."""
    train = squad.read(data / "train-v1.1-part.json.xz")
    test = squad.read(data / "dev-v1.1-half.json.xz")
    order = np.random.default_rng(0).permutation(len(test))[: settings["scored"]]
    groups = train, [test[i] for i in order]
    facts = {
        "begun_from": {name: begun_from(arms / name) for name in MODELS},
        "questions": [len(group) for group in groups],
        "questions_fingerprint": fingerprint(groups),
    }
    return facts, (arms, *groups)


def one(
    arm: tuple[str, str],
    seed: int,
    settings: Mapping,
    arms: Path,
    train: Sequence[Question],
    test: Sequence[Question],
) -> dict:
    """Losses in nats a side, on questions of the training and on unseen ones, and scores."""
    name, way = arm
    encoder = BertEncoder.read(arms / name)[0]
    freeze(encoder, way)
    wordpiece = WordPiece.from_file(arms / name / "tokenizer.json")
    how = replace(settings["fine_tuning"], seed=seed)
    seen, unseen = (QuestionAnsweringData(group, wordpiece, how) for group in (train, test))
    answerer, history = fine_tune(encoder, wordpiece, seen, how)
    return rounded(
        {
            "steps": history.done,
            "loss, training": mean_loss(answerer.model, seen, settings["scored"]),
            "loss, unseen": mean_loss(answerer.model, unseen, settings["scored"]),
            **few_questions.score(answerer, test),
        }
    )


def freeze(encoder: BertEncoder, way: str) -> None:
    """The lower half is the embeddings and half of the layers, the upper one the other layers."""
    half = len(encoder.layers) // 2
    parts = {
        ALL: [],
        LOWER: [encoder.embeddings, encoder.layers[:half]],
        UPPER: [encoder.layers[half:]],
    }
    for part in parts[way]:
        part.requires_grad_(False)


@torch.no_grad()
def mean_loss(model: QuestionAnsweringModel, data: QuestionAnsweringData, windows: int) -> float:
    """In nats a side, over so many windows."""
    model.eval()
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data))[:windows]
    parts = np.array_split(rows, max(1, len(rows) // 16))
    losses = [len(part) * float(model(data.batch(part, rng))["loss"]) for part in parts]
    return sum(losses) / len(rows)
