"""Does it help a task to train a model further on the task's own kind of text first? Chapter:
`book/workshop/your_own_data`.

`spanbert-mini` (`--start`) began with 3 million tokens of the almanac, has read 278 million tokens
of Wikipedia since, and predicts the almanac badly. It learns the almanac's questions as it is, after
2,000 more steps on the almanac's articles, or after as many on Wikipedia, which shows whether more
training helps whatever the text. New weights show what the questions alone teach. The articles that
are asked about are in no training text, but they tell of the same world.

A seed is a continuation, and draws the questions, their order and the head, the same for all arms.
What was decided before the first run: `CLAIMS`.
A trial with one seed and a peak learning rate of 5e-4 had been seen then, F1 after 1,024 questions:
22.3 as it is, 18.4 after more of the almanac, 11.6 after more of Wikipedia, whose loss rose on spans.
The runs take 1e-4.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from research.experiments.few_questions_here import figures, plan_of
from research.experiments.spans_and_boundaries import losses
from research.experiments.spans_on_wikipedia import begun_from, open_wikipedia
from research.experiments.whole_words import RUN, continued, name_of
from research.grid import fingerprint, rounded, text_facts
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint, save_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.tasks import few_questions
from spanbert_tutorial.tasks.question_answering import PRESETS
from spanbert_tutorial.tasks.squad import Question

AS_IT_IS, ALMANAC, WIKIPEDIA, NEW = "as it is", "almanac", "Wikipedia", "new weights"
ARMS = {
    AS_IT_IS: "spanbert-mini",
    ALMANAC: "2,000 more steps on the almanac",
    WIKIPEDIA: "2,000 more steps on Wikipedia",
    NEW: "of the same sizes",
}
QUESTIONS = [data_path("almanac", f"questions-{part}.json.xz") for part in ("train", "test")]
SEEDS = 3
CLAIMS = {
    "primary": "F1 on the almanac's answerable questions after 128 of them, almanac minus as it is, "
    "paired by seed. With an interval beyond 0 the domain's text helps; around 0 three continuations "
    "cannot tell",
    "placebo": "almanac minus Wikipedia: only where this is beyond 0, too, is it the domain's text "
    "and not further training",
    "more questions": "the same after 1,024: a smaller difference is expected",
}
SETTINGS = {
    "run": replace(RUN, steps=2_000, max_length=128, batch_size=8, peak_learning_rate=1e-4),
    "sizes": [128, 1_024],
    "scored": 1_000,
    "min_steps": 200,
    "fine_tuning": replace(PRESETS["short-first"], epochs=2.0),
    "batches": 30,  # of unseen articles, for the loss
    "claims": CLAIMS,
}


class Given(NamedTuple):
    """texts: what is read further, by arm; questions: to learn from and to score."""

    texts: Mapping[str, EncodedText]
    start: Path
    models: Path
    questions: tuple[list[Question], list[Question]]


def prepare(
    folder: Path, settings: Mapping, corpus: Path, valid: Path, start: Path, models: Path
) -> tuple[dict, tuple]:
    """Both texts in the vocabulary of `start`, and the almanac's questions."""
    texts = {
        ALMANAC: open_text("almanac", folder / "almanac", start),
        WIKIPEDIA: open_wikipedia(folder, corpus, valid, start),
    }
    questions = few_questions.questions_of(plan_of(start, settings, *QUESTIONS))
    facts = {"begun_from": begun_from(start), "questions_fingerprint": fingerprint(questions)}
    facts |= {f"text, {arm}": text_facts(text) for arm, text in texts.items()}
    return facts, (Given(texts, start, models, questions),)


def one(arm: str, seed: int, settings: Mapping, given: Given) -> dict:
    """F1 and exact match by number of questions, and the loss on unseen articles of the almanac."""
    run = replace(settings["run"], seed=seed)
    with TemporaryDirectory() as folder:
        start = given.start
        if arm in given.texts:
            start = given.models / name_of(arm, seed)
            objective = Objective.named(run.objective)
            text = given.texts[arm]
            continued(start, run, objective, text, given.start, run.steps, lambda *_: {})
        elif arm == NEW:
            start = Path(folder, "new")
            config = BertEncoder.read(given.start)[0].config
            torch.manual_seed(seed)
            model = PretrainingModel(config, Objective.named(run.objective))
            save_checkpoint(start, model, given.texts[ALMANAC].wordpiece, run.objective, {})
        model = load_checkpoint(start)[0]
        found = {"losses": losses(model, run, given.texts[ALMANAC], settings["batches"])}
        plan = plan_of(start, settings, *QUESTIONS, [seed])
        for point in few_questions.learning_curve(plan, *given.questions):
            found |= figures(point)
    return rounded(found)
