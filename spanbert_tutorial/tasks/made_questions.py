"""Questions made from plain text by rules: a question consists of words of a sentence and asks for
the words that it leaves out. Chapter: `book/tasks/real_questions`.

The idea is from Lewis, Denoyer and Riedel (2019, "Unsupervised question answering by cloze
translation", arXiv 1906.04980); the rules are our own and much simpler. Nobody checks the
questions; they teach a model to find text that shares words with a question.
"""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question
from spanbert_tutorial.tasks.squad_negatives import SMALL_WORDS, WORD, stretches
from spanbert_tutorial.text.sentences import Document

MAX_WORDS = 110  # of a context
MIN_WORDS = 8  # of a sentence with a question
# The share of the other words of a sentence that a question keeps, and about how many at most. Easy
# questions, for the start of training, keep nearly all of them.
USUAL = (0.6, 12)
EASY = (0.95, 30)
NAMES = 0.7  # share of the questions that ask for a name or a number, where the sentence has one
YEAR = re.compile(r"\b(1\d|20)\d\ds?\b")
ASKING = {
    "year": ["When", "In what year"],
    "number": ["How many", "How much", "What"],
    "name": ["Who", "What", "Where", "Which"],
    "": ["What", "How", "Why", "Which"],
}


def made_questions(
    documents: Iterable[Document], seed: int = 0, easy: bool = False
) -> Iterator[Question]:
    """One question on each of at most four random passages of each document. easy: the questions
    keep nearly all the other words of their sentences."""
    for number, document in enumerate(documents):
        rng = np.random.default_rng([seed, number])
        passages = [part for part in passages_of(document) if any(map(long_enough, part))]
        for part in rng.permutation(len(passages))[:4]:
            sentences = passages[part]
            chosen = int(rng.choice(np.flatnonzero([*map(long_enough, sentences)])))
            answer, start, kind = answer_in(sentences[chosen], rng)
            others = sentences[chosen][:start], sentences[chosen][start + len(answer) :]
            question = question_words(*others, kind, rng, *(EASY if easy else USUAL))
            gold = GoldAnswer(answer, start + sum(len(one) + 1 for one in sentences[:chosen]))
            names = f"made-{number}-{part}", question, " ".join(sentences), f"document {number}"
            yield Question(*names, (gold,))


def passages_of(document: Document) -> Iterator[list[str]]:
    """Runs of whole sentences of at most MAX_WORDS words together, without longer sentences."""
    run: list[str] = []
    for sentence in document:
        if len(" ".join([*run, sentence]).split()) > MAX_WORDS:
            yield run
            run = []
        if len(sentence.split()) <= MAX_WORDS:
            run.append(sentence)
    yield run


def long_enough(sentence: str) -> bool:
    """Whether a sentence has enough words for a question and an answer."""
    return len(WORD.findall(sentence)) >= MIN_WORDS


def answer_in(sentence: str, rng: np.random.Generator) -> tuple[str, int, str]:
    """(text, index of its first character, kind) of an answer: mostly a run of names or numbers,
    else one to four words that neither begin nor end with a small word. kind: one of `ASKING`."""
    runs = stretches(sentence)
    if runs and rng.random() < NAMES:
        text, kinds, start = runs[rng.integers(len(runs))]
        return text, start, "year" if YEAR.search(text) else kinds.split()[-1]
    words = list(WORD.finditer(sentence))
    large = [i for i, word in enumerate(words) if word[0].lower() not in SMALL_WORDS] or [0]
    first = rng.choice(large)
    max_words = rng.integers(1, 5)
    last = max(i for i in large if i < first + max_words)
    start = words[first].start()
    return sentence[start : words[last].end()], start, ""


def question_words(
    before: str, after: str, kind: str, rng: np.random.Generator, kept: float, max_words: int
) -> str:
    """A question word for the kind, then a random part of the words before and after the answer (the
    share `kept`, about `max_words` at most); half of the time those after it first."""
    parts = (after, before) if rng.random() < 0.5 else (before, after)
    others = [word for part in parts for word in WORD.findall(part)]
    share = min(kept, max_words / max(len(others), 1))
    question_word = str(rng.choice(ASKING[kind]))
    words = [word for word in others if rng.random() < share]
    return " ".join([question_word, *words]) + "?"
