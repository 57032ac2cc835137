"""Which questions without an answer are easy to find: written by people, picked by shared words, or
made by rules, on SQuAD 2.0 itself. Chapter: `book/evidence/questions`.

Two guessers that learn nothing, on a half of the development set; and the shipped model fine-tuned
on SQuAD 2.0, on the articles of that half that it was not trained on, beside the guessers on these.
Measure: AUC of the null odds against the answerable questions of the same texts, with 95 %
bootstrap intervals over articles. The guessers weigh words by the contexts of all articles.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from research.experiments import squad_real
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.tasks.answer_scores import predictions, score_windows
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.squad_negatives import (
    RULES,
    WordWeights,
    auc,
    changed,
    lexical_guess,
    picked,
    type_guess,
)

MODEL = "spanbert-mini-squad"
DRAWS = 1_000
NullOdds = Callable[[Sequence[Question]], list[float]]


def kinds_of(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Questions without an answer by kind; the made ones start from the answerable `questions`."""
    weights = weights_of(questions)
    made = changed(questions, np.random.default_rng(0))
    kinds = {
        "written": [question for question in questions if not question.answers],
        "picked, other article": picked(questions, weights, False),
        "picked, same article": picked(questions, weights, True),
    }
    kinds |= {rule: [question for question in made if question.category == rule] for rule in RULES}
    return {kind: group for kind, group in kinds.items() if group}


def weights_of(questions: Sequence[Question]) -> WordWeights:
    """Weights of the words in the questions' contexts."""
    return WordWeights(sorted({question.context for question in questions}))


def bootstrap(having: dict[str, list[float]], without: dict[str, list[float]]) -> list[float]:
    """95 % interval of the AUC when articles are drawn with replacement. having, without: null odds
    by article."""
    rng = np.random.default_rng(1)
    titles = sorted(having)
    values = []
    for _ in range(DRAWS):
        drawn = [titles[i] for i in rng.integers(len(titles), size=len(titles))]
        pair = [
            [value for title in drawn for value in group.get(title, [])]
            for group in (having, without)
        ]
        if all(pair):
            values.append(fast_auc(*pair))
    return [round(float(value), 4) for value in np.percentile(values, [2.5, 97.5])]


def fast_auc(having: Sequence[float], without: Sequence[float]) -> float:
    """`squad_negatives.auc` by sorting: the same number, without a table of all pairs."""
    below, up_to = (
        np.searchsorted(np.sort(having), without, side=side) for side in ("left", "right")
    )
    return float((below + up_to).mean() / 2 / len(having))


def by_article(questions: Sequence[Question], scores: Sequence[float]) -> dict[str, list[float]]:
    """The scores of each article's questions."""
    groups: dict[str, list[float]] = {}
    for question, value in zip(questions, scores, strict=True):
        groups.setdefault(question.title, []).append(value)
    return groups


def compare(questions: Sequence[Question], null_odds: NullOdds) -> dict[str, dict]:
    """AUC and interval of every kind, and `before`: the AUC of the questions that the kind was made
    from."""
    answerable = [question for question in questions if question.answers]
    scores = dict(zip((question.id for question in answerable), null_odds(answerable), strict=True))
    having = by_article(answerable, list(scores.values()))
    result = {}
    for kind, group in kinds_of(questions).items():
        odds = null_odds(group)
        sources = [
            scores[number]
            for q in group
            if (number := q.id.removesuffix(f"-{q.category}")) in scores
        ]
        result[kind] = {
            "questions": len(group),
            "auc": round(auc(list(scores.values()), odds), 4),
            "interval": bootstrap(having, by_article(group, odds)),
        }
        if sources:
            result[kind]["before"] = round(auc(list(scores.values()), sources), 4)
    return result


def content(folder: Path, data: Path) -> dict:
    """All three readers."""
    questions = squad_real.read(data, ["dev-v2.0-half"])
    unseen = squad_real.by_article(data)["test"]
    weights = weights_of(questions)
    answerer = QuestionAnswerer.from_pretrained(data_path("checkpoints", MODEL))

    def trained(group: Sequence[Question]) -> list[float]:
        _, odds = predictions(score_windows(answerer, group))
        return [odds[question.id] for question in group]

    def lexical(group: Sequence[Question]) -> list[float]:
        return [lexical_guess(question, weights).null_odds for question in group]

    def by_type(group: Sequence[Question]) -> list[float]:
        return [type_guess(question, weights).null_odds for question in group]

    guessers: dict[str, NullOdds] = {"lexical": lexical, "type": by_type}
    results = {name: compare(questions, guesser) for name, guesser in guessers.items()}
    results |= {f"{name}, unseen": compare(unseen, guesser) for name, guesser in guessers.items()}
    results["trained, unseen"] = compare(unseen, trained)
    return {
        "model": MODEL,
        "articles": len({q.title for q in questions}),
        "unseen": len({q.title for q in unseen}),
        "results": results,
    }
