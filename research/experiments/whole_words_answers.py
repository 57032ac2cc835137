"""Does a task miss what a model loses that never sees a part of a word? Chapter:
`book/evidence/spans_and_boundaries`.

The models of `whole_words` (`--models`; those that are not there are trained first) are measured as
there. Then they learn from questions of SQuAD 1.1, three samples, the same for all, by the recipe of
`few_questions_here`, and are scored on 1,000 others. 4,096 questions were planned, with what each
outcome would mean (`whole_words.CLAIMS`); all 11,877 were added for two conditions, because the
first scores were below those of a program that reads no question.
"""

from collections.abc import Mapping
from pathlib import Path

from research.experiments import few_questions_here, whole_words
from research.experiments.few_questions_here import figures, files, plan_of
from research.grid import rounded
from spanbert_tutorial.tasks import few_questions

ALSO_ALL = ("none", "its beginning, 1.0")
# condition → from how many questions it learns
SIZES = {arm: [4_096, 11_877] if arm in ALSO_ALL else [4_096] for arm in whole_words.ARMS}
ARMS = tuple(SIZES)
SEEDS = 3
SETTINGS = whole_words.SETTINGS | few_questions_here.SETTINGS | {"sizes": SIZES, "samples": 3}


def prepare(folder: Path, settings: Mapping, data: Path, **inputs: Path) -> tuple[dict, tuple]:
    """What the continuations need, and questions to learn from and to score."""
    facts, (given,) = whole_words.prepare(folder, settings, **inputs)
    more, questions = few_questions_here.prepare(folder, settings, data)
    return facts | more, (given, *questions)


def one(
    arm: str, seed: int, settings: Mapping, given: whole_words.Given, data: Path, *questions: list
) -> list[dict]:
    """The figures of a continuation, and the scores of its fine-tunings."""
    found = whole_words.one(arm, seed, settings, given)
    model = given.models / whole_words.name_of(arm, seed)
    own = {**settings, "sizes": settings["sizes"][arm]}
    plan = plan_of(model, own, *files(data), range(settings["samples"]))
    points = few_questions.learning_curve(plan, *questions)
    scores = [rounded({"fine_tuning": str(point.seed), **figures(point)}) for point in points]
    return [found, *scores]
