"""Training on real questions, in stages, and scores that can be trusted: a threshold from other
questions, intervals over articles; and where the errors are. Chapter: `book/tasks/real_questions`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.loop import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.answer_scores import predictions, score_windows
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.question_answering import (
    PRESETS,
    QuestionAnswerer,
    QuestionAnsweringModel,
    fine_tune,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.text.sentences import split_sentences

Guessed = tuple[
    Mapping[str, str], Sequence[Question], Mapping[str, float]
]  # texts and null odds by id

# First questions made by rule, to learn to find what shares words with a question (`experiment
# made_first` shows what they bring), and easy ones before the others (in single runs that helped).
# Then real ones, and short windows around the answers before full ones: for the same number of
# tokens a model meets more questions, each with fewer places to choose from. Questions without an
# answer need full windows, and all of them.
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
    stages: Sequence[FineTuning],
    state: Path | None = None,
) -> tuple[QuestionAnswerer, list[History]]:
    """Trains `start` (in place) stage after stage. An encoder gets a new head before the first one;
    from then on the head stays. state: a folder for snapshots, from which the same call goes on
    after it was stopped."""
    histories = []
    for number, settings in enumerate(stages):
        facts = asdict(settings) | {"questions": len(questions)}
        snapshots = None if state is None else Snapshots(state / str(number) / "snapshots", facts)
        answerer, history = fine_tune(start, wordpiece, questions, settings, snapshots)
        start = answerer.model
        histories.append(history)
    return answerer, histories


def answered(answerer: QuestionAnswerer, questions: Sequence[Question]) -> Guessed:
    """What a model says when it has to answer: its best text for each question; and the null odds,
    null score − best score, by which a threshold may silence it."""
    texts, odds = predictions(score_windows(answerer, questions))
    return texts, questions, odds


def tuned(test: Guessed, tune: Guessed) -> dict[str, float]:
    """Scores at the threshold that is best on `tune`, and `same`: F1 with one tuned on the test
    questions."""
    threshold = squad.chosen_threshold(*tune)
    same = squad.best_threshold(*test)[0]
    return {**squad.score(*test, threshold), "threshold": threshold, "same": same}


def over_articles(
    values: Sequence[float], titles: Sequence[str], draws: int = 1_000, seed: int = 0
) -> list[float]:
    """95 % interval of the mean of `values`, one for each question, when articles are drawn with
    replacement: questions on one article share its difficulty. titles: the article of each
    question."""
    names, group = np.unique(titles, return_inverse=True)
    sums, counts = (
        np.bincount(group, weights)
        for weights in (np.asarray(values, dtype=float), np.ones(len(group)))
    )
    drawn = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    return np.percentile(sums[drawn].sum(1) / counts[drawn].sum(1), [2.5, 97.5]).tolist()


def intervals(
    predictions: Mapping[str, str], questions: Sequence[Question]
) -> dict[str, list[float] | str]:
    """The 95 % intervals of EM and F1 in percent, and what was drawn: articles, where there are
    several titles, else contexts. Empty where there are fewer than two of either: then nothing says
    how much they differ."""
    for unit in ("title", "context"):
        groups = [getattr(question, unit) for question in questions]
        if (kinds := len(set(groups))) > 1:
            drawn = f"{kinds:,} {'articles' if unit == 'title' else 'contexts'}"
            raw = squad.raw_scores(predictions, questions)
            return {
                name: [
                    100 * end for end in over_articles([values[q.id] for q in questions], groups)
                ]
                for name, values in raw.items()
            } | {"drawn": drawn}
    return {}


# --- where the errors are -----------------------------------------------------------

ASKED = re.compile(r"\b(how (?:many|much)|who|what|which|when|where|why|how)\b")


def question_word(question: str) -> str:
    """The first question word ("who" also for whom and whose, "how many" also for how much), ""
    where there is none."""
    found = ASKED.search(re.sub(r"\bwho(m|se)\b", "who", question.lower()))
    return found[0].replace("how much", "how many") if found else ""


def answer_words(question: Question) -> int:
    """How many words the shortest right answer has. Raises InputError for a question without an
    answer."""
    if not question.answers:
        raise InputError(f"the question {question.id} has no answer: give one that has.")
    return min(len(answer.text.split()) for answer in question.answers)


def only_its_sentence(question: Question) -> Question:
    """The oracle that finds: the same question, and as its context only the sentence in which its
    first answer stands (the sentences, where it crosses an end); answers elsewhere are left out.
    Raises InputError for a question without an answer."""
    if not question.answers:
        raise InputError(f"the question {question.id} has no answer: give one that has.")
    first = question.answers[0].start
    last = question.answers[0].start + len(question.answers[0].text)
    begin = 0
    end = len(question.context)
    place = 0
    for sentence in split_sentences(question.context):
        place = question.context.index(sentence, place)
        if place <= first:
            begin = place
        place += len(sentence)
        if place >= last:
            end = place
            break
    inside = (
        answer for answer in question.answers if begin <= answer.start <= end - len(answer.text)
    )
    kept = tuple(replace(answer, start=answer.start - begin) for answer in inside)
    return replace(question, context=question.context[begin:end], answers=kept)


def risk(odds: Sequence[float], values: Sequence[float]) -> np.ndarray:
    """The risk–coverage curve: if only the k questions with the least null odds are answered, how
    much do these lack of 100 on average? values: the score of each question if answered, in
    percent, 0 where there is no answer. float [questions], for k = 1, 2, …"""
    ordered = np.asarray(values, dtype=float)[np.argsort(odds, kind="stable")]
    return 100 - np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
