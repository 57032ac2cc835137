"""Questions made from plain text by rule: words of a sentence ask for a stretch that they leave
out. Chapter: `book/tasks/real_questions`.

The idea is that of Lewis, Denoyer and Riedel (2019, "Unsupervised question answering by cloze
translation", arXiv 1906.04980); the rules are our own and much simpler. Nobody reads the result; it
teaches to find what shares words with a question.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from spanbert_tutorial.tasks.squad_files import GoldAnswer, Question
from spanbert_tutorial.tasks.squad_negatives import SMALL_WORDS, WORD, stretches
from spanbert_tutorial.text.sentences import Document

MOST_WORDS, FEWEST_WORDS = 110, 8  # of a context; of a sentence that is asked about
# Of the other words of a sentence its question keeps this share, about so many at most. An easy
# question, for the beginning, keeps nearly all of them.
USUAL = (0.6, 12)
EASY = (0.95, 30)
NAMES = 0.7  # of the questions ask for a name or a number, where the sentence has one
YEAR = re.compile(r"\b(1\d|20)\d\ds?\b")
ASKING = {
    "year": ["When", "In what year"],
    "number": ["How many", "How much", "What"],
    "name": ["Who", "What", "Where", "Which"],
    "": ["What", "How", "Why", "Which"],
}


def made_questions(
    documents: Iterable[Document], seed: int = 0, per_document: int = 4, easy: bool = False
) -> Iterator[Question]:
    """Questions on at most `per_document` passages of each document, drawn at random, one on each.
    easy: they keep nearly all the other words of their sentences."""
    for number, document in enumerate(documents):
        rng = np.random.default_rng([seed, number])
        passages = [part for part in passages_of(document) if any(map(long_enough, part))]
        for part in rng.permutation(len(passages))[:per_document]:
            yield asked_about(
                passages[part], f"document {number}", f"made-{number}-{part}", rng, easy
            )


def passages_of(document: Document, most: int = MOST_WORDS) -> Iterator[list[str]]:
    """Runs of whole sentences of at most `most` words in all; a longer sentence is left out."""
    run: list[str] = []
    for sentence in document:
        if len(" ".join([*run, sentence]).split()) > most:
            yield run
            run = []
        if len(sentence.split()) <= most:
            run.append(sentence)
    yield run


def long_enough(sentence: str) -> bool:
    """Whether enough words are left to ask with."""
    return len(WORD.findall(sentence)) >= FEWEST_WORDS


def asked_about(
    sentences: Sequence[str], title: str, name: str, rng: np.random.Generator, easy: bool = False
) -> Question:
    """A question on one of the sentences that are long enough; the context is all of them."""
    which = int(rng.choice([i for i, sentence in enumerate(sentences) if long_enough(sentence)]))
    text, place, kind = hidden_stretch(sentences[which], rng)
    start = len("".join(f"{sentence} " for sentence in sentences[:which])) + place
    question = question_words(sentences[which], text, place, kind, rng, *(EASY if easy else USUAL))
    return Question(name, question, " ".join(sentences), title, (GoldAnswer(text, start),))


def hidden_stretch(sentence: str, rng: np.random.Generator) -> tuple[str, int, str]:
    """(text, place of its first character, kind) of what is asked for: mostly a run of names or
    numbers, else one to four words that neither begin nor end with a small one. kind: one of
    `ASKING`."""
    runs = stretches(sentence)
    if runs and rng.random() < NAMES:
        text, kinds, place = runs[rng.integers(len(runs))]
        return text, place, "year" if YEAR.search(text) else kinds.split()[-1]
    words = list(WORD.finditer(sentence))
    large = [i for i, word in enumerate(words) if word[0].lower() not in SMALL_WORDS] or [0]
    first = rng.choice(large)
    most = rng.integers(1, 5)
    last = max(i for i in large if i < first + most)
    return sentence[words[first].start() : words[last].end()], words[first].start(), ""


def question_words(
    sentence: str,
    text: str,
    place: int,
    kind: str,
    rng: np.random.Generator,
    kept: float,
    most: int,
) -> str:
    """A question word for the kind, then a part of the other words (the share `kept`, about `most`
    at most); half of the time those after the text first."""
    before, after = (
        WORD.findall(part) for part in (sentence[:place], sentence[place + len(text) :])
    )
    others = after + before if rng.random() < 0.5 else before + after
    share = min(kept, most / max(len(others), 1))
    return (
        " ".join(
            [str(rng.choice(ASKING[kind])), *(word for word in others if rng.random() < share)]
        )
        + "?"
    )
