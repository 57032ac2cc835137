"""Where the shipped models err on real questions: finding or taking, which questions, silent or
misled. Chapter: `book/evidence/questions`.

One model of each kind, fine-tuned on SQuAD 1.1, then on 2.0, against programs that learn nothing.
On every third question of half of SQuAD 1.1's development set, without the articles that SQuAD 2.0
trains on: F1 by question word and by the length of the answer, once with the whole context and once
with the sentence alone that holds the answer (the oracle). On the articles of SQuAD 2.0 that score
the models: F1 at the threshold that was tuned on other articles and when every question has to be
answered; the accuracy of the decision; the risk–coverage curve; and how often a model that has to
answer gives the plausible answer to a question without one, beside the same programs and random
spans. Intervals: 95 %, over articles.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from research.experiments import squad_real
from research.experiments.squad_negatives import bootstrap, by_article, weights_of
from research.results import rounded
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks import real_questions, squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.real_questions import Predictions, answered, over_articles, tuned
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.squad_negatives import auc, lexical_guess, type_guess

MODELS = ("spanbert-mini", "bert-mini")
PROGRAMS = {"kind of answer": type_guess, "shared words": lexical_guess}
LENGTHS = {
    "1 word": 1,
    "2 words": 2,
    "3 to 4 words": 4,
    "5 words or more": 10**9,
}  # the longest of each group
EVERY = 3  # of SQuAD 1.1's questions every so many-th one, to save time
STEPS = 20  # points of the risk–coverage curve
DRAWS = 20  # random spans for each question
Say = Callable[[Sequence[Question]], Predictions]


def systems(questions: Sequence[Question]) -> Mapping[str, Say]:
    """The shipped models that answer, and the programs, which weigh words by the questions'
    contexts."""
    weights = weights_of(questions)

    def guessed(guess: Callable, group: Sequence[Question]) -> Predictions:
        predictions = {question.id: guess(question, weights) for question in group}
        texts = {number: one.text for number, one in predictions.items()}
        return texts, group, {number: one.null_odds for number, one in predictions.items()}

    models = {
        name: QuestionAnswerer.from_pretrained(data_path("checkpoints", f"{name}-squad"))
        for name in MODELS
    }
    return {name: partial(answered, answerer) for name, answerer in models.items()} | {
        name: partial(guessed, guess) for name, guess in PROGRAMS.items()
    }


def percent(
    texts: Mapping[str, str], questions: Sequence[Question], measure: str = "f1"
) -> np.ndarray:
    """The score of each question in percent, [questions]."""
    raw = squad.raw_scores({question.id: texts[question.id] for question in questions}, questions)[
        measure
    ]
    return 100 * np.array([raw[question.id] for question in questions])


def measured(values: np.ndarray, questions: Sequence[Question]) -> dict:
    """Mean and interval over articles."""
    return {
        "mean": float(values.mean()),
        "interval": over_articles(values, [question.title for question in questions]),
    }


def length_group(question: Question) -> str:
    """The name of the group of answers as long as the question's shortest one."""
    return next(
        name for name, most in LENGTHS.items() if real_questions.answer_words(question) <= most
    )


def grouped(questions: Sequence[Question]) -> dict[str, dict[str, np.ndarray]]:
    """Places of the questions by question word and by length of the answer."""
    keys = {
        "word": [real_questions.question_word(q.question) or "none of them" for q in questions],
        "length": [length_group(q) for q in questions],
    }
    return {
        by: {
            name: np.flatnonzero(np.array(column) == name) for name in dict.fromkeys(sorted(column))
        }
        for by, column in keys.items()
    }


def finding(questions: Sequence[Question], says: Mapping[str, Say]) -> dict:
    """SQuAD 1.1: scores with the whole context and with the sentence alone, over all questions and
    by group."""
    sentences = [real_questions.only_its_sentence(question) for question in questions]
    groups = grouped(questions)
    values = {}
    rows = {}
    for name, say in says.items():
        texts = say(questions)[0]
        values[name], oracle = percent(texts, questions), percent(say(sentences)[0], questions)
        rows[name] = {
            "exact": float(percent(texts, questions, "exact").mean()),
            "f1": measured(values[name], questions),
            "sentence": measured(oracle, questions),
            "gain": measured(oracle - values[name], questions),
            **{
                by: {
                    group: {
                        "f1": float(values[name][places].mean()),
                        "sentence": float(oracle[places].mean()),
                    }
                    for group, places in of.items()
                }
                for by, of in groups.items()
            },
        }
        print(name, "finding", rows[name]["f1"], rows[name]["sentence"], flush=True)
    whole = percent({question.id: question.context for question in sentences}, questions)
    pairs = [(model, program) for model in MODELS for program in PROGRAMS] + [MODELS]
    return {
        "questions": len(questions),
        "articles": len({question.title for question in questions}),
        "groups": {
            by: {group: len(places) for group, places in of.items()} for by, of in groups.items()
        },
        "the whole sentence": measured(whole, questions),
        "systems": rows,
        "differences": {
            f"{one} − {other}": measured(values[one] - values[other], questions)
            for one, other in pairs
        },
    }


def random_spans(questions: Sequence[Question], seed: int = 0) -> dict[str, np.ndarray]:
    """{"exact": …, "f1": …} of spans drawn at random, as many words long as the first answer: the
    mean of DRAWS spans for each question, in percent, [questions]."""
    rng = np.random.default_rng(seed)
    totals = {"exact": np.zeros(len(questions)), "f1": np.zeros(len(questions))}
    for _ in range(DRAWS):
        texts = {}
        for question in questions:
            words = question.context.split()
            length = len(question.answers[0].text.split())
            first = rng.integers(len(words) - length + 1)
            texts[question.id] = " ".join(words[first : first + length])
        for measure, total in totals.items():
            total += percent(texts, questions, measure)
    return {measure: total / DRAWS for measure, total in totals.items()}


def misleading(questions: Sequence[Question]) -> list[Question]:
    """The questions without an answer that have a plausible one, as if that were the answer."""
    return [
        replace(question, answers=question.plausible)
        for question in questions
        if question.plausible and not question.answers
    ]


def means(values: dict[str, np.ndarray]) -> dict[str, float]:
    """The mean of each measure; no interval, where there are few articles."""
    return {measure: float(column.mean()) for measure, column in values.items()}


def silence(
    questions: Sequence[Question], tune: Sequence[Question], says: Mapping[str, Say]
) -> dict:
    """SQuAD 2.0: at the tuned threshold, when every question has to be answered, and what is then
    said where there is no answer. `right`: the same for questions with an answer, of which only the
    first counts, as of plausible ones."""
    has = np.array([bool(question.answers) for question in questions])
    having = [question for question in questions if question.answers]
    without = [question for question in questions if not question.answers]
    tempting = misleading(questions)
    first = [replace(question, answers=question.answers[:1]) for question in having]
    rows = {}
    for name, say in says.items():
        texts, _, null_odds = test = say(questions)
        odds = np.array([null_odds[question.id] for question in questions])
        score = tuned(test, say(tune))
        curve = real_questions.risk(odds, np.where(has, percent(texts, questions), 0))
        sides = by_article(having, odds[has]), by_article(without, odds[~has])
        rows[name] = {
            "tuned": score,
            "forced": measured(percent(texts, having), having),
            "accuracy": 100 * float(np.mean((odds <= score["threshold"]) == has)),
            "best accuracy": 100
            * max(float(np.mean((odds <= at) == has)) for at in (squad.NEVER, *odds)),
            "auc": {"mean": auc(odds[has], odds[~has]), "interval": bootstrap(*sides)},
            "risk": [float(curve[len(curve) * step // STEPS - 1]) for step in range(1, STEPS + 1)],
            **{
                what: means({of: percent(texts, group, of) for of in ("exact", "f1")})
                for what, group in (("plausible", tempting), ("right", first))
            },
        }
        print(name, "silence", rows[name]["forced"], rows[name]["plausible"], flush=True)
    rows["random spans"] = {
        "plausible": means(random_spans(tempting)),
        "right": means(random_spans(first)),
    }
    articles = {
        part: len({q.title for q in group})
        for part, group in (("all", questions), ("plausible", tempting))
    }
    return {
        "questions": len(questions),
        "without": len(without),
        "plausible": len(tempting),
        "articles": articles,
        "systems": rows,
    }


def unread(groups: dict[str, list[Question]]) -> list[Question]:
    """SQuAD 1.1's questions on articles that the models were not trained on: SQuAD 2.0 trains on
    some of them."""
    trained = {question.title for question in groups["squad2 train"]}
    return [question for question in groups["squad1 test"] if question.title not in trained]


def content(folder: Path, data: Path) -> dict:
    """Both tasks."""
    groups = squad_real.all_questions(data)
    tune = groups["squad2 tune"]
    twos = groups["squad2 test"]
    ones = unread(groups)[::EVERY]
    return rounded(
        {"squad2": silence(twos, tune, systems(twos)), "squad1": finding(ones, systems(ones))}
    )
