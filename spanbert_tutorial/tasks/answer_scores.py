"""Looking into answers: the scores of each window, so that one decoding rule can be changed without
running the model again. Chapter: `book/tasks/question_answering`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.tasks.question_answering import QuestionAnswerer
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.windows import Encoded, Window, decode

# predicted texts by id, the questions, null odds by id
Predictions = tuple[Mapping[str, str], Sequence[Question], Mapping[str, float]]


@dataclass(frozen=True)
class Scored:
    """A question, its windows, and for each window S and E at its positions, float [n] each."""

    question: Question
    encoded: Encoded
    windows: list[Window]
    scores: Sequence[tuple[np.ndarray, np.ndarray]]

    def nulls(self) -> np.ndarray:
        """S + E of [CLS] in each window, float [windows]."""
        return np.array([starts[0] + ends[0] for starts, ends in self.scores])

    def text(self, first: int, last: int) -> str:
        """The context from token `first` to token `last`, as written."""
        begin = self.encoded.offsets[first, 0]
        end = self.encoded.offsets[last, 1]
        return self.question.context[begin:end]


def score_windows(
    answerer: QuestionAnswerer, questions: Sequence[Question], batch_size: int = 32
) -> list[Scored]:
    """The scores of all windows of each question, in order. An empty text raises InputError."""
    pairs = ((question.question, question.context) for question in questions)
    found = zip(questions, answerer.scored(pairs, batch_size), strict=True)
    return [Scored(q, one.encoded, one.windows, one.scores) for q, one in found]


def answered(answerer: QuestionAnswerer, questions: Sequence[Question]) -> Predictions:
    """The best answers by id, the questions, and the null odds by id, for a threshold."""
    texts, odds = predictions(score_windows(answerer, questions))
    return texts, questions, odds


def predictions(
    scored: Sequence[Scored], null: Callable[[np.ndarray], float] = np.min
) -> tuple[dict[str, str], dict[str, float]]:
    """The text of the best span, and the null odds (null score − score of that span), by id.

    null: combines the null scores of the windows; `np.min` is right, `np.max` a common mistake.
    """
    texts = {}
    odds = {}
    for one in scored:
        (best, *_), _ = decode(one.windows, iter(one.scores))
        texts[one.question.id] = one.text(best.first, best.last)
        odds[one.question.id] = float(null(one.nulls())) - best.score
    return texts, odds


def separate_arg_maxes(scored: Sequence[Scored]) -> Counter[str]:
    """How often the best start and the best end of the first window make what `pair_of` names."""
    counts: Counter[str] = Counter()
    for one in scored:
        starts, ends = one.scores[0]
        counts[pair_of(one.windows[0], int(np.argmax(starts)), int(np.argmax(ends)))] += 1
    return counts


def pair_of(window: Window, first: int, last: int) -> str:
    """What two positions make: a "span" in the context, "[CLS]" (no answer), or neither: "[CLS]
    once", "outside the context" (question or [SEP]), "end before start"."""
    context = range(window.first, window.first + window.end - window.start)
    if first == last == 0:
        return "[CLS]"
    if 0 in (first, last):
        return "[CLS] once"
    if first not in context or last not in context:
        return "outside the context"
    return "end before start" if last < first else "span"
