"""SQuAD 1.1 and 2.0: predictions, exact match and F1; questions and their files stand in
`squad_files`. Chapter: `book/tasks/squad`.

Sources: SQuAD (Rajpurkar and others, 2016), SQuAD 2.0 (Rajpurkar and others, 2018) and the rules of
its official evaluation, written anew. No torch.
"""

import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from spanbert_tutorial.errors import require, shown
from spanbert_tutorial.tasks.squad_files import (  # noqa: F401
    GoldAnswer,
    Question,
    check_ids,
    read,
)

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
# a threshold far below all null odds: no answer, whatever comes; JSON cannot hold -inf
NEVER = -1e9


def check_values(values: Mapping[str, object], questions: Sequence[Question]) -> None:
    """Raises InputError unless there is a value for each question and no other."""
    require(questions, "there are no questions to score: give at least one.")
    check_ids(questions)
    wrong = sorted(map(str, {question.id for question in questions} ^ values.keys()))
    told = f"{len(wrong)} ids without a value, or without a question ({shown(wrong)})"
    require(not wrong, f"{told}: give one value for each question.")


# --- scores -------------------------------------------------------------------------


def normalize(text: str) -> str:
    """Answers are compared in lower case, with the words alone.

    No punctuation (ASCII), no articles, single spaces.
    """
    letters = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", letters).split())


def exact_match(prediction: str, gold: str) -> int:
    """1 if both are the same once normalized, else 0."""
    return int(normalize(prediction) == normalize(gold))


def f1(prediction: str, gold: str) -> float:
    """2PR / (P + R) over the words that both share.

    A word counts as often as in both. An empty side needs an empty other.
    """
    words = normalize(prediction).split()
    wanted = normalize(gold).split()
    if not words or not wanted:
        return float(words == wanted)
    shared = sum((Counter(words) & Counter(wanted)).values())
    if not shared:
        return 0.0
    # in the official order: the same to the last digit
    precision = shared / len(words)
    recall = shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def character_f1(prediction: str, gold: str) -> float:
    """The same over characters, for languages that put no spaces between words."""
    return f1(*(" ".join(normalize(text).replace(" ", "")) for text in (prediction, gold)))


def unspaced(texts: Iterable[str]) -> bool:
    """Whether most texts are in a script without capitals, such as Chinese, Thai or Hangul."""
    found = [any(c.isalpha() and c.lower() == c.upper() for c in text) for text in texts]
    return 2 * sum(found) > len(found)


def golds(question: Question) -> list[str]:
    """The answers that are not empty once normalized, or else ""."""
    texts = [answer.text for answer in question.answers]
    return [text for text in texts if normalize(text)] or [""]


def raw_scores(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
) -> dict[str, dict[str, float]]:
    """The best scores over a question's answers, 0 to 1, by id."""
    check_values(predictions, questions)
    raw: dict[str, dict[str, float]] = {"exact": {}, "f1": {}}
    for q in questions:
        text, answers = predictions[q.id], set(golds(q))
        raw["exact"][q.id] = max(exact_match(text, a) for a in answers)
        raw["f1"][q.id] = max(f1(text, a) for a in answers)
    return raw


def score(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_odds: Mapping[str, float] | None = None,
    threshold: float = 0.0,
) -> dict[str, float]:
    """Exact match and F1 in percent, with the official names.

    Over all questions and over each of `kinds`. null_odds: how strongly each question seems to have
    no answer, of a model its null score minus the score of its best answer; above `threshold` a
    question counts as left without answer: right if it has none, wrong if it has one (also one that
    is empty once normalized; as official). Raises InputError where ids are missing or do not fit.
    """
    raw = raw_scores(predictions, questions)
    if null_odds is not None:
        check_values(null_odds, questions)
        for q in questions:
            if null_odds[q.id] > threshold:  # no answer
                for values in raw.values():
                    values[q.id] = float(not q.answers)
    result: dict[str, float] = {}
    for prefix, group in kinds(questions).items():
        for name, values in raw.items():
            total = sum(values[q.id] for q in group)
            result[prefix + name] = 100 * total / len(group)
        result[f"{prefix}total"] = len(group)
    return result


def kinds(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """All questions, those with answers (`HasAns_`) and those without, where there are such."""
    answerable = [q for q in questions if q.answers]
    others = [q for q in questions if not q.answers]
    groups = {"": [*questions], "HasAns_": answerable, "NoAns_": others}
    return {prefix: group for prefix, group in groups.items() if group}


def best_threshold(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_odds: Mapping[str, float],
    measure: str = "f1",
) -> tuple[float, float]:
    """The highest score that a threshold gives to THESE questions.

    (score in percent, threshold), the official evaluation's `best_f1` and `best_exact`. Tuned on
    the same questions, it flatters: tune on one part and `score` another. As there, the search
    begins with "" for every question, at threshold 0, and takes the questions one by one, from the
    least null odds on; so between EQUAL null odds it may find a score that no threshold reaches.
    """
    check_values(null_odds, questions)
    raw = raw_scores(predictions, questions)[measure]
    answerable = {q.id for q in questions if q.answers}
    # with "" everywhere, each unanswerable question earns a point
    now = best = float(len(questions) - len(answerable))
    threshold = 0.0
    for number in sorted(null_odds, key=null_odds.__getitem__):
        if number in answerable:
            now += raw[number]
        else:  # an answer loses that point
            now -= bool(predictions[number])
        if now > best:
            best, threshold = now, null_odds[number]
    return 100 * best / len(questions), threshold


def chosen_threshold(
    predictions: Mapping[str, str], questions: Sequence[Question], null_odds: Mapping[str, float]
) -> float:
    """The threshold with the best F1 here, to use on other questions.

    Unlike the official search it takes equal null odds together; and where nothing beats "" for
    every question, it is NEVER. Raises InputError when ids do not fit.
    """
    check_values(null_odds, questions)
    gains: dict[float, float] = defaultdict(float)
    for number, value in raw_scores(predictions, questions)["f1"].items():
        gains[null_odds[number]] += value
    for question in questions:
        gains[null_odds[question.id]] -= not question.answers
    ordered = sorted(gains)
    totals = list(accumulate(gains[odds] for odds in ordered))
    return NEVER if max(totals) <= 1e-9 else ordered[totals.index(max(totals))]


def intervals(
    predictions: Mapping[str, str], questions: Sequence[Question]
) -> dict[str, list[float] | str]:
    """The 95% intervals of EM and F1 in percent (bootstrap), and `drawn`: what was resampled,
    because its questions share their difficulty: articles where there are several titles, else
    contexts. Empty where there are fewer than two of either."""
    for unit, plural in (("title", "articles"), ("context", "contexts")):
        names, group = np.unique([getattr(q, unit) for q in questions], return_inverse=True)
        if len(names) < 2:
            continue
        drawn = np.random.default_rng(0).integers(len(names), size=(1_000, len(names)))
        counts = np.bincount(group)[drawn].sum(1)
        result: dict[str, list[float] | str] = {}
        for name, values in raw_scores(predictions, questions).items():
            sums = np.bincount(group, [values[q.id] for q in questions])[drawn].sum(1)
            result[name] = (100 * np.percentile(sums / counts, [2.5, 97.5])).tolist()
        return result | {"drawn": f"{len(names):,} {plural}"}
    return {}
