"""How do the book's own models answer after few questions? Chapter: `book/tasks/released_spanbert`.

The learning curve of `tasks.few_questions`, on SQuAD 1.1: each model starts from its shipped
weights with a new head. A seed draws the questions, their order and the head, the same for both
models. Each was pre-trained once, so the scores describe two models. Small models need a higher
learning rate than the released ones, and short windows around the answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from research.grid import fingerprint, rounded
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import few_questions
from spanbert_tutorial.tasks.few_questions import HUB, Plan, Point
from spanbert_tutorial.tasks.question_answering import PRESETS
from spanbert_tutorial.tasks.squad import Question

ARMS = ("bert-mini", "spanbert-mini")
SEEDS = 2
FINE_TUNING = True
SETTINGS = {
    "sizes": [128, 1_024, 4_096],
    "scored": 1_000,
    "min_steps": 200,
    "fine_tuning": replace(PRESETS["short-first"], epochs=2.0),
}


def plan_of(
    start: Path, settings: Mapping, train: Path, test: Path, seeds: Iterable[int] = ()
) -> Plan:
    """A plan for one model in a folder, with the questions of two files."""
    return replace(
        HUB,
        models={start.name: start},
        train=train,
        test=test,
        sizes=tuple(settings["sizes"]),
        seeds=tuple(seeds),
        scored=settings["scored"],
        min_steps=settings["min_steps"],
        settings=settings["fine_tuning"],
    )


def files(data: Path) -> tuple[Path, Path]:
    """Of SQuAD 1.1: questions to learn from and to score, in a folder."""
    return data / "train-v1.1-part.json.xz", data / "dev-v1.1-half.json.xz"


def figures(point: Point) -> dict:
    """The scores of a point by its number of questions."""
    return {f"questions, {point.questions}": {"f1": point.f1, "exact": point.exact}}


def prepare(folder: Path, settings: Mapping, data: Path) -> tuple[dict, tuple]:
    """Questions to learn from and to score."""
    train, test = few_questions.questions_of(plan_of(data, settings, *files(data)))
    facts = {"known": len(train), "questions_fingerprint": fingerprint(train, test)}
    return facts, (data, train, test)


def one(
    model: str,
    seed: int,
    settings: Mapping,
    data: Path,
    train: list[Question],
    test: list[Question],
) -> dict:
    """The scores of one model at each number of questions."""
    plan = plan_of(data_path("checkpoints", model), settings, *files(data), [seed])
    points = few_questions.learning_curve(plan, train, test)
    return rounded({name: found for point in points for name, found in figures(point).items()})
