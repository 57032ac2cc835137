"""Does a task miss what a model loses that never sees a part of a word? Chapter:
`book/evidence/spans_and_boundaries`.

Two conditions of `whole_words`, the farthest apart: no word is broken, or one in every block, with
its beginning in view. Its models (`--models`; those that are not there are trained first) are
measured as there; then they learn from 4,096 questions of SQuAD 1.1, three samples, the same for all
models, by the recipe of `few_questions_here`, and are scored on 1,000 others. What each outcome
would mean stands in `whole_words.CLAIMS`.
"""

from collections.abc import Mapping
from pathlib import Path

from research.experiments import few_questions_here, whole_words
from research.experiments.few_questions_here import figures, files, plan_of
from research.grid import rounded
from spanbert_tutorial.tasks import few_questions

ARMS = ("none", "its beginning, 1.0")
SEEDS = 3
SETTINGS = whole_words.SETTINGS | few_questions_here.SETTINGS | {"sizes": [4_096], "samples": 3}


def prepare(folder: Path, settings: Mapping, data: Path, **inputs: Path) -> tuple[dict, tuple]:
    """What the continuations need, and questions to learn from and to score."""
    facts, (given,) = whole_words.prepare(folder, settings, **inputs)
    more, questions = few_questions_here.prepare(folder, settings, data)
    return facts | more, (given, *questions)


def one(
    arm: str, seed: int, settings: Mapping, given: whole_words.Given, data: Path, *questions: list
) -> list[dict]:
    """The figures of a continuation, and the scores of each of its fine-tunings."""
    found = whole_words.one(arm, seed, settings, given)
    model = given.models / whole_words.name_of(arm, seed)
    plan = plan_of(model, range(settings["samples"]), settings, *files(data))
    points = few_questions.learning_curve(plan, *questions)
    scores = [rounded({"fine_tuning": str(point.seed), **figures(point)}) for point in points]
    return [found, *scores]
