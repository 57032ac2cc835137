"""Rule-based baselines, and questions with another context that does not answer them, after SQuAD
2.0 (Rajpurkar and others, 2018). Chapter: `book/tasks/squad`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spanbert_tutorial.tasks.squad_files import Question
from spanbert_tutorial.text.sentences import split_sentences

QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
SMALL_WORDS = QUESTION_WORDS | frozenset(
    "a an the this that these those it its he his she her they their them we our you your i my "
    "there here and or but so if not no of in on at to for from by with as than into over under "
    "after before between during until since through about against without is are was were be been "
    "being do does did has have had can could will would may might must should one some many much "
    "most more all both each every other another such only also then today later once because while "
    "although".split()
)
NUMBER_WORDS = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty "
    "forty fifty hundred hundreds thousand thousands million billion half third quarter fifth "
    "century centuries".split()
)
WORD = re.compile(r"\w+(?:[-.,'’/]\w+)*")
NUMBER_ASKED = re.compile(
    r"\bwhen\b|\bhow (many|much|long|old|far|high|deep)\b|\b(year|century|date|month)\b"
)
NAME_ASKED = re.compile(
    r"\b(who|whom|whose|where)\b|\b(what|which) (company|country|city|river|king|person|team)\b"
)


def without_s(word: str) -> str:
    """The word without the 's of possession."""
    return word.removesuffix("'s").removesuffix("’s")


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation around them and without 's."""
    return [without_s(word) for word in WORD.findall(text.lower())]


class Guess(NamedTuple):
    """An answer ("" where none was found), and null odds to compare with a threshold, like those
    of a model: the higher, the more likely the question has no answer."""

    text: str
    null_odds: float


class WordWeights:
    """The weight of a word: ln((1 + N) / (1 + the texts of N with it)); 0 for question words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.count = len(texts)
        self.texts_with = Counter(word for text in texts for word in set(words(text)))

    def weight(self, word: str) -> float:
        """The weight of one word in lower case."""
        rare = math.log((1 + self.count) / (1 + self.texts_with[word]))
        return 0.0 if word in QUESTION_WORDS else rare

    def overlap(self, question: str, text: str) -> float:
        """The share of the question's words, by weight, that occur in the text: 0 to 1."""
        asked = set(words(question))
        # sorted, so that the order of the sum does not depend on hashes
        total = sum(map(self.weight, sorted(asked)))
        shared = sum(map(self.weight, sorted(asked & set(words(text)))))
        return shared / total if total else 0.0


# --- guessing -----------------------------------------------------------------------


def stretches(text: str) -> list[tuple[str, str, int]]:
    """The longest runs of names and numbers with single spaces between: (text, kinds, index of its
    first character), kinds as "name number". A name has an initial capital and is no small word."""
    runs: list[tuple[int, int, set[str]]] = []
    for match in WORD.finditer(text):
        word, lower = match[0], match[0].lower()
        if any(map(str.isdigit, word)) or lower in NUMBER_WORDS:
            kinds = {"number"}
        elif word[0].isupper() and lower not in SMALL_WORDS:
            kinds = {"name"}
        else:
            continue
        start, end = match.start(), match.start() + len(without_s(word))
        if runs and text[runs[-1][1] : start] == " ":
            start, _, before = runs.pop()
            kinds |= before
        runs.append((start, end, kinds))
    return [(text[start:end], " ".join(sorted(kinds)), start) for start, end, kinds in runs]


def new_stretches(
    question: Question, weights: WordWeights
) -> Iterator[tuple[float, list[tuple[str, str]]]]:
    """For each sentence of the context, the largest overlap with the question first: the overlap,
    and (text, kinds) of its `stretches` that share no word with the question."""
    asked = set(words(question.question))
    sentences = split_sentences(question.context)
    overlaps = [(weights.overlap(question.question, sentence), sentence) for sentence in sentences]
    for overlap, sentence in sorted(overlaps, key=lambda pair: -pair[0]):
        new = [one[:2] for one in stretches(sentence) if not asked & set(words(one[0]))]
        yield overlap, new


def lexical_guess(question: Question, weights: WordWeights) -> Guess:
    """The longest new stretch of the sentence with the largest overlap; null odds: minus that."""
    overlap, found = next(new_stretches(question, weights))
    return Guess(max((text for text, _ in found), key=len, default=""), -overlap)


def wanted_kind(question: str) -> str:
    """The kind of answer that the question word asks for: `name`, `number`, or "" for any."""
    asked = question.lower()
    return "number" if NUMBER_ASKED.search(asked) else "name" if NAME_ASKED.search(asked) else ""


def type_guess(question: Question, weights: WordWeights) -> Guess:
    """The first new stretch of the wanted kind, in the sentences from the largest overlap on. Null
    odds: 0, or 1 if there is none."""
    wanted = wanted_kind(question.question)
    for _, found in new_stretches(question, weights):
        for text, kinds in found:
            if wanted in kinds:
                return Guess(text, 0.0)
    return Guess("", 1.0)


# --- questions without an answer ----------------------------------------------------


def picked(
    questions: Sequence[Question], weights: WordWeights, same_article: bool
) -> list[Question]:
    """Each answerable question with the context of the largest overlap that has no answer of it, of
    its own article or of another one."""
    contexts = list(dict.fromkeys((question.title, question.context) for question in questions))
    made = []
    for question in questions:
        answers = [answer.text.lower() for answer in question.answers]
        choices = [
            context
            for title, context in contexts
            if (title == question.title) == same_article
            and context != question.context
            and not any(text in context.lower() for text in answers)
        ]
        if answers and choices:
            best = max(choices, key=lambda context: weights.overlap(question.question, context))
            name = f"{question.id}-picked"
            made.append(replace(question, id=name, context=best, answers=(), category="picked"))
    return made


def auc(with_answer: Sequence[float] | np.ndarray, without: Sequence[float] | np.ndarray) -> float:
    """How often a question without an answer has higher null odds than one with an answer; ties
    count half."""
    from sklearn.metrics import roc_auc_score  # here, because it takes seconds to import

    unanswerable = [0] * len(with_answer) + [1] * len(without)
    return float(roc_auc_score(unanswerable, [*with_answer, *without]))
