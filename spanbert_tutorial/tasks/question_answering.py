"""Extractive question answering: a start vector, an end vector, fine-tuning, answering. Chapter:
`book/tasks/question_answering`.

Sources: BERT §4.2, §4.3; SpanBERT §4.1 and appendix B. Windows and decoding: `tasks.windows`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.hooks import with_bar
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError, is_number, require, shown
from spanbert_tutorial.pretraining.checkpoints import (
    check_vocabulary,
    load_head,
    read_facts,
    read_vocabulary,
    write_folder,
)
from spanbert_tutorial.tasks.fine_tuning import Data, FineTuning, check_start, fit, stacked
from spanbert_tutorial.tasks.squad import Question, read  # noqa: F401
from spanbert_tutorial.tasks.squad_files import check_ids
from spanbert_tutorial.tasks.task_checkpoints import read_parts
from spanbert_tutorial.tasks.windows import Candidate, Encoded, Window, decode, encode, windows


class QuestionAnsweringModel(nn.Module):
    """An encoder, a start vector S and an end vector E.

    Position i starts the answer with probability proportional to
    exp(S · x_i), and ends it with exp(E · x_i). `boundaries` holds S
    and E as one linear layer, with a bias each, as the released code.
    """

    def __init__(self, encoder: BertEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.boundaries = nn.Linear(encoder.config.hidden_size, 2)
        initialize(self.boundaries, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """S · x and E · x, [B,n] each; minus infinity at padding."""
        scores = self.boundaries(self.encoder.of(batch)).float()
        padding = ~batch["attention_mask"]
        scores = scores.masked_fill(padding[..., None], -torch.inf)
        return scores[..., 0], scores[..., 1]

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"start", "end": mean cross-entropies in nats, "loss"}."""
        starts, ends = self.scores(batch)
        start = F.cross_entropy(starts, batch["start"])
        end = F.cross_entropy(ends, batch["end"])
        return {"loss": (start + end) / 2, "start": start, "end": end}


# --- fine-tuning --------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionAnsweringSettings(FineTuning):
    """Settings of a run. doc_stride: context tokens from one window to the next. max_answer_length:
    tokens of the longest answer. answers_only: leave out windows that miss their question's answer;
    a model that should recognize questions without an answer needs them."""

    doc_stride: int = 128
    max_answer_length: int = 30
    answers_only: bool = False


# BERT §4.2, §4.3 and SpanBERT appendix B, for base and large. The small models of this book need
# larger and more steps, and begin with short windows around the answers ("short-first", then
# "small" from there).
SMALL = QuestionAnsweringSettings(epochs=1.5, batch_size=8, peak_learning_rate=3e-4, dropout=0.0)
BERT = QuestionAnsweringSettings(epochs=3, peak_learning_rate=5e-5, max_length=384)
PRESETS = {
    "short-first": replace(SMALL, batch_size=16, max_length=96, doc_stride=64, answers_only=True),
    "small": SMALL,
    "bert-squad1": BERT,
    "bert-squad2": replace(BERT, epochs=2, batch_size=48),
    "spanbert": QuestionAnsweringSettings(epochs=4, peak_learning_rate=2e-5, max_length=512),
}
Pairs = Iterable[tuple[str, str]]  # (question, context)
Scores = tuple[np.ndarray, np.ndarray]  # S and E at the positions of a window, float [n] each
NO_ANSWER = (0, 0)  # start and end are both [CLS]


class QuestionAnsweringData(Data):
    """Windows of questions with the positions of their first answer; without the whole answer, both
    are that of [CLS], 0. Warnings tell of answers that are complete in no window, and of longer ones
    than the model may give."""

    target_field = "start"

    def __init__(
        self,
        questions: Iterable[Question],
        wordpiece: WordPiece,
        settings: QuestionAnsweringSettings,
    ) -> None:
        found: list[tuple[Window, tuple[int, int]]] = []
        answers = []
        lost = 0
        for question in questions:
            try:
                encoded = encode(wordpiece, question.question, question.context)
                all_windows = windows(encoded, wordpiece, settings.max_length, settings.doc_stride)
            except InputError as error:
                raise InputError(f"question {question.id}: {error}") from None
            answers.append(answer_tokens(encoded, question))
            pairs = [(window, target(window, answers[-1])) for window in all_windows]
            holding = [pair for pair in pairs if pair[1] != NO_ANSWER]
            lost += bool(question.answers) and not holding
            found += holding if settings.answers_only and question.answers else pairs
        if lost:
            count = "1 answer is" if lost == 1 else f"{lost:,} answers are"
            told = f"{count} complete in no window of {settings.max_length} positions"
            how = "left out" if settings.answers_only else "trained as no answer"
            mend = "give a greater --max-length or a smaller --doc-stride"
            warnings.warn(f"{told} ({how}): {mend}.", stacklevel=3)
        if told := never_given(answers, settings.max_answer_length):
            warnings.warn(told, stacklevel=3)
        targets = np.array([positions for _, positions in found])
        super().__init__([window for window, _ in found], targets, wordpiece, settings)

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """start and end are int64 [B]."""
        start, end = torch.from_numpy(self.targets[rows]).T
        return self.padded(rows) | {"start": start, "end": end}


def answer_tokens(
    encoded: Encoded,
    question: Question,
) -> tuple[int, int] | None:
    """First and last context token of the first answer, or None."""
    if not question.answers:
        return None
    begin = question.answers[0].start
    end = begin + len(question.answers[0].text)
    starts, ends = encoded.offsets.T
    inside = np.flatnonzero((starts < end) & (ends > begin))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def never_given(answers: Iterable[tuple[int, int] | None], limit: int) -> str:
    """What to say of answers (first and last token) of more tokens than the limit, or ""."""
    count = sum(answer is not None and answer[1] - answer[0] >= limit for answer in answers)
    told = f"{'answer is' if count == 1 else 'answers are'} longer than {limit} tokens"
    mend = "give a greater --max-answer-length"
    return f"{count:,} {told} and can never be given: {mend}." if count else ""


def target(
    window: Window,
    tokens: tuple[int, int] | None,
) -> tuple[int, int]:
    """Where a window has the whole answer, or else NO_ANSWER."""
    if tokens is None:
        return NO_ANSWER
    first, last = tokens
    if first < window.start or last >= window.end:
        return NO_ANSWER
    shift = window.first - window.start
    return first + shift, last + shift


def fine_tune(
    start: BertEncoder | QuestionAnsweringModel,
    wordpiece: WordPiece,
    questions: Sequence[Question] | QuestionAnsweringData,
    settings: QuestionAnsweringSettings,
    snapshots: Snapshots | None = None,
) -> tuple["QuestionAnswerer", History]:
    """Trains `start` (in place) on questions or their windows: an encoder with a new head, or a
    model with the head that it has. Returns the answerer, on the device where it was, and the
    history of the losses."""
    encoder = start if isinstance(start, BertEncoder) else start.encoder
    check_start(encoder, wordpiece, settings)
    data = questions
    if not isinstance(data, QuestionAnsweringData):
        data = QuestionAnsweringData(with_bar(data, "question"), wordpiece, settings)

    def make_model() -> QuestionAnsweringModel:
        return QuestionAnsweringModel(start) if isinstance(start, BertEncoder) else start

    model, history = fit(make_model, data, settings, snapshots)
    limits = settings.max_length, settings.doc_stride, settings.max_answer_length
    return QuestionAnswerer(model, wordpiece, *limits), history


# --- answering ----------------------------------------------------------------------

HEAD = "qa_outputs."  # of the names of the head's weights, as in transformers
# config.json → QuestionAnswerer
CONFIG_KEYS = {
    "length": "max_length",
    "stride": "doc_stride",
    "longest_answer": "max_answer_length",
}


def model_with_head(source: str | Path) -> QuestionAnsweringModel | None:
    """A checkpoint's encoder with its question answering head; None where there is no such head.
    Raises InputError for a head that does not fit."""
    encoder, head = read_parts(source, HEAD)
    if not head:
        return None
    model = QuestionAnsweringModel(encoder)
    load_head(model, {f"boundaries.{name}": weight for name, weight in head.items()}, source)
    return model


@dataclass(frozen=True)
class Answer:
    """text = context[start:end], "" when there is no answer. score: S + E of the best span;
    null_score: S + E of [CLS]. n_best: the best answers that are none of "no answer", as many as
    were asked for, this one first."""

    text: str
    start: int
    end: int
    score: float
    null_score: float
    n_best: tuple["Answer", ...] = field(default=(), compare=False, repr=False)


LONG = 16  # batches of windows; only of one long text there are more at once


class Scored(NamedTuple):
    """A question on a context as tokens, its windows, and the scores of each."""

    context: str
    encoded: Encoded
    windows: list[Window]
    scores: Sequence[Scores] = ()

    def answer(self, span: Candidate, null_score: float = -np.inf) -> Answer:
        """A span as the context has it."""
        at = self.encoded.offsets
        start, end = int(at[span.first, 0]), int(at[span.last, 1])
        return Answer(self.context[start:end], start, end, span.score, null_score)


@dataclass(eq=False)
class QuestionAnswerer:
    """Answers questions on contexts of any length. max_length: of a window, in positions;
    the model's own number is the most that it takes. doc_stride: context tokens from one window to
    the next. max_answer_length: in tokens."""

    model: QuestionAnsweringModel
    wordpiece: WordPiece
    max_length: int = 384
    doc_stride: int = 128
    max_answer_length: int = 30

    def __post_init__(self) -> None:
        self.model.eval()
        most = self.model.encoder.config.max_position_embeddings
        self.max_length = min(self.max_length, most)

    @classmethod
    def from_pretrained(cls, source: str | Path, tokenizer: str | Path | None = None) -> Self:
        """Opens a checkpoint of this project, a folder of `transformers` (also an old one:
        `pytorch_model.bin`, a config without `model_type`), or a hub name, and runs no code of it.
        tokenizer: where the vocabulary is, if not there. Raises InputError without a question
        answering head."""
        model = model_with_head(source)
        if model is None:
            mend = "fine-tune it first with `python -m spanbert_tutorial finetune squad`."
            raise InputError(f"{source} has no question answering head (qa_outputs): {mend}")
        own = source if tokenizer is None else tokenizer
        check_vocabulary(wordpiece := read_vocabulary(own), model.encoder, own)
        facts = read_facts(source)
        limits = {name: facts[key] for key, name in CONFIG_KEYS.items() if key in facts}
        whole = all(type(value) is int for value in limits.values())
        wrong = f"config.json of {source} has the limits {shown(limits)}"
        require(whole, f"{wrong}: write whole numbers.")
        return cls(model.to("cuda" if torch.cuda.is_available() else "cpu"), wordpiece, **limits)

    def save(self, folder: str | Path, texts: dict[str, str]) -> None:
        """Writes a folder, whole or not at all, that `from_pretrained` and
        `transformers.BertForQuestionAnswering` open. texts: further files by name, such as
        README.md. Weights are stored in half precision."""
        facts = {key: getattr(self, name) for key, name in CONFIG_KEYS.items()}
        head = self.model.boundaries.state_dict(prefix=HEAD)
        how = "BertForQuestionAnswering", facts, head, self.wordpiece, texts
        write_folder(folder, self.model.encoder, *how)

    def answer(
        self, question: str, context: str, threshold: float = 0.0, n_best: int = 1
    ) -> Answer:
        """The best answer, an exact slice of `context`; no answer when null_score − score is above
        `threshold`. n_best: how many answers `Answer.n_best` holds. Raises InputError for an empty
        question or context, and for a threshold that is not a number."""
        return next(self.answer_many([(question, context)], threshold, n_best=n_best))

    def answer_many(
        self, pairs: Pairs, threshold: float = 0.0, batch_size: int = 32, n_best: int = 1
    ) -> Iterator[Answer]:
        """An answer for each (question, context), in order, `batch_size` windows at a time. Raises
        InputError as `answer` does, naming the pair; those before it still get their answers."""
        require(is_number(threshold), f"the threshold is {shown(threshold)}: give a number.")
        require(n_best > 0, f"n_best is {n_best}: give 1 or more.")
        limits = max(20, n_best), self.max_answer_length
        for one in self.scored(pairs, batch_size):
            spans, null_score = decode(one.windows, iter(one.scores), *limits)
            best = tuple(one.answer(span, null_score) for span in spans[:n_best])
            score = best[0].score if best else -np.inf
            none = not best or null_score - score > threshold
            first = Answer("", 0, 0, score, null_score) if none else best[0]
            yield replace(first, n_best=best)

    def predict(self, questions: Sequence[Question]) -> tuple[dict[str, str], dict[str, float]]:
        """The best answer that is not empty, and the null odds (null score − score of that answer),
        by id. Raises InputError for an id of two, and as `answer` does, naming the question."""
        check_ids(questions)
        texts: dict[str, str] = {}
        odds = {}
        pairs = ((q.question, q.context) for q in with_bar(questions, "question"))
        try:
            answers = self.answer_many(pairs, threshold=np.inf)
            for question, answer in zip(questions, answers, strict=True):
                texts[question.id] = answer.text
                odds[question.id] = answer.null_score - answer.score
        except InputError as error:  # all questions before this one have answers
            wrong = questions[len(texts)]
            reason = str(error).removeprefix(f"pair {len(texts) + 1}: ")
            raise InputError(f'article "{wrong.title}", question {wrong.id}: {reason}') from None
        return texts, odds

    def scored(self, pairs: Pairs, batch_size: int = 32) -> Iterator[Scored]:
        """Each (question, context), in order, with its windows and their scores."""
        for group in self.grouped(pairs, 8 * batch_size):
            scores = self.scores([window for one in group for window in one.windows], batch_size)
            for one in group:
                yield one._replace(scores=list(islice(scores, len(one.windows))))

    def grouped(self, pairs: Pairs, min_windows: int) -> Iterator[list[Scored]]:
        """Questions, in groups of at least `min_windows` windows; the last may have fewer."""
        group: list[Scored] = []
        for number, pair in enumerate(pairs, start=1):
            fits = isinstance(pair, tuple | list) and len(pair) == 2
            require(fits, f"pair {number} is {shown(pair)}: give (question, context).")
            try:
                encoded = encode(self.wordpiece, *pair)
                own_windows = windows(encoded, self.wordpiece, self.max_length, self.doc_stride)
            except InputError as error:
                yield group  # the questions before it still get their answers
                raise InputError(f"pair {number}: {error}" if number > 1 else str(error)) from None
            group.append(Scored(pair[1], encoded, own_windows))
            if sum(len(one.windows) for one in group) >= min_windows:
                yield group
                group = []
        yield group

    @torch.no_grad()
    def scores(self, inputs: Sequence[Window], batch_size: int) -> Iterator[Scores]:
        """S and E at the positions of each window, float [n] each; windows of similar length share
        a batch."""
        device = next(self.model.parameters()).device
        order = sorted(range(len(inputs)), key=lambda row: len(inputs[row].ids))
        found: dict[int, Scores] = {}
        steps = range(0, len(inputs), batch_size)
        for first in with_bar(steps, "batch") if len(steps) > LONG else steps:
            rows = order[first : first + batch_size]
            batch = stacked([inputs[row] for row in rows], self.wordpiece.pad_id)
            batch = {name: value.to(device) for name, value in batch.items()}
            starts, ends = (scores.cpu().numpy() for scores in self.model.scores(batch))
            for row, start, end in zip(rows, starts, ends, strict=True):
                size = len(inputs[row].ids)
                found[row] = start[:size], end[:size]
        yield from (found[row] for row in range(len(inputs)))
