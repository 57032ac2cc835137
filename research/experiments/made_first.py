"""What made questions bring before real ones: two ways to spend the same number of tokens. Chapter:
`book/evidence/questions`.

    python -m spanbert_tutorial make-questions --corpus WIKIPEDIA --leave-out data/squad_titles.txt
    --easy --output EASY python -m spanbert_tutorial make-questions --corpus WIKIPEDIA --leave-out
    data/squad_titles.txt --output MADE

Each run starts from `spanbert-mini` and reads the same number of tokens: of real questions only,
half of them in short windows around the answers and half in full ones; or half of made questions in
short windows before, easy ones first, and half as much of the real ones. One head goes through all
stages. Scored on articles of SQuAD's training set that no run has seen.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from research.experiments import squad_real
from research.grid import fingerprint
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import (
    QuestionAnsweringData,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
)
from spanbert_tutorial.tasks.real_questions import STAGES, answered, fine_tune_in_stages
from spanbert_tutorial.tasks.squad import Question

QUESTIONS = 8_000
MADE = 20_000
HELD_OUT = 1_200
TOKENS = 4_000_000
SETTINGS = {"start": "spanbert-mini", "questions": QUESTIONS, "made": MADE, "tokens": TOKENS}
SHORT, FULL = STAGES["squad1"]
ARM = "arm"
SEEDS = 3
ARMS = {  # of each stage the questions, the settings and the share of the tokens
    "real questions only": (("real", SHORT, 0.5), ("real", FULL, 0.5)),
    "made questions first": (
        ("easy", SHORT, 0.15),
        ("made", SHORT, 0.35),
        ("real", SHORT, 0.25),
        ("real", FULL, 0.25),
    ),
}


def split(folder: Path) -> tuple[list[Question], list[Question]]:
    """Questions to train on and to score, no article in both: of SQuAD's own training articles
    every eighth is held out, and of its questions as many as are scored are drawn."""
    own = {question.title for question in squad_real.read(folder, squad_real.TRAIN[:1])}
    held_titles = set(sorted(own)[::8])
    groups: tuple[list[Question], list[Question]] = ([], [])
    for question in squad_real.read(folder, squad_real.TRAIN):
        groups[question.title in held_titles].append(question)
    return groups[0], drawn(groups[1], HELD_OUT, 0)


def drawn(questions: list[Question], most: int, seed: int) -> list[Question]:
    """At most so many of the questions, in random order."""
    return [questions[i] for i in np.random.default_rng(seed).permutation(len(questions))[:most]]


def for_tokens(
    settings: QuestionAnsweringSettings,
    questions: list[Question],
    wordpiece: WordPiece,
    tokens: float,
) -> QuestionAnsweringSettings:
    """The settings with as many epochs as cost so many tokens."""
    windows = QuestionAnsweringData(questions, wordpiece, settings)
    return replace(settings, epochs=tokens / int(windows.lengths().sum()))


def trained(
    arm: str,
    seed: int,
    encoder: BertEncoder,
    wordpiece: WordPiece,
    groups: dict[str, list[Question]],
    tokens: float = TOKENS,
) -> dict:
    """Trains one model for so many tokens on the groups `real`, `easy` and `made`, and scores it on
    `test`."""
    taken = []
    model: BertEncoder | QuestionAnsweringModel = encoder
    for name, settings, share in ARMS[arm]:
        stage = for_tokens(replace(settings, seed=seed), groups[name], wordpiece, share * tokens)
        answerer, (history,) = fine_tune_in_stages(model, wordpiece, groups[name], [stage])
        model = answerer.model  # with its head
        loss = round(history.mean("loss", 50), 4)
        taken.append(
            {"questions": name, "settings": asdict(stage), "steps": history.done, "loss": loss}
        )
    score = squad.score(*answered(answerer, groups["test"])[:2])
    figures = {name: round(score[name], 4) for name in ("exact", "f1")}
    return {"stages": taken, "score": figures}


def prepare(
    folder: Path, settings: Mapping, data: Path, easy: Path, made: Path
) -> tuple[dict, tuple]:
    """Questions: written ones to train on and to score, and many made ones by kind."""
    (train, test), many = split(data), {"made": squad.read(made), "easy": squad.read(easy)}
    return {"held_out": len(test), "fingerprint": fingerprint(train, test, many)}, (
        train,
        test,
        many,
    )


def one(
    arm: str,
    seed: int,
    settings: Mapping,
    train: list[Question],
    test: list[Question],
    many: dict[str, list[Question]],
) -> dict:
    """One run, trained on questions that the seed draws, and scored."""
    groups = {name: drawn(some, settings["made"], seed) for name, some in many.items()}
    groups |= {"real": drawn(train, settings["questions"], seed), "test": test}
    return trained(
        arm, seed, *squad_real.start(settings["start"], seed), groups, settings["tokens"]
    )
