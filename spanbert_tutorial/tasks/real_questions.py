"""Training on real questions in stages, scores with a threshold from other questions and intervals
over articles, and an analysis of the errors. Chapter: `book/tasks/real_questions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import require
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.answer_scores import predictions, score_windows
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnswerer,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.text.sentences import split_sentences

# predicted texts by id, the questions, null odds by id
Predictions = tuple[Mapping[str, str], Sequence[Question], Mapping[str, float]]

# First questions made by rules, which teach a model to find text that shares words with a question
# (`experiment made_first` measures the gain); easy ones come first, which helped in single runs.
# Then real questions, with short windows around the answers before full ones: for the same number
# of tokens a model sees more questions, each with fewer positions to choose from. Questions without
# an answer need full windows, and all of them.
ONCE = replace(PRESETS["short-first"], epochs=1.0)
STAGES = {
    "easy": (replace(ONCE, epochs=0.35),),
    "made": (replace(ONCE, epochs=2.0),),
    "squad1": (ONCE, replace(PRESETS["small"], epochs=1.0, answers_only=True)),
    "squad2": (PRESETS["small"],),
}


def fine_tune_in_stages(
    start: BertEncoder | QuestionAnsweringModel,
    wordpiece: WordPiece,
    questions: Sequence[Question],
    stages: Sequence[QuestionAnsweringSettings],
    state: Path | None = None,
) -> tuple[QuestionAnswerer, list[History]]:
    """Trains `start` (in place) in one or more stages. An encoder gets a new head before the first
    stage; all stages train the same head. state: a folder for snapshots, from which the same call
    resumes after it was stopped."""
    histories = []
    for number, settings in enumerate(stages):
        facts = asdict(settings) | {"questions": len(questions)}
        snapshots = None if state is None else Snapshots(state / str(number) / "snapshots", facts)
        answerer, history = fine_tune(start, wordpiece, questions, settings, snapshots)
        start = answerer.model
        histories.append(history)
    return answerer, histories


def answered(
    answerer: QuestionAnswerer,
    questions: Sequence[Question],
) -> Predictions:
    """The best texts by id, the questions, and the null odds by id.

    The model has to answer; the null odds, null score − best score, are for a threshold."""
    texts, odds = predictions(score_windows(answerer, questions))
    return texts, questions, odds


def tuned(test: Predictions, tune: Predictions) -> dict[str, float]:
    """Scores on `test` at the threshold that is best on `tune`; `same`: F1 at the threshold that is
    best on `test` itself."""
    threshold = squad.chosen_threshold(*tune)
    same = squad.best_threshold(*test)[0]
    return {**squad.score(*test, threshold), "threshold": threshold, "same": same}


def over_articles(
    values: Sequence[float] | np.ndarray,
    titles: Sequence[str],
    draws: int = 1_000,
    seed: int = 0,
) -> list[float]:
    """95% interval of the mean over questions; articles are drawn.

    Bootstrap: questions on one article share its difficulty. values: one for each question;
    titles: its article."""
    names, group = np.unique(titles, return_inverse=True)
    sums = np.bincount(group, np.asarray(values, dtype=float))
    counts = np.bincount(group, np.ones(len(group)))
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(names), size=(draws, len(names)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return np.percentile(means, [2.5, 97.5]).tolist()


def intervals(
    predictions: Mapping[str, str], questions: Sequence[Question]
) -> dict[str, list[float] | str]:
    """The 95% intervals of EM and F1 in percent, and `drawn`: what was resampled, articles where
    there are several titles, else contexts. Empty where there are fewer than two of either, because
    then nothing shows how much they differ."""
    for unit, plural in (("title", "articles"), ("context", "contexts")):
        groups = [getattr(question, unit) for question in questions]
        count = len(set(groups))
        if count < 2:
            continue
        result: dict[str, list[float] | str] = {}
        for name, values in squad.raw_scores(predictions, questions).items():
            interval = over_articles([values[question.id] for question in questions], groups)
            result[name] = [100 * end for end in interval]
        return result | {"drawn": f"{count:,} {plural}"}
    return {}


# --- where the errors are -----------------------------------------------------------


def only_its_sentence(question: Question) -> Question:
    """The question with only the sentence of its first answer.

    An oracle for finding the right sentence; several sentences, where the answer crosses an end.
    Answers elsewhere are left out. Raises InputError for a question without an answer."""
    require(
        question.answers,
        f"the question {question.id} has no answer: give one that has.",
    )
    context, answer = question.context, question.answers[0]
    begin, end, position = 0, len(context), 0
    for sentence in split_sentences(context):
        position = context.index(sentence, position)
        if position <= answer.start:
            begin = position
        position += len(sentence)
        if position >= answer.start + len(answer.text):
            end = position
            break
    answers = tuple(
        replace(one, start=one.start - begin)
        for one in question.answers
        if begin <= one.start <= end - len(one.text)
    )
    return replace(
        question,
        context=context[begin:end],
        answers=answers,
    )
