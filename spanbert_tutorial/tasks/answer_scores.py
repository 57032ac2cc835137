"""Looking into answers: scores kept window by window, so that one rule can be changed without
asking the model again. Chapter: `book/tasks/question_answering`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.windows import Encoded, Window, decode

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Scored:
    """A question, its windows, and of each window S and E at its positions, float [n] each."""

    question: Question
    encoded: Encoded
    windows: list[Window]
    scores: list[tuple[np.ndarray, np.ndarray]]

    def nulls(self) -> np.ndarray:
        """S + E of [CLS], one for each window."""
        return np.array([starts[0] + ends[0] for starts, ends in self.scores])

    def text(self, first: int, last: int) -> str:
        """The context from token `first` to token `last`, as written."""
        return self.question.context[self.encoded.offsets[first, 0] : self.encoded.offsets[last, 1]]


def score_windows(
    answerer: QuestionAnswerer, questions: Sequence[Question], batch_size: int = 32
) -> list[Scored]:
    """The scores of all windows of each question, in order. Raises InputError for an empty question
    or context."""
    found: list[Scored] = []
    pairs = ((question.question, question.context) for question in questions)
    for some in answerer.together(pairs, 8 * batch_size):
        scores = answerer.scores([window for *_, made in some for window in made], batch_size)
        for _, _, encoded, made in some:
            found.append(Scored(questions[len(found)], encoded, made, [next(scores) for _ in made]))
    return found


def predictions(
    scored: Sequence[Scored], null: Callable[[np.ndarray], float] = np.min
) -> tuple[dict[str, str], dict[str, float]]:
    """By id the text of the best span, and the null odds: null score − its score.

    null: makes one null score of those of the windows; `np.min` is right, `np.max` a common
    mistake.
    """
    texts = {}
    odds = {}
    for one in scored:
        (best, *_), _ = decode(one.windows, iter(one.scores))
        texts[one.question.id] = one.text(best.first, best.last)
        odds[one.question.id] = float(null(one.nulls())) - best.score
    return texts, odds


def separate_arg_maxes(scored: Sequence[Scored]) -> Counter[str]:
    """How often the best start and the best end of a first window, each by itself, make a pair of
    each kind.

    Kinds: "span" in the context, "[CLS]" twice (no answer), and what is neither: "[CLS] once",
    "outside the context" (question or [SEP]), "end before start".
    """
    kinds: Counter[str] = Counter()
    for one in scored:
        (starts, ends), window = one.scores[0], one.windows[0]
        first = int(np.argmax(starts))
        last = int(np.argmax(ends))
        context = range(window.first, window.first + window.end - window.start)
        outside = first not in context or last not in context
        kinds[
            "[CLS]"
            if first == last == 0
            else "[CLS] once"
            if 0 in (first, last)
            else "outside the context"
            if outside
            else "end before start"
            if last < first
            else "span"
        ] += 1
    return kinds


def f1_by_category(
    texts: Mapping[str, str],
    odds: Mapping[str, float],
    questions: Sequence[Question],
    threshold: float,
) -> dict[str, float]:
    """F1 in percent of the answerable questions ("answerable") and of each category of those
    without an answer ("no category" where the file names none)."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(
            "answerable" if question.answers else question.category or "no category", []
        ).append(question)
    result = {}
    for name, group in groups.items():
        ids = [question.id for question in group]
        some, some_odds = ({number: values[number] for number in ids} for values in (texts, odds))
        result[name] = squad.score(some, group, some_odds, threshold)["f1"]
    return result


def words(question: Question) -> set[str]:
    """The words and numbers of a question, in lower case."""
    return set(WORD.findall(question.question.lower()))


def telling_words(questions: Sequence[Question], at_least: int = 5) -> set[str]:
    """Words in at least so many questions without an answer, and in none with one: they give such a
    question away."""
    safe = set().union(*(words(question) for question in questions if question.answers))
    counts = Counter(
        word for question in questions if not question.answers for word in words(question) - safe
    )
    return {word for word, count in counts.items() if count >= at_least}
