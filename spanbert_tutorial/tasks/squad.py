"""SQuAD 1.1 and 2.0: reading, writing predictions, exact match and F1. Chapter: `book/tasks/squad`.

Sources: SQuAD (Rajpurkar and others, 2016), SQuAD 2.0 (Rajpurkar and others, 2018) and the rules of its official
evaluation, written anew. No torch.
"""

import json
import lzma
import re
import string
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from spanbert_tutorial.corpora import HUB_NAME, OPENERS, hub_rows
from spanbert_tutorial.errors import InputError

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
NEVER = -1e9  # a threshold below every null score that JSON can hold, unlike -inf: no answer, whatever comes


@dataclass(frozen=True)
class Answer:
    """A stretch of the context: its text and the offset of its first character."""

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a context. Without answers it has none there (SQuAD 2.0); `plausible` may then mislead.

    category: why there is no answer, where the file says it.
    """

    id: str
    question: str
    context: str
    title: str = ""
    answers: tuple[Answer, ...] = ()
    plausible: tuple[Answer, ...] = ()
    category: str | None = None


# --- files --------------------------------------------------------------------------------------------------


def read(source: str | Path) -> list[Question]:
    """The questions of a SQuAD file (`.json`, also packed as `.xz` or `.gz`), or of a set on the Hugging Face hub
    (OWNER/NAME or OWNER/NAME:PART, the part is `validation` unless given).

    Raises InputError naming article, question and reason.
    """
    name = HUB_NAME.fullmatch(str(source))
    if name and not Path(source).exists() and Path(source).suffix not in (".json", *filter(None, OPENERS)):
        questions = list(hub_questions(*name.groups(default="validation")))
    else:
        questions = [question for article in articles(source) for question in article_questions(article)]
    check_ids(questions)
    return questions


def articles(path: str | Path) -> list[dict]:
    """The list under `data`. Raises InputError for what is not a SQuAD file."""
    path = Path(path)
    opener = OPENERS.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: give a SQuAD file (.json, also .xz or .gz).") from None
    except (OSError, ValueError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): give a whole SQuAD file.") from None
    if not isinstance(content, dict) or not isinstance(content.get("data"), list) or not content["data"]:
        raise InputError(f'{path} is not a SQuAD file: it needs a list of articles under "data".')
    return content["data"]


def article_questions(article: dict) -> Iterator[Question]:
    """The questions of one article, each checked."""
    title = article.get("title", "") if isinstance(article, dict) else ""
    where = f'article "{title}"'
    try:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                where = f'article "{title}", question {entry.get("id", "without id")}'
                question = Question(
                    entry["id"], entry["question"], paragraph["context"], title, listed(entry["answers"]),
                    listed(entry.get("plausible_answers", [])), entry.get("category"))
                check(question, entry.get("is_impossible"))
                yield question
    except (KeyError, TypeError, AttributeError) as error:
        missing = f"no {error}" if isinstance(error, KeyError) else "a value of the wrong kind"
        raise InputError(f"{where}: not in SQuAD format ({missing}); mend it.") from None


def listed(answers: Iterable[Mapping]) -> tuple[Answer, ...]:
    """The answers of a list in SQuAD format."""
    return tuple(Answer(answer["text"], answer["answer_start"]) for answer in answers)


def check(question: Question, impossible: bool | None) -> None:
    """Raises InputError for answers that are not where they say, and for a label that contradicts them; TypeError for
    an id, question or context that is no text."""
    if not all(isinstance(text, str) for text in (question.id, question.question, question.context)):
        raise TypeError
    where = f'article "{question.title}", question {question.id}'
    for name, text in (("id", question.id), ("question", question.question), ("context", question.context)):
        if not text.strip() or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{ascii(where)[1:-1]}: its {name} is empty or holds half a character; mend it.")
    for answer in (*question.answers, *question.plausible):
        found = question.context[answer.start : answer.start + len(answer.text)] if answer.start >= 0 else ""
        if found != answer.text or not answer.text:
            raise InputError(f'{where}: at {answer.start} the context has "{found}", the answer is "{answer.text}"; '
                             "mend answer_start or text.")
    if impossible is not None and impossible == bool(question.answers):
        raise InputError(f"{where}: is_impossible is {impossible}, but it has {len(question.answers)} answers; "
                         "mend one of them.")


def check_ids(questions: Sequence[Question]) -> None:
    """Raises InputError when two questions share an id."""
    number, often = Counter(question.id for question in questions).most_common(1)[0] if questions else ("", 0)
    if often > 1:
        titles = [question.title for question in questions if question.id == number]
        raise InputError(f'article "{titles[-1]}", question {number}: the id stands {often} times; give each its own.')


def hub_questions(name: str, part: str) -> Iterator[Question]:
    """The rows of a set in the hub's SQuAD format."""
    for row in hub_rows(name, split=part):
        try:
            answers = zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True)
            question = Question(row["id"], row["question"], row["context"], row.get("title", ""),
                                tuple(Answer(text, start) for text, start in answers))
            check(question, None)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the set {name} is not in SQuAD format: give one with id, question, context and "
                             "answers.") from None
        yield question


def read_predictions(path: str | Path, questions: Sequence[Question]) -> dict[str, str]:
    """The official format, {id: text}. Raises InputError unless there is one text for each question and no other."""
    try:
        predictions = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=unique)
    except (OSError, ValueError) as error:
        wrong = f"the predictions {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a JSON object of id and text.") from None
    if not isinstance(predictions, dict) or not all(isinstance(text, str) for text in predictions.values()):
        raise InputError(f'the predictions {path} are not a JSON object of id and text: write {{"ID": "text", …}}.')
    check_predictions(predictions, questions)
    return predictions


def unique(pairs: list[tuple]) -> dict:
    """An object of JSON; ValueError when a name stands twice, of which JSON would silently keep the last."""
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"the id {twice[0]} stands twice")
    return dict(pairs)


def check_predictions(
    predictions: Mapping[str, object],
    questions: Sequence[Question],
    remedy: str = 'text for each question, "" for no answer',
) -> None:
    """Raises InputError naming ids that are missing or belong to no question, and when there are no questions."""
    if not questions:
        raise InputError("there are no questions to score: give at least one.")
    wanted = {question.id for question in questions}
    missing, unknown = wanted - predictions.keys(), predictions.keys() - wanted
    for what, ids in (("not given", missing), ("unknown", unknown)):
        if ids:
            some = ", ".join(sorted(ids)[:3]) + (", …" if len(ids) > 3 else "")
            raise InputError(f"ids that are {what}: {len(ids)} ({some}); give one {remedy}.")


def write_predictions(path: str | Path, predictions: Mapping[str, str]) -> None:
    """The official format, {id: text}, with "" for no answer."""
    Path(path).write_text(json.dumps(dict(predictions), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")


# --- scores -------------------------------------------------------------------------------------------------


def normalise(text: str) -> str:
    """What answers are compared by: lower case, no punctuation (ASCII), no "a", "an", "the", single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> int:
    """1 if both are the same once normalised, else 0."""
    return int(normalise(prediction) == normalise(gold))


def f1(prediction: str, gold: str) -> float:
    """2PR / (P + R) over the words that both share, each as often as in both. An empty side needs an empty other."""
    words, wanted = normalise(prediction).split(), normalise(gold).split()
    if not words or not wanted:
        return float(words == wanted)
    shared = sum((Counter(words) & Counter(wanted)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(words), shared / len(wanted)  # in the official order: the same to the last digit
    return 2 * precision * recall / (precision + recall)


def golds(question: Question) -> list[str]:
    """Answers to compare with: those that are not empty once normalised; "" when there is none."""
    return [answer.text for answer in question.answers if normalise(answer.text)] or [""]


def raw_scores(predictions: Mapping[str, str], questions: Sequence[Question]) -> dict[str, dict[str, float]]:
    """{"exact": …, "f1": …}: for each id the best score over its answers, 0 to 1."""
    check_predictions(predictions, questions)
    return {name: {q.id: max(measure(predictions[q.id], gold) for gold in golds(q)) for q in questions}
            for name, measure in {"exact": exact_match, "f1": f1}.items()}


def score(
    predictions: Mapping[str, str],
    questions: Sequence[Question],
    null_scores: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """Exact match and F1 in percent over all questions, and where there are both kinds, `HasAns_…` and `NoAns_…` (of
    one kind only, the official evaluation prints the same figures twice).

    null_scores: how strongly each question seems to have no answer; above `threshold` the prediction counts as "".
    Raises InputError when there are no questions or ids do not fit.
    """
    raw = raw_scores(predictions, questions)
    if null_scores is not None and threshold is not None:
        check_predictions(null_scores, questions, "null score for each question")
        raw = {name: {q.id: float(not q.answers) if null_scores[q.id] > threshold else values[q.id] for q in questions}
               for name, values in raw.items()}
    kinds = answerable(questions)
    groups = {"": list(questions)} | (kinds if all(kinds.values()) else {})  # of one kind only, as in SQuAD 1.1
    return {f"{prefix}{name}": 100 * sum(values[q.id] for q in group) / len(group)
            for prefix, group in groups.items() for name, values in raw.items()} | {"total": len(questions)}


def answerable(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Questions with (`HasAns_`) and without answers (`NoAns_`)."""
    return {"HasAns_": [q for q in questions if q.answers], "NoAns_": [q for q in questions if not q.answers]}


def best_threshold(
    predictions: Mapping[str, str], questions: Sequence[Question], null_scores: Mapping[str, float], measure: str = "f1"
) -> tuple[float, float]:
    """(best score in percent, its threshold): the highest that any threshold on `null_scores` gives to THESE questions.

    The official evaluation's `best_f1` and `best_exact`. A score with a threshold tuned on the same questions flatters;
    tune on one part and `score` another. As there, the search begins with "" for every question, at threshold 0, and
    takes the questions one by one, from the least null score on; so between questions with EQUAL null scores it may
    find a score that no threshold reaches. Raises InputError when ids do not fit.
    """
    raw = raw_scores(predictions, questions)[measure]
    check_predictions(null_scores, questions, "null score for each question")
    has_answer = {q.id: bool(q.answers) for q in questions}
    now = best = sum(not has for has in has_answer.values())
    threshold = 0.0
    for number in sorted(null_scores, key=null_scores.__getitem__):  # equal ones in the order of `null_scores`
        now += raw[number] if has_answer[number] else -bool(predictions[number])
        if now > best:
            best, threshold = now, null_scores[number]
    return 100 * best / len(questions), threshold


def chosen_threshold(
    predictions: Mapping[str, str], questions: Sequence[Question], null_scores: Mapping[str, float]
) -> float:
    """The threshold with the best F1 on these questions, to use on others. Unlike the official search it takes equal
    null scores together; and where nothing beats "" for every question, it is NEVER."""
    gains: Counter[float] = Counter()
    for number, value in raw_scores(predictions, questions)["f1"].items():
        gains[null_scores[number]] += value
    for question in questions:
        gains[null_scores[question.id]] -= not question.answers
    ordered = sorted(gains)
    totals = list(accumulate(gains[null_score] for null_score in ordered))
    return ordered[totals.index(max(totals))] if max(totals) > 1e-9 else NEVER


def human_score(questions: Sequence[Question]) -> dict[str, float]:
    """What people reach: the second answer of each question as the prediction, the other answers as gold (SQuAD 1.1).
    Only questions with at least two answers count. Raises InputError when there is none."""
    several = [q for q in questions if len(q.answers) > 1]
    rest = [Question(q.id, q.question, q.context, q.title, (q.answers[0], *q.answers[2:])) for q in several]
    return score({q.id: q.answers[1].text for q in several}, rest)
