"""Do the models of `whole_words` answer questions differently? Chapter:
`book/evidence/masking_and_copying`.

Each continuation is fine-tuned three times on 4,096 questions of SQuAD 1.1 (a fine-tuning draws its
questions, their order and the new head; the same for all models) and scored on every fifth question
of the test part. The unit is the continuation: its score is the mean of its three fine-tunings. What
each outcome would mean: `whole_words.CLAIMS`, "answers".
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.lab.experiments import whole_words
from spanbert_tutorial.lab.experiments.spans_on_wikipedia import begun_from
from spanbert_tutorial.lab.grid import fingerprint
from spanbert_tutorial.lab.results import rounded
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.few_questions import nested_samples
from spanbert_tutorial.tasks.question_answering import PRESETS, fine_tune
from spanbert_tutorial.tasks.real_questions import answered
from spanbert_tutorial.tasks.squad import Question

BEFORE = "before"
TRAINED_ON, ASKED = "train-v1.1-part", "dev-v1.1-half"
ARM = ("broken", "fine_tuning")
SEEDS = whole_words.SEEDS
FINE_TUNINGS = 3
ARMS = tuple((arm, number) for number in range(FINE_TUNINGS) for arm in (BEFORE, *whole_words.ARMS))
ONCE = tuple(arm for arm in ARMS if arm[0] == BEFORE)
SETTINGS = {
    "questions": 4_096,
    "asked_every": 5,  # of the questions of the test part
    "fine_tuning": replace(PRESETS["short-first"], epochs=3.0),
}


class Given(NamedTuple):
    """start: folder of the model before it goes on; models: folder of those that did."""

    start: Path
    models: Path
    train: list[Question]
    asked: list[Question]


def prepare(
    folder: Path, settings: Mapping, data: Path, start: Path, models: Path
) -> tuple[dict, tuple]:
    """Questions. data: a folder of SQuAD files."""
    train = squad.read(data / f"{TRAINED_ON}.json.xz")
    asked = squad.read(data / f"{ASKED}.json.xz")[:: settings["asked_every"]]
    facts = {
        "begun_from": begun_from(start),
        "questions_known": [len(train), len(asked)],
        "questions_fingerprint": fingerprint(train, asked),
    }
    return facts, (Given(start, models, train, asked),)


def one(arm: tuple[str, int], seed: int, settings: Mapping, given: Given) -> dict:
    """Scores of a continuation after one of its fine-tunings."""
    broken, number = arm
    folder = given.models / whole_words.name_of(broken, seed)
    model, wordpiece = load_checkpoint(given.start if broken == BEFORE else folder)
    size = settings["questions"]
    questions = nested_samples(given.train, (size,), number)[size]
    tuning = replace(settings["fine_tuning"], seed=number)
    answerer, history = fine_tune(model.encoder, wordpiece, questions, tuning)
    scores = squad.score(*answered(answerer, given.asked)[:2])
    loss = history.mean("loss", 50)
    return rounded({"exact": scores["exact"], "f1": scores["f1"], "training_loss": loss})
