"""A question and a long context as several inputs, and the answer from their scores. Chapter:
`book/tasks/question_answering`.

Sources: BERT §4.2 and §4.3 and its released code (windows, maximum context), SpanBERT's released
code (the null score is the minimum over the windows). NumPy only. Shapes: q question tokens, m
context tokens, n positions of an input.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError, check_text

MAX_QUESTION_TOKENS = 64


@dataclass(frozen=True)
class Encoded:
    """Token ids of a question [q] and of its context [m]; offsets: start and end of each context
    token in characters, int [m,2]."""

    question: np.ndarray
    context: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Window:
    """One input: [CLS] question [SEP] context tokens `start` to `end` (exclusive) [SEP]. first:
    position of context token `start`.

    central: bool [end - start], whether of all windows this one has the most context around the
    token.
    """

    ids: np.ndarray
    segments: np.ndarray
    start: int
    end: int
    first: int
    central: np.ndarray


def encode(wordpiece: WordPiece, question: str, context: str) -> Encoded:
    """Encodes question and context; a long question keeps its first MAX_QUESTION_TOKENS tokens.
    Raises InputError for a text without a token or with half a character."""
    check_text("the question", question)
    check_text("the context", context)
    question_ids = wordpiece.encode(question)[:MAX_QUESTION_TOKENS]
    context_ids, offsets = wordpiece.encode_with_offsets(context)
    for name, ids in (("question", question_ids), ("context", context_ids)):
        if not len(ids):
            raise InputError(f"the {name} is empty: write at least one word.")
    if wordpiece.strip_accents:
        for offset in offsets:
            while unicodedata.category(context[offset[1] : offset[1] + 1] or " ") == "Mn":
                offset[1] += 1  # a stripped accent still belongs to its letter
    return Encoded(question_ids, context_ids, offsets)


def window_ranges(tokens: int, room: int, doc_stride: int) -> list[tuple[int, int]]:
    """(start, end) of ranges of at most `room` tokens, each starting `doc_stride` after the one
    before, until all `tokens` are covered."""
    if room < 1 or doc_stride < 1:
        raise InputError(
            f"windows of {room} context tokens every {doc_stride}: give at least one token and a "
            "stride of 1."
        )
    step = min(doc_stride, room)  # or tokens between two windows would be lost
    count = 1 + max(0, math.ceil((tokens - room) / step))
    return [(number * step, min(number * step + room, tokens)) for number in range(count)]


def central_windows(ranges: list[tuple[int, int]], tokens: int) -> np.ndarray:
    """For each token the number of the window with the most context on the side that has less of
    it, int [m].

    Of windows that tie, the longer one wins, then the first (BERT's released code).
    """
    best = np.full(tokens, -1.0)
    winner = np.zeros(tokens, dtype=int)
    for number, (start, end) in enumerate(ranges):
        token = np.arange(start, end)
        context = np.minimum(token - start, end - 1 - token) + 0.01 * (end - start)
        better = context > best[start:end]
        winner[start:end][better] = number
        best[start:end][better] = context[better]
    return winner


def windows(
    encoded: Encoded, wordpiece: WordPiece, max_length: int, doc_stride: int
) -> list[Window]:
    """The inputs of a question, each of at most `max_length` positions and `doc_stride` context
    tokens after the one before. Raises InputError for a question that leaves no room for the
    context."""
    room = max_length - len(encoded.question) - 3  # beside [CLS] and two [SEP]
    if room < 1:
        raise InputError(
            f"a question of {len(encoded.question)} tokens leaves no room for the context in "
            f"{max_length} positions: ask a shorter question, or give a longer length."
        )
    ranges = window_ranges(len(encoded.context), room, doc_stride)
    winner = central_windows(ranges, len(encoded.context))
    first = len(encoded.question) + 2
    inputs = []
    for number, (start, end) in enumerate(ranges):
        ids, segments = frame(
            encoded.question,
            encoded.context[start:end],
            cls_id=wordpiece.cls_id,
            sep_id=wordpiece.sep_id,
        )
        inputs.append(Window(ids, segments, start, end, first, winner[start:end] == number))
    return inputs


# --- from scores to an answer -------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """The span of context tokens `first` to `last` (inclusive), and its score S_first + E_last."""

    first: int
    last: int
    score: float


def best_spans(
    window: Window,
    starts: np.ndarray,
    ends: np.ndarray,
    n_best_size: int,
    max_answer_length: int,
) -> list[Candidate]:
    """The `n_best_size` best spans of one window, best first. starts, ends: scores of its
    positions, float [n].

    A span is inside the context, starts at a token that is central in this window, and has at most
    `max_answer_length` tokens.
    """
    context = slice(window.first, window.first + window.end - window.start)
    scores = starts[context][:, None] + ends[context][None]  # [m, m]
    index = np.arange(len(scores))
    distance = index[None] - index[:, None]  # from the first to the last token of a span
    allowed = (distance >= 0) & (distance < max_answer_length) & window.central[:, None]
    scores = np.where(allowed, scores, -np.inf).ravel()
    order = np.argsort(-scores, kind="stable")[:n_best_size]
    pairs = zip(*np.divmod(order, len(index)), scores[order], strict=True)
    return [
        Candidate(int(i) + window.start, int(j) + window.start, float(score))
        for i, j, score in pairs
        if np.isfinite(score)
    ]


def decode(
    windows: Sequence[Window],
    scores: Iterator[tuple[np.ndarray, np.ndarray]],
    n_best_size: int = 20,
    max_answer_length: int = 30,
) -> tuple[list[Candidate], float]:
    """The `n_best_size` best spans over all windows of a question, best first, and the null score:
    the minimum over the windows of S + E of [CLS].

    The minimum, because the answer is in only some of the windows, and the others are right to find
    none. scores: for each window S and E at its positions, float [n].
    """
    spans: list[Candidate] = []
    null_score = np.inf
    for window, (starts, ends) in zip(windows, scores, strict=True):
        spans += best_spans(window, starts, ends, n_best_size, max_answer_length)
        null_score = min(null_score, float(starts[0] + ends[0]))
    return sorted(spans, key=lambda span: -span.score)[:n_best_size], null_score
