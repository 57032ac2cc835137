"""A question and a long context as several inputs, and the answer from their scores. Chapter:
`book/tasks/question_answering`.

Sources: BERT §4.2 and §4.3 and its released code (windows, maximum context), SpanBERT's released
code (the null score is the minimum over the windows). NumPy only. Shapes: q question tokens, m
context tokens, n positions of an input.
"""

import math
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.bert.inputs import frame
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import check_text, require

MAX_QUESTION_TOKENS = 64


@dataclass(frozen=True)
class Encoded:
    """A question [q] and its context [m] as token ids.

    offsets: start and end of each context token in characters, int [m,2].
    """

    question: np.ndarray
    context: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Window:
    """One input: [CLS] question [SEP] part of the context [SEP].

    start, end: the context tokens, end exclusive. first: position of
    context token `start`. central: bool [end - start], whether of all
    windows this one has the most context around the token.
    """

    ids: np.ndarray
    segments: np.ndarray
    start: int
    end: int
    first: int
    central: np.ndarray


def encode(wordpiece: WordPiece, question: str, context: str) -> Encoded:
    """Question and context as tokens.

    A long question keeps its first MAX_QUESTION_TOKENS tokens, as in
    BERT's released code, and a warning tells of the first one. Raises
    InputError for a text without a token or with half a character.
    """
    check_text("the question", question)
    check_text("the context", context)
    question_ids = wordpiece.encode(question)
    if len(question_ids) > MAX_QUESTION_TOKENS:
        told = f"of a question only the first {MAX_QUESTION_TOKENS} tokens are read"
        warnings.warn(f"{told}: ask shorter ones.", stacklevel=2)
        question_ids = question_ids[:MAX_QUESTION_TOKENS]
    context_ids, offsets = wordpiece.encode_with_offsets(context)
    for name, ids in (("question", question_ids), ("context", context_ids)):
        require(len(ids), f"the {name} is empty: write at least one word.")
    if wordpiece.strip_accents:
        # a stripped accent still belongs to its letter
        kinds = [*map(unicodedata.category, context), ""]
        for offset in offsets:
            while kinds[offset[1]] == "Mn":
                offset[1] += 1
    return Encoded(question_ids, context_ids, offsets)


def window_ranges(tokens: int, room: int, doc_stride: int) -> list[tuple[int, int]]:
    """(start, end) of ranges that together cover all tokens.

    Each has at most `room` tokens and starts `doc_stride` after the one before.
    """
    wrong = f"windows of {room} context tokens every {doc_stride}"
    require(room >= 1 and doc_stride >= 1, f"{wrong}: give more.")
    # or tokens between two windows would be lost
    step = min(doc_stride, room)
    count = 1 + max(0, math.ceil((tokens - room) / step))
    starts = [number * step for number in range(count)]
    return [(start, min(start + room, tokens)) for start in starts]


def central_windows(
    ranges: list[tuple[int, int]],
    tokens: int,
) -> np.ndarray:
    """For each token the window that shows most around it, int [m].

    What counts is the side with less context. Of windows that tie, the
    longer one wins, then the first (BERT's released code).
    """
    best = np.full(tokens, -1.0)
    winner = np.zeros(tokens, dtype=int)
    for number, (start, end) in enumerate(ranges):
        token = np.arange(start, end)
        context = np.minimum(token - start, end - 1 - token)
        context = context + 0.01 * (end - start)
        better = context > best[start:end]
        winner[start:end][better] = number
        best[start:end][better] = context[better]
    return winner


def windows(
    encoded: Encoded, wordpiece: WordPiece, max_length: int, doc_stride: int
) -> list[Window]:
    """The inputs of a question, `doc_stride` tokens apart.

    max_length: of each, in positions. Raises InputError for a question
    that leaves no room for the context.
    """
    question = encoded.question
    room = max_length - len(question) - 3  # [CLS] and two [SEP]
    wrong = f"{len(question)} tokens of a question leave no room for the context in {max_length}"
    require(room >= 1, f"{wrong}: ask a shorter question, or give a longer length.")
    ranges = window_ranges(len(encoded.context), room, doc_stride)
    winner = central_windows(ranges, len(encoded.context))
    special = {"cls_id": wordpiece.cls_id, "sep_id": wordpiece.sep_id}
    inputs = []
    for number, (start, end) in enumerate(ranges):
        framed = frame(question, encoded.context[start:end], **special)
        central = winner[start:end] == number
        inputs.append(Window(*framed, start, end, len(question) + 2, central))
    return inputs


# --- from scores to an answer -------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """Context tokens `first` to `last`, with the score S + E."""

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
    """The best spans of one window, best first.

    A span is inside the context, starts at a token that is central in this window, and has at most
    `max_answer_length` tokens. starts, ends: scores of the window's positions, float [n].
    """
    size = window.end - window.start
    context = slice(window.first, window.first + size)
    scores = starts[context][:, None] + ends[context][None]  # [m, m]
    token = np.arange(size)
    distance = token - token[:, None]  # from first to last token
    allowed = (distance >= 0) & (distance < max_answer_length)
    allowed &= window.central[:, None]
    flat = np.where(allowed, scores, -np.inf).ravel()
    best = np.argsort(-flat, kind="stable")[:n_best_size].tolist()
    found = [(*divmod(one, size), float(flat[one])) for one in best]
    return [
        Candidate(window.start + first, window.start + last, score)
        for first, last, score in found
        if np.isfinite(score)
    ]


def decode(
    windows: Sequence[Window],
    scores: Iterator[tuple[np.ndarray, np.ndarray]],
    n_best_size: int = 20,
    max_answer_length: int = 30,
) -> tuple[list[Candidate], float]:
    """The best spans over all windows, best first; the null score.

    The null score is the minimum over the windows of S + E of [CLS], because the answer is in only
    some of the windows, and the others are right to find none. scores: for each window S and E at
    its positions, float [n].
    """
    limits = n_best_size, max_answer_length
    spans: list[Candidate] = []
    null_score = np.inf
    for window, (starts, ends) in zip(windows, scores, strict=True):
        spans += best_spans(window, starts, ends, *limits)
        null_score = min(null_score, float(starts[0] + ends[0]))
    spans.sort(key=lambda span: -span.score)
    return spans[:n_best_size], null_score
