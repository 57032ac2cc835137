"""Baselines that learn nothing, and questions without an answer made by program. Chapter:
`book/tasks/squad`.

Two ways to make them, after SQuAD 2.0 (Rajpurkar and others, 2018): pick another context for a
question by the words that both share, or change a word of the question by rule. The rules and the
list of opposites are our own.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks.squad import GoldAnswer, Question
from spanbert_tutorial.text.sentences import split_sentences

QUESTION_WORDS = frozenset("who whom whose what which when where why how".split())
SMALL_WORDS = QUESTION_WORDS | frozenset(
    "a an the this that these those it its he his she her they their them we our you your i my "
    "there here and or but "
    "so if not no of in on at to for from by with as than into over under after before between "
    "during until since "
    "through about against without is are was were be been being do does did has have had can "
    "could will would may "
    "might must should one some many much most more all both each every other another such only "
    "also then today later "
    "once because while although".split()
)
COUNTING_WORDS = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty "
    "forty fifty".split()
)
NUMBER_WORDS = COUNTING_WORDS | frozenset(
    "hundred hundreds thousand thousands million billion half third quarter fifth century "
    "centuries".split()
)
WORD = re.compile(r"\w+(?:[-.,'’/]\w+)*")
NUMBER_ASKED = re.compile(
    r"\bwhen\b|\bhow (many|much|long|old|far|high|deep)\b|\b(year|century|date|month)\b"
)
NAME_ASKED = re.compile(
    r"\b(who|whom|whose|where)\b|\b(what|which) (company|country|city|river|king|person|team)\b"
)
OPPOSITES = tuple(
    tuple(pair.split())
    for pair in (
        "first last",
        "before after",
        "begin end",
        "began ended",
        "start stop",
        "started stopped",
        "open close",
        "opened closed",
        "largest smallest",
        "larger smaller",
        "large small",
        "big little",
        "longest shortest",
        "longer shorter",
        "taller shorter",
        "highest lowest",
        "higher lower",
        "high low",
        "most least",
        "more less",
        "oldest youngest",
        "older younger",
        "new old",
        "early late",
        "earlier later",
        "north south",
        "east west",
        "northern southern",
        "eastern western",
        "cold hot",
        "colder hotter",
        "warm cool",
        "white black",
        "modern medieval",
        "present former",
        "above below",
        "inside outside",
        "enter leave",
        "entered left",
        "lose win",
        "lost won",
        "gain lose",
        "winter summer",
        "wet dry",
        "rise fall",
        "rose fell",
        "rising falling",
        "drop increase",
        "upright slanted",
        "famous unknown",
        "unpleasant pleasant",
        "thirsty rested",
        "slow fast",
        "frozen boiled",
        "dried fresh",
        "bring remove",
        "discovered forgotten",
        "built destroyed",
        "found lost",
        "help hinder",
        "helped hindered",
        "honoured mocked",
        "damaged repaired",
        "like dislike",
        "liked disliked",
        "with without",
        "always never",
        "not always",
        "legal illegal",
        "correct wrong",
        "adopted rejected",
        "same opposite",
        "near far",
        "closest farthest",
        "disadvantage advantage",
        "strong weak",
        "native foreign",
        "ruined saved",
    )
)


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation around them and without 's."""
    return [without_s(word) for word in WORD.findall(text.lower())]


def without_s(word: str) -> str:
    """The word without the 's of possession."""
    return word.removesuffix("'s").removesuffix("’s")


@dataclass(frozen=True)
class Guess:
    """An answer ("" where none was found) and how strongly the question seems to have none: the
    number that a threshold is compared with, as the null odds of a model are."""

    text: str
    null_odds: float


class WordWeights:
    """How telling a word is: idf = ln((1 + N) / (1 + the number of the N texts with it)). Question
    words weigh 0."""

    def __init__(self, texts: Sequence[str]):
        self.count = len(texts)
        self.texts_with = Counter(word for text in texts for word in set(words(text)))

    def weight(self, word: str) -> float:
        """idf of one word in lower case."""
        return (
            0.0
            if word in QUESTION_WORDS
            else math.log((1 + self.count) / (1 + self.texts_with[word]))
        )

    def overlap(self, question: str, text: str) -> float:
        """Which share of the weight of a question's words stands in the text, 0 to 1."""
        there = set(words(text))
        asked = set(words(question))
        whole = sum(self.weight(word) for word in sorted(asked))
        return sum(self.weight(word) for word in sorted(asked & there)) / whole if whole else 0.0


# --- guessing -----------------------------------------------------------------------


def kind_of(word: str) -> str:
    """`number`, `name` (it begins with a capital and is no small word) or ""."""
    if any(character.isdigit() for character in word) or word.lower() in NUMBER_WORDS:
        return "number"
    return "name" if word[0].isupper() and word.lower() not in SMALL_WORDS else ""


def stretches(text: str) -> list[tuple[str, str, int]]:
    """(stretch, kinds, place of its first character) of the longest runs of names and numbers with
    single spaces between; kinds as "name number"."""
    found: list[tuple[int, int, set[str]]] = []
    for match in WORD.finditer(text):
        kind = kind_of(match[0])
        end = match.start() + len(without_s(match[0]))
        if kind and found and text[found[-1][1] : match.start()] == " ":
            first, _, kinds = found.pop()
            found.append((first, end, kinds | {kind}))
        elif kind:
            found.append((match.start(), end, {kind}))
    return [(text[first:last], " ".join(sorted(kinds)), first) for first, last, kinds in found]


def by_overlap(question: Question, weights: WordWeights) -> list[tuple[float, str]]:
    """(overlap, sentence) of the context's sentences, the largest overlap first."""
    sentences = split_sentences(question.context)
    return sorted(
        ((weights.overlap(question.question, s), s) for s in sentences), key=lambda pair: -pair[0]
    )


def new_stretches(question: Question, sentence: str) -> Iterator[tuple[str, str]]:
    """The stretches of a sentence that share no word with the question."""
    asked = set(words(question.question))
    return ((text, kinds) for text, kinds, _ in stretches(sentence) if not asked & set(words(text)))


def lexical_guess(question: Question, weights: WordWeights) -> Guess:
    """The longest new stretch of the sentence with the largest overlap. Null odds: 0 minus that
    overlap."""
    share, sentence = by_overlap(question, weights)[0]
    texts = [text for text, _ in new_stretches(question, sentence)]
    return Guess(max(texts, key=len, default=""), -share)


def wanted_kind(question: str) -> str:
    """Which kind of stretch the question word asks for: `name`, `number`, or "" for any."""
    if NUMBER_ASKED.search(question.lower()):
        return "number"
    return "name" if NAME_ASKED.search(question.lower()) else ""


def type_guess(question: Question, weights: WordWeights) -> Guess:
    """The first new stretch of the kind asked for, from the largest overlap on. Null odds: 0, or 1
    without one."""
    wanted = wanted_kind(question.question)
    for _, sentence in by_overlap(question, weights):
        for text, kinds in new_stretches(question, sentence):
            if wanted in kinds:
                return Guess(text, 0.0)
    return Guess("", 1.0)


# --- making questions without an answer ---------------------------------------------


def has_an_answer_in(question: Question, context: str) -> bool:
    """Whether the text of an answer stands in the context, in any case of letters."""
    return any(answer.text.lower() in context.lower() for answer in question.answers)


def picked(
    questions: Sequence[Question], weights: WordWeights, same_article: bool
) -> list[Question]:
    """Each answerable question on the context of the largest overlap, out of the other contexts of
    its article or of the contexts of the other articles; contexts in which an answer stands are
    passed over."""
    contexts = list(dict.fromkeys((q.title, q.context) for q in questions))
    made = []
    for q in questions:
        choices = [
            context
            for title, context in contexts
            if (title == q.title) == same_article
            and context != q.context
            and not has_an_answer_in(q, context)
        ]
        if q.answers and choices:
            context = max(choices, key=lambda text: weights.overlap(q.question, text))
            made.append(unanswerable(q, q.question, context, "picked"))
    return made


def unanswerable(
    source: Question,
    question: str,
    context: str,
    category: str,
    plausible: tuple[GoldAnswer, ...] = (),
) -> Question:
    """A made question; its id names its source."""
    return replace(
        source,
        id=f"{source.id}-{category}",
        question=question,
        context=context,
        answers=(),
        plausible=plausible,
        category=category,
    )


def changed(questions: Sequence[Question], rng: np.random.Generator) -> list[Question]:
    """Each answerable question after each rule that fits it; the old answers are plausible now, and
    wrong.

    Nobody reads the result: a rule may leave a question that the context answers all the same.
    """
    pool = names_and_numbers(questions)
    made = []
    for q in questions:
        for rule in RULES if q.answers else ():
            other = RULES[rule](q.question, pool, rng)
            if other != q.question:
                made.append(unanswerable(q, other, q.context, rule, q.answers))
    return made


def names_and_numbers(questions: Sequence[Question]) -> dict[str, list[str]]:
    """Names and numbers of one or two words in the contexts, but for those at the beginning of a
    sentence: there any word has a capital."""
    sentences = {
        s
        for context in dict.fromkeys(q.context for q in questions)
        for s in split_sentences(context)
    }
    found = {(text, kinds) for s in sentences for text, kinds, place in stretches(s) if place > 0}
    return {
        kind: sorted(text for text, kinds in found if kinds == kind and len(text.split()) < 3)
        for kind in ("name", "number")
    }


def opposite(question: str, pool: Mapping[str, list[str]], rng: np.random.Generator) -> str:
    """The first word that has an opposite in our list is exchanged for it."""
    exchange = {a: b for one, other in reversed(OPPOSITES) for a, b in ((one, other), (other, one))}
    for match in WORD.finditer(question):
        if match[0] in exchange:
            return question[: match.start()] + exchange[match[0]] + question[match.end() :]
    return question


def other_stretch(
    question: str, kind: str, pool: Mapping[str, list[str]], rng: np.random.Generator
) -> str:
    """The first stretch of the kind, not at the beginning, is exchanged for one of the pool that
    looks like it."""
    for text, kinds, place in stretches(question):
        alike = [other for other in pool[kind] if shape(other) == shape(text) and other != text]
        if kinds == kind and place > 0 and alike:
            return (
                question[:place] + alike[rng.integers(len(alike))] + question[place + len(text) :]
            )
    return question


def shape(text: str) -> list[str]:
    """What two stretches must share to be exchanged: 1967 is 9999, two is a counting word, a name
    is x."""
    return [
        re.sub(r"\d", "9", word)
        if word[0].isdigit()
        else "two"
        if word in COUNTING_WORDS
        else "x"
        if kind_of(word) == "name"
        else word
        for word in text.split()
    ]


def other_name(question: str, pool: Mapping[str, list[str]], rng: np.random.Generator) -> str:
    """The first name, not at the beginning, is exchanged for another name with as many words."""
    return other_stretch(question, "name", pool, rng)


def other_number(question: str, pool: Mapping[str, list[str]], rng: np.random.Generator) -> str:
    """The first number, not at the beginning, is exchanged for another of the same form: 1967 for
    1845."""
    return other_stretch(question, "number", pool, rng)


RULES = {"opposite": opposite, "other name": other_name, "other number": other_number}


# --- comparing ----------------------------------------------------------------------


def auc(with_answer: Sequence[float], without: Sequence[float]) -> float:
    """How often a question without an answer has the larger null odds than one with; equal ones
    count half.

    Raises InputError when one side is empty.
    """
    if not len(with_answer) or not len(without):
        raise InputError("the AUC compares two groups: give at least one question of each.")
    difference = np.subtract.outer(
        np.asarray(without, dtype=float), np.asarray(with_answer, dtype=float)
    )
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())
