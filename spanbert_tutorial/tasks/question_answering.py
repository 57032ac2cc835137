"""Extractive question answering: a start vector, an end vector, fine-tuning, answering. Chapter:
`book/tasks/question_answering`.

Sources: BERT §4.2, §4.3; SpanBERT §4.1 and appendix B. Windows and decoding: `tasks.windows`.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder, initialize
from spanbert_tutorial.bert.weights import checkpoint_folder, read_config, read_weights
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.keeping import with_bar
from spanbert_tutorial.engine.loop import History
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError, is_number, shown
from spanbert_tutorial.pretraining.checkpoints import read_vocabulary
from spanbert_tutorial.tasks.fine_tuning import (
    FineTuning,
    check_start,
    check_vocabulary,
    fit,
    stacked,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.task_checkpoints import write_half
from spanbert_tutorial.tasks.windows import Candidate, Encoded, Window, decode, encode, windows


class QuestionAnsweringModel(nn.Module):
    """Two vectors beside the encoder: position i begins the answer with weight exp(S · x_i), ends
    it with exp(E · x_i).

    `boundaries` holds S and E (and a number each, as in the released code) as one linear layer.
    """

    def __init__(self, encoder: BertEncoder):
        super().__init__()
        self.encoder = encoder
        self.boundaries = nn.Linear(encoder.config.hidden_size, 2)
        initialize(self.boundaries, encoder.config.initializer_range)

    def scores(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """S · x and E · x at each position, [B,n] each; minus infinity at padding."""
        hidden = self.encoder(batch["ids"], batch["segments"], batch["attention_mask"])
        scores = (
            self.boundaries(hidden)
            .float()
            .masked_fill(~batch["attention_mask"][..., None], -torch.inf)
        )
        return scores[..., 0], scores[..., 1]

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """{"loss": mean cross-entropy of the right start and the right end, in nats, "start": …,
        "end": …}."""
        starts, ends = self.scores(batch)
        losses = {
            "start": F.cross_entropy(starts, batch["start"]),
            "end": F.cross_entropy(ends, batch["end"]),
        }
        return {"loss": sum(losses.values()) / 2, **losses}


# --- fine-tuning --------------------------------------------------------------------


# BERT §4.2, §4.3 and SpanBERT appendix B, for base and large; the small sizes of this book need
# larger steps, more of them, and begin with short windows around the answers ("short-first", then
# "small" from there).
PRESETS = {
    "short-first": FineTuning(
        epochs=1.5,
        batch_size=16,
        peak_learning_rate=3e-4,
        max_length=96,
        doc_stride=64,
        dropout=0.0,
        answers_only=True,
    ),
    "small": FineTuning(epochs=1.5, batch_size=8, peak_learning_rate=3e-4, dropout=0.0),
    "bert-squad1": FineTuning(epochs=3, peak_learning_rate=5e-5, max_length=384),
    "bert-squad2": FineTuning(epochs=2, batch_size=48, peak_learning_rate=5e-5, max_length=384),
    "spanbert": FineTuning(epochs=4, peak_learning_rate=2e-5, max_length=512),
}
NO_ANSWER = (0, 0)  # [CLS] begins and ends it


class QuestionAnsweringData:
    """Windows of questions with the positions of their first answer, in the form that
    `batches.Batches` draws from.

    A window that does not hold the whole answer, and one of a question without an answer, point to
    [CLS], position 0.
    """

    by_length = True

    def __init__(self, questions: Iterable[Question], wordpiece: WordPiece, settings: FineTuning):
        self.wordpiece = wordpiece
        self.batch_size = settings.batch_size
        self.max_length = settings.max_length
        self.windows: list[Window] = []
        self.targets: list[tuple[int, int]] = []
        for question in questions:
            try:
                encoded = encode(wordpiece, question.question, question.context)
                made = windows(encoded, wordpiece, settings.max_length, settings.doc_stride)
            except InputError as error:
                raise InputError(f"question {question.id}: {error}") from None
            for window in made:
                place = target(window, answer_tokens(encoded, question))
                if place != NO_ANSWER or not (settings.answers_only and question.answers):
                    self.windows.append(window)
                    self.targets.append(place)

    def __len__(self) -> int:
        return len(self.windows)

    def lengths(self) -> np.ndarray:
        return np.array([len(window.ids) for window in self.windows])

    def batch(self, rows: np.ndarray, rng: np.random.Generator) -> dict[str, Tensor]:
        """Tensors of these windows; nothing is drawn at random."""
        start, end = np.array([self.targets[row] for row in rows]).T
        tensors = stacked([self.windows[row] for row in rows], self.wordpiece.pad_id)
        return tensors | {"start": torch.from_numpy(start), "end": torch.from_numpy(end)}


def answer_tokens(encoded: Encoded, question: Question) -> tuple[int, int] | None:
    """(first, last) context token that the question's first answer touches, or None."""
    if not question.answers:
        return None
    begin = question.answers[0].start
    end = begin + len(question.answers[0].text)
    touched = np.flatnonzero((encoded.offsets[:, 0] < end) & (encoded.offsets[:, 1] > begin))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


def target(window: Window, tokens: tuple[int, int] | None) -> tuple[int, int]:
    """Positions of the answer in a window; [CLS] twice, unless it holds the whole answer."""
    if tokens is None or tokens[0] < window.start or tokens[1] >= window.end:
        return NO_ANSWER
    shift = window.first - window.start
    return tokens[0] + shift, tokens[1] + shift


def fine_tune(
    start: BertEncoder | QuestionAnsweringModel,
    wordpiece: WordPiece,
    questions: Sequence[Question],
    settings: FineTuning,
    snapshots: Snapshots | None = None,
) -> tuple["QuestionAnswerer", History]:
    """Trains `start` (in place) on questions: an encoder under a new head, or a model of before
    with the head that it has. Returns what answers, and the history of the losses."""
    encoder = start if isinstance(start, BertEncoder) else start.encoder
    check_start(encoder, wordpiece, settings)
    data = QuestionAnsweringData(with_bar(questions, "question"), wordpiece, settings)
    new = isinstance(start, BertEncoder)
    model, history = fit(
        lambda: QuestionAnsweringModel(start) if new else start, data, settings, snapshots
    )
    return QuestionAnswerer(model, wordpiece, settings.max_length, settings.doc_stride), history


# --- answering ----------------------------------------------------------------------


def model_with_head(source: str | Path) -> QuestionAnsweringModel | None:
    """A checkpoint's encoder with the head of question answering that lies there; None where there
    is none. Raises InputError for a head that does not fit."""
    folder = checkpoint_folder(source)
    weights = read_weights(folder)
    head = {name: weights.get(f"qa_outputs.{name}") for name in ("weight", "bias")}
    if any(tensor is None for tensor in head.values()):
        return None
    with warnings.catch_warnings(
        action="ignore", category=UserWarning
    ):  # about the head, which is taken here
        model = QuestionAnsweringModel(BertEncoder.from_huggingface(folder))
    for name, wanted in model.boundaries.named_parameters():
        if head[name].shape != wanted.shape:
            raise InputError(
                f"the head of {source} has the shape {tuple(head[name].shape)} instead of "
                f"{tuple(wanted.shape)}: take a checkpoint with a start and an end vector."
            )
    model.boundaries.load_state_dict({name: tensor.float() for name, tensor in head.items()})
    return model


@dataclass(frozen=True)
class Answer:
    """text = context[start:end], "" when there is no answer. score: S + E of the best span;
    null_score: of [CLS]."""

    text: str
    start: int
    end: int
    score: float
    null_score: float


class QuestionAnswerer:
    """Answers questions on contexts of any length. length, stride: of the windows."""

    def __init__(
        self,
        model: QuestionAnsweringModel,
        wordpiece: WordPiece,
        max_length: int = 384,
        doc_stride: int = 128,
    ):
        self.model = model.eval()
        self.wordpiece = wordpiece
        self.max_length = min(max_length, model.encoder.config.max_position_embeddings)
        self.doc_stride = doc_stride

    @classmethod
    def from_pretrained(
        cls, source: str | Path, tokenizer: str | Path | None = None
    ) -> "QuestionAnswerer":
        """A checkpoint of this project, a folder of `transformers` (also an old one:
        `pytorch_model.bin`, a config without `model_type`), or a hub name. tokenizer: where the
        vocabulary lies, if not there.

        No code of the checkpoint is run. Raises InputError for a checkpoint without the head of
        question answering.
        """
        folder = checkpoint_folder(source)
        model = model_with_head(source)
        if model is None:
            raise InputError(
                f"{source} has no question answering head (qa_outputs): fine-tune it first with "
                "`python -m spanbert_tutorial finetune squad`."
            )
        wordpiece = read_vocabulary(source if tokenizer is None else tokenizer)
        check_vocabulary(wordpiece, model.encoder)
        ours = read_config(folder).get("spanbert_tutorial")
        ours = ours if isinstance(ours, dict) else {}
        ours = {name: ours[name] for name in ("length", "stride") if name in ours}
        for name, value in ours.items():
            if type(value) is not int:
                raise InputError(
                    f"config.json of {source} has the {name} {shown(value)}: write a whole number."
                )
        return cls(model.to("cuda" if torch.cuda.is_available() else "cpu"), wordpiece, **ours)

    def save(self, folder: str | Path, texts: dict[str, str]) -> None:
        """Writes a folder, whole or not at all, that `from_pretrained` and
        `transformers.BertForQuestionAnswering` open. texts: further files by name, such as its
        README.md. Weights are stored in half precision."""
        head = {
            f"qa_outputs.{name}": weight
            for name, weight in self.model.boundaries.state_dict().items()
        }
        facts = {"length": self.max_length, "stride": self.doc_stride}
        encoder = self.model.encoder
        write_half(folder, encoder, head, "BertForQuestionAnswering", facts, self.wordpiece, texts)

    def answer(self, question: str, context: str, threshold: float = 0.0) -> Answer:
        """The best answer, an exact slice of `context`; no answer when null_score − score is above
        `threshold`.

        Raises InputError for an empty question or context, and for a threshold that is no number.
        """
        return next(self.answer_many([(question, context)], threshold))

    def answer_many(
        self, pairs: Iterable[tuple[str, str]], threshold: float = 0.0, batch_size: int = 32
    ) -> Iterator[Answer]:
        """An answer for each (question, context), in order, `batch_size` windows at a time.

        Raises InputError as `answer` does, naming the pair; those before it still get their
        answers.
        """
        if not is_number(threshold):
            raise InputError(f"the threshold is {shown(threshold)}: give a number.")
        if type(batch_size) is not int or batch_size < 1:
            raise InputError(f"the batch size is {shown(batch_size)}: give 1 or more.")
        for _, context, encoded, found, null in self.candidates(pairs, batch_size):
            best = found[0] if found else Candidate(0, 0, -np.inf)
            if not found or null - best.score > threshold:
                yield Answer("", 0, 0, best.score, null)
            else:
                begin = int(encoded.offsets[best.first, 0])
                end = int(encoded.offsets[best.last, 1])
                yield Answer(context[begin:end], begin, end, best.score, null)

    def candidates(self, pairs: Iterable[tuple[str, str]], batch_size: int = 32) -> Iterator[tuple]:
        """(question, context, `Encoded`, the best spans as `Candidate`, null score) for each pair,
        in order."""
        for some in self.together(pairs, 8 * batch_size):
            scores = self.scores([window for *_, made in some for window in made], batch_size)
            for question, context, encoded, made in some:
                found, null = decode(made, islice(scores, len(made)))
                yield question, context, encoded, found, null

    def together(self, pairs: Iterable[tuple[str, str]], most: int) -> Iterator[list[tuple]]:
        """Lists of (question, context, Encoded, windows) that have at least `most` windows
        together, but the last."""
        some = []
        count = 0
        for number, (question, context) in enumerate(pairs, start=1):
            try:
                encoded = encode(self.wordpiece, question, context)
                made = windows(encoded, self.wordpiece, self.max_length, self.doc_stride)
            except InputError as error:
                yield from [some] if some else []  # what came before it still gets its answers
                raise InputError(f"pair {number}: {error}" if number > 1 else str(error)) from None
            some.append((question, context, encoded, made))
            count += len(some[-1][-1])
            if count >= most:
                yield some
                some = []
                count = 0
        if some:
            yield some

    @torch.no_grad()
    def scores(
        self, made: Sequence[Window], batch_size: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """S and E at the positions of each window, float [n] each."""
        device = next(self.model.parameters()).device
        for start in range(0, len(made), batch_size):
            some = made[start : start + batch_size]
            batch = {
                name: value.to(device)
                for name, value in stacked(some, self.wordpiece.pad_id).items()
            }
            starts, ends = (scores.cpu().numpy() for scores in self.model.scores(batch))
            for row, window in enumerate(some):
                pair = starts[row, : len(window.ids)], ends[row, : len(window.ids)]
                if not np.isfinite(pair).all():
                    raise InputError(
                        "the model's scores are not numbers: its weights are damaged or its "
                        "training "
                        "failed; take another checkpoint."
                    )
                yield pair
