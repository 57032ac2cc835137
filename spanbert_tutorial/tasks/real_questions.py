"""Training on real questions, in stages, and scores that can be trusted: a threshold from other questions, intervals
over articles. Chapter: `book/tasks/real_questions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.answer_figures import predictions, score_windows
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.question_answering import PRESETS, QuestionAnswerer, fine_tune
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.training import History
from spanbert_tutorial.wordpiece import WordPiece

Guessed = tuple[Mapping[str, str], Sequence[Question], Mapping[str, float]]  # texts and null scores by id

# First questions made by rule, to learn to find what shares words with a question. Then real ones, and short windows
# around the answers before full ones: for the same number of pieces a model meets more questions, each with fewer
# places to choose from. Questions without an answer need full windows, and all of them.
ONCE = replace(PRESETS["short-first"], epochs=1.0)
STAGES = {
    "made": (ONCE,),
    "squad1": (ONCE, replace(PRESETS["small"], epochs=1.0, answers_only=True)),
    "squad2": (PRESETS["small"],),
}


def fine_tune_in_stages(
    encoder: BertEncoder, wordpiece: WordPiece, questions: Sequence[Question], stages: Sequence[FineTuning]
) -> tuple[QuestionAnswerer, list[History]]:
    """Trains encoder (in place) stage after stage, each with a new head; what answers is that of the last one."""
    histories = []
    for settings in stages:
        answerer, history = fine_tune(encoder, wordpiece, questions, settings)
        histories.append(history)
    return answerer, histories


def answered(answerer: QuestionAnswerer, questions: Sequence[Question]) -> Guessed:
    """What a model says: its best text for each question, and null score − score."""
    texts, odds = predictions(score_windows(answerer, questions))
    return texts, questions, odds


def tuned(test: Guessed, tune: Guessed) -> dict[str, float]:
    """Scores at the threshold that is best on `tune`, and `same`: F1 with one tuned on the test questions."""
    threshold = squad.chosen_threshold(*tune)
    same = squad.best_threshold(*test)[0]
    return {**squad.score(*test, threshold), "threshold": threshold, "same": same}


def over_articles(values: Sequence[float], titles: Sequence[str], draws: int = 1_000, seed: int = 0) -> list[float]:
    """95 % interval of the mean of `values`, one for each question, when articles are drawn with replacement: questions
    on one article share its difficulty. titles: the article of each question."""
    names, group = np.unique(titles, return_inverse=True)
    sums, counts = (np.bincount(group, weights) for weights in (np.asarray(values, dtype=float), np.ones(len(group))))
    drawn = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    return np.percentile(sums[drawn].sum(1) / counts[drawn].sum(1), [2.5, 97.5]).tolist()
