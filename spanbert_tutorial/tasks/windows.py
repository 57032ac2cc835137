"""A question and a long context as several inputs, and the answer out of their scores. Chapter:
`book/tasks/question_answering`.

Sources: BERT §4.2 and §4.3 and its released code (windows, maximum context), SpanBERT's released
code (the null score is the least over the windows). NumPy only; m context tokens, n positions of an
input.
"""

import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError, check_text

MOST_QUESTION_PIECES = 64


@dataclass(frozen=True)
class Encoded:
    """Tokens of a question [q] and of its context [m], and where each context token stands: offsets
    int [m,2]."""

    question: np.ndarray
    context: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Window:
    """One input: [CLS] question [SEP] context tokens `start` to `end` [SEP]. first: position of the
    first of them.

    central: bool [end - start], whether this window is the one that shows a token with the most
    context around it.
    """

    ids: np.ndarray
    segments: np.ndarray
    start: int
    end: int
    first: int
    central: np.ndarray


def encode(wordpiece: WordPiece, question: str, context: str) -> Encoded:
    """Raises InputError when question or context hold no token or half a character; a long question
    keeps its first 64 tokens."""
    check_text("the question", question)
    check_text("the context", context)
    tokens, (ids, offsets) = (
        wordpiece.encode(question)[:MOST_QUESTION_PIECES],
        wordpiece.encode_with_offsets(context),
    )
    for name, found in (("question", tokens), ("context", ids)):
        if not len(found):
            raise InputError(f"the {name} is empty: write at least one word.")
    for token in offsets if wordpiece.strip_accents else ():
        while unicodedata.category(context[token[1] : token[1] + 1] or " ") == "Mn":
            token[1] += 1  # an accent that was taken off still belongs to its letter
    return Encoded(tokens, ids, offsets)


def window_ranges(tokens: int, room: int, doc_stride: int) -> list[tuple[int, int]]:
    """Ranges of at most `room` tokens, each `doc_stride` after the one before, until all `tokens` are
    covered."""
    if room < 1 or doc_stride < 1:
        raise InputError(
            f"windows of {room} context pieces every {doc_stride}: give at least one piece and a "
            f"stride of 1."
        )
    step = min(doc_stride, room)  # or tokens between two windows would be lost
    count = 1 + max(0, math.ceil((tokens - room) / step))
    return [(number * step, min(number * step + room, tokens)) for number in range(count)]


def central_windows(ranges: list[tuple[int, int]], tokens: int) -> np.ndarray:
    """For each token the number of the window that shows the most context on its poorer side, int
    [m].

    Of two that show as much, the longer one wins, then the first (BERT's released code).
    """
    best = np.full(tokens, -1.0)
    winner = np.zeros(tokens, dtype=int)
    for number, (start, end) in enumerate(ranges):
        place = np.arange(start, end)
        context = np.minimum(place - start, end - 1 - place) + 0.01 * (end - start)
        better = context > best[start:end]
        winner[start:end][better], best[start:end][better] = number, context[better]
    return winner


def windows(
    encoded: Encoded, wordpiece: WordPiece, max_length: int, doc_stride: int
) -> list[Window]:
    """The inputs of a question, each of at most `max_length` positions."""
    room = max_length - len(encoded.question) - 3
    if room < 1:
        raise InputError(
            f"a question of {len(encoded.question)} pieces leaves no room for the context in "
            f"{max_length} "
            "positions: ask a shorter question, or give a longer length."
        )
    ranges = window_ranges(len(encoded.context), room, doc_stride)
    winner = central_windows(ranges, len(encoded.context))
    made = []
    for number, (start, end) in enumerate(ranges):
        ids, segments = frame(
            encoded.question,
            encoded.context[start:end],
            cls_id=wordpiece.cls_id,
            sep_id=wordpiece.sep_id,
        )
        first = len(encoded.question) + 2
        made.append(Window(ids, segments, start, end, first, winner[start:end] == number))
    return made


# --- from scores to an answer -------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """Context tokens first … last, and the score S_first + E_last."""

    first: int
    last: int
    score: float


def best_spans(
    window: Window, starts: np.ndarray, ends: np.ndarray, most: int, longest: int
) -> list[Candidate]:
    """The `most` best spans of one window, best first. starts, ends: scores of its positions, float
    [n].

    A span lies in the context, starts at a token that is central here, and has at most `longest`
    tokens.
    """
    here = slice(window.first, window.first + window.end - window.start)
    scores = starts[here][:, None] + ends[here][None]  # [m, m]
    size = np.arange(len(scores))
    span_length = size[None] - size[:, None]  # of span i … j, less 1
    allowed = (span_length >= 0) & (span_length < longest) & window.central[:, None]
    scores = np.where(allowed, scores, -np.inf).ravel()
    order = np.argsort(-scores, kind="stable")[:most]
    pairs = zip(*np.divmod(order, len(size)), scores[order], strict=True)
    return [
        Candidate(int(i) + window.start, int(j) + window.start, float(score))
        for i, j, score in pairs
        if np.isfinite(score)
    ]


def decode(
    made: list[Window],
    scores: Iterator[tuple[np.ndarray, np.ndarray]],
    most: int = 20,
    longest: int = 30,
) -> tuple[list[Candidate], float]:
    """The `most` best spans over all windows, best first, and the null score: the least S + E of
    [CLS] of a window.

    The least, because one window that sees an answer is enough, and the others rightly see none.
    scores: for each window S and E at its positions, float [n].
    """
    found: list[Candidate] = []
    null = np.inf
    for window, (starts, ends) in zip(made, scores, strict=True):
        found += best_spans(window, starts, ends, most, longest)
        null = min(null, float(starts[0] + ends[0]))
    return sorted(found, key=lambda span: -span.score)[:most], null
