"""SQuAD 1.1 and 2.0: predictions, exact match and F1; questions and their files stand in
`squad_files`. Chapter: `book/tasks/squad`.

Sources: SQuAD (Rajpurkar and others, 2016), SQuAD 2.0 (Rajpurkar and others, 2018) and the rules of
its official evaluation, written anew. No torch.
"""

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import (
    InputError,
    check_text,
    is_number,
    parse_json,
    regular_file,
    require,
    shown,
)
from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question, check_ids, read, read_several

__all__ = [
    "GoldAnswer",
    "Question",
    "best_threshold",
    "chosen_threshold",
    "exact_match",
    "f1",
    "normalize",
    "read",
    "read_predictions",
    "read_several",
    "score",
    "write_predictions",
]
ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
# a threshold far below all null odds: no answer, whatever comes; JSON cannot hold -inf
NEVER = -1e9


def read_predictions(path: str | Path, questions: Sequence[Question]) -> dict[str, str]:
    """The official format, {id: text}. Raises InputError unless there is one text for each question
    and no other."""
    try:
        predictions = parse_json(
            regular_file(path).read_text(encoding="utf-8-sig"), object_pairs_hook=unique
        )
    except (OSError, ValueError) as error:
        wrong = f"the predictions {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a JSON object of id and text.") from None
    if not isinstance(predictions, dict) or not all(
        isinstance(text, str) for text in predictions.values()
    ):
        raise InputError(
            f'the predictions {path} are not a JSON object of id and text: write {{"ID": "text", '
            f"…}}."
        )
    check_predictions(predictions, questions)
    return predictions


def unique(pairs: list[tuple]) -> dict:
    """An object of JSON; ValueError when a name stands twice, of which JSON would silently keep the
    last."""
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"the id {twice[0]} stands twice")
    return dict(pairs)


def check_predictions(
    predictions: Mapping[str, object],
    questions: Sequence[Question],
    remedy: str = 'text for each question, "" for no answer',
) -> None:
    """Raises InputError naming ids that are missing, belong to no question or to two, and when
    there are no questions."""
    if not questions:
        raise InputError("there are no questions to score: give at least one.")
    check_ids(questions)
    wanted = {question.id for question in questions}
    missing = wanted - predictions.keys()
    unknown = predictions.keys() - wanted
    for what, ids in (("not given", missing), ("unknown", unknown)):
        if ids:
            some = ", ".join(sorted(map(str, ids))[:3]) + (", …" if len(ids) > 3 else "")
            raise InputError(f"ids that are {what}: {len(ids)} ({some}); give one {remedy}.")


def check_null_odds(null_odds: Mapping[str, float], questions: Sequence[Question]) -> None:
    """Raises InputError unless there is a number for each question and no other."""
    check_predictions(null_odds, questions, "number, the null odds, for each question")
    if wrong := [number for number, value in null_odds.items() if not is_number(value)]:
        raise InputError(
            f"the null odds of {wrong[0]} are not a number: give one for each question."
        )


def write_predictions(path: str | Path, predictions: Mapping[str, str]) -> None:
    """The official format, {id: text}, with "" for no answer; whole or not at all. Raises
    InputError for half a character in a text."""
    content = json.dumps(dict(predictions), ensure_ascii=False, indent=0) + "\n"
    check_text("a prediction", content)
    write_text(path, content)


# --- scores -------------------------------------------------------------------------


def normalize(text: str) -> str:
    """Answers are compared in lower case, with the words alone.

    No punctuation (ASCII), no "a", "an", "the", single spaces.
    """
    letters = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", letters).split())


def exact_match(prediction: str, gold: str) -> int:
    """1 if both are the same once normalized, else 0."""
    return int(normalize(prediction) == normalize(gold))


def f1(prediction: str, gold: str) -> float:
    """2PR / (P + R) over the words that both share.

    A word counts as often as in both. An empty side needs an empty
    other.
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


def golds(question: Question) -> list[str]:
    """The answers that are not empty once normalized, or else ""."""
    texts = [answer.text for answer in question.answers]
    return [text for text in texts if normalize(text)] or [""]


def raw_scores(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
) -> dict[str, dict[str, float]]:
    """The best scores over a question's answers, 0 to 1, by id."""
    check_texts(predictions, questions)
    raw: dict[str, dict[str, float]] = {"exact": {}, "f1": {}}
    for q in questions:
        text, answers = predictions[q.id], golds(q)
        raw["exact"][q.id] = max(exact_match(text, a) for a in answers)
        raw["f1"][q.id] = max(f1(text, a) for a in answers)
    return raw


def check_texts(predictions: Mapping[str, str], questions: Sequence[Question]) -> None:
    """Raises InputError unless there is a text for each question and no other."""
    check_predictions(predictions, questions)
    for number, text in predictions.items():
        if not isinstance(text, str):
            raise InputError(
                f'the prediction of {number} is {shown(text)}: give text, "" for no answer.'
            )


def score(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """Exact match and F1 in percent, with the official names.

    Over all questions, and apart over those with answers (`HasAns_…`) and without (`NoAns_…`),
    where there are such. null_odds: how strongly each question seems to have no answer, of a model
    its null score minus the score of its best answer; above `threshold` a question counts as left
    without answer: right if it has none, wrong if it has one (also one that is empty once
    normalized; as official). Raises InputError when there are no questions, ids do not fit, or of
    null odds and threshold one is missing.
    """
    raw = raw_scores(predictions, questions)
    check_threshold(null_odds, threshold, questions)
    if null_odds is not None and threshold is not None:
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


def check_threshold(
    null_odds: Mapping[str, float] | None,
    threshold: float | None,
    questions: Sequence[Question],
) -> None:
    """Raises InputError unless both are given, for each question a number, or neither."""
    if (null_odds is None) != (threshold is None):
        raise InputError("null odds and a threshold work together only: give both, or neither.")
    if null_odds is not None:
        check_null_odds(null_odds, questions)
        require(is_number(threshold), f"the threshold is {shown(threshold)}: give a number.")


def kinds(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """All questions, those with answers (`HasAns_`) and those without (`NoAns_`), where there are
    such."""
    groups = {
        "": list(questions),
        "HasAns_": [q for q in questions if q.answers],
        "NoAns_": [q for q in questions if not q.answers],
    }
    return {prefix: group for prefix, group in groups.items() if group}


def best_threshold(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_odds: Mapping[str, float],
    measure: str = "f1",
) -> tuple[float, float]:
    """The highest score that a threshold gives to THESE questions.

    (score in percent, threshold), the official evaluation's `best_f1` and `best_exact`. A score
    with a threshold tuned on the same questions flatters; tune on one part and `score` another. As
    there, the search begins with "" for every question, at threshold 0, and takes the questions one
    by one, from the least null odds on; so between questions with EQUAL null odds it may find a
    score that no threshold reaches. Raises InputError when ids do not fit.
    """
    check_search(null_odds, questions, measure)
    raw = raw_scores(predictions, questions)[measure]
    answerable = {q.id for q in questions if q.answers}
    now = best = float(len(questions) - len(answerable))
    threshold = 0.0
    for number in sorted(null_odds, key=null_odds.__getitem__):
        if number in answerable:
            now += raw[number]
        else:
            now -= bool(predictions[number])
        if now > best:
            best, threshold = now, null_odds[number]
    return 100 * best / len(questions), threshold


def check_search(
    null_odds: Mapping[str, float], questions: Sequence[Question], measure: str
) -> None:
    """Raises InputError for null odds that do not fit the questions, and for another measure."""
    require(measure in ("exact", "f1"), f'the measure is {shown(measure)}: give "exact" or "f1".')
    check_null_odds(null_odds, questions)


def chosen_threshold(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_odds: Mapping[str, float],
) -> float:
    """The threshold with the best F1 here, to use on other questions.

    Unlike the official search it takes equal null odds together; and where nothing beats "" for
    every question, it is NEVER. Raises InputError when ids do not fit.
    """
    check_null_odds(null_odds, questions)
    gains: dict[float, float] = defaultdict(float)
    for number, value in raw_scores(predictions, questions)["f1"].items():
        gains[null_odds[number]] += value
    for question in questions:
        gains[null_odds[question.id]] -= not question.answers
    ordered = sorted(gains)
    totals = list(accumulate(gains[odds] for odds in ordered))
    if max(totals) <= 1e-9:
        return NEVER
    return ordered[totals.index(max(totals))]
