"""Many fine-tunings on SQuAD 1.1, several at a time on one graphics card, and their scores.
Chapter: `book/evidence/masking_and_copying`.

The same model, windows, loss and decoding as in `tasks.question_answering`, arranged so that a card
never waits: all windows lie in its memory, each step looks up the next ones by its own number, and
other processes score the answers. Batches hold a fixed number of windows, whatever their lengths.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from research.side_by_side import Learner, arithmetic, device, rates
from spanbert_tutorial.bert.encoder import BertEncoder, initialize, set_dropout
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import (
    QuestionAnsweringData,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.windows import Window, encode, windows


class Windows(NamedTuple):
    """Windows as arrays of one width. ids [N, n]; length, first (position of the first context
    token), owner (number of the question) [N]; targets [N, 2], first and last position of the
    answer; may_start bool [N, n], context tokens at which an answer may begin; shift [N]: context
    token minus position."""

    ids: np.ndarray
    length: np.ndarray
    first: np.ndarray
    owner: np.ndarray
    targets: np.ndarray
    may_start: np.ndarray
    shift: np.ndarray


def as_arrays(
    all_windows: Sequence[Window], owners: Sequence[int], targets: Sequence, width: int
) -> Windows:
    """The windows in one width."""
    count = len(all_windows)
    ids = np.zeros((count, width), dtype=np.int32)
    may_start = np.zeros((count, width), dtype=bool)
    for row, window in enumerate(all_windows):
        ids[row, : len(window.ids)] = window.ids
        may_start[row, window.first : window.first + len(window.central)] = window.central
    facts = np.array([(len(w.ids), w.first, w.start - w.first) for w in all_windows], np.int64)
    return Windows(
        ids,
        facts[:, 0],
        facts[:, 1],
        np.array(owners),
        np.array(targets).reshape(count, 2),
        may_start,
        facts[:, 2],
    )


def to_learn(
    questions: Sequence[Question], wordpiece: WordPiece, settings: QuestionAnsweringSettings
) -> Windows:
    """The windows of questions with their targets."""
    all_windows: list[Window] = []
    owners: list[int] = []
    targets: list[tuple[int, int]] = []
    for number, question in enumerate(questions):
        data = QuestionAnsweringData([question], wordpiece, settings)
        all_windows += data.windows
        targets += data.targets
        owners += [number] * len(data)
    return as_arrays(all_windows, owners, targets, settings.max_length)


def to_answer(
    questions: Sequence[Question], wordpiece: WordPiece, settings: QuestionAnsweringSettings
) -> tuple[Windows, list[np.ndarray]]:
    """The windows of questions, and the places of each context's tokens."""
    encoded = [encode(wordpiece, q.question, q.context) for q in questions]
    cut = [windows(one, wordpiece, settings.max_length, settings.doc_stride) for one in encoded]
    owners = [number for number, some in enumerate(cut) for _ in some]
    flat = [window for some in cut for window in some]
    none = [(0, 0)] * len(flat)
    return as_arrays(flat, owners, none, settings.max_length), [one.offsets for one in encoded]


class Tuning(NamedTuple):
    """One fine-tuning, under a key. encoder: its weights at the start. seed: draws the head, the
    questions and their order. one_segment: question and context share segment A."""

    key: tuple
    encoder: Mapping[str, Tensor]
    questions: int
    epochs: float
    seed: int
    one_segment: bool = False


class Slot(NamedTuple):
    """A learner, and what it reads: all windows, `order` [steps, B], the windows of each step, and
    `second`, 0 where all is one segment."""

    learner: Learner[QuestionAnsweringModel]
    held: dict[str, Tensor]


class Answering:
    """Fine-tunings of one size of model, several at a time, each in a slot. encoder: of that size,
    in any state. sizes: questions to learn from → epochs, as they will come."""

    def __init__(
        self,
        encoder: Callable[[], BertEncoder],
        learned: Windows,
        asked: Windows,
        settings: QuestionAnsweringSettings,
        sizes: Mapping[int, float],
        slots: int,
    ):
        self.settings = settings
        self.learned = learned
        self.owners = asked.owner
        self.shift = asked.shift
        self.n_questions = int(learned.owner.max()) + 1
        windows_a_question = len(learned.ids) / self.n_questions
        longest = max(min(size, self.n_questions) * epochs for size, epochs in sizes.items())
        # a sample of long questions may have more windows than its share
        self.most = round(1.2 * longest * windows_a_question / settings.batch_size) + 1
        self.slots = [self.slot(encoder()) for _ in range(slots)]
        self.asked = on_card(asked)

    def slot(self, encoder: BertEncoder) -> Slot:
        """One slot, its step ready."""
        set_dropout(encoder, self.settings.dropout)
        learner = Learner(QuestionAnsweringModel(encoder), self.most, (0.9, 0.999), 1e-8)
        held = on_card(self.learned)
        shape = self.most, self.settings.batch_size
        held["order"] = torch.zeros(shape, dtype=torch.long, device=device())
        held["second"] = torch.ones((), dtype=torch.long, device=device())

        def made(_: dict[str, Tensor]) -> dict[str, Tensor]:
            batch = chosen(held, held["order"].index_select(0, learner.at)[0])
            return batch | {"token_type_ids": batch["token_type_ids"] * held["second"]}

        self.how = learner.record("questions", {}, made)
        return Slot(learner, held)

    def order(self, tuning: Tuning) -> np.ndarray:
        """The windows of each step, int [steps, B]: all windows of the questions that the seed
        draws, in a new order each epoch."""
        rng = np.random.default_rng(tuning.seed)
        questions = rng.permutation(self.n_questions)[: tuning.questions]
        own = np.flatnonzero(np.isin(self.learned.owner, questions))
        size = self.settings.batch_size
        steps = min(max(1, round(tuning.epochs * len(own) / size)), self.most)
        drawn = [rng.permutation(own) for _ in range(-(-steps * size // len(own)))]
        return np.concatenate(drawn)[: steps * size].reshape(steps, size)

    def run(self, tunings: Sequence[Tuning], pool: ProcessPoolExecutor) -> dict[tuple, Future]:
        """All of them; the scores come from the processes of the pool (`know`)."""
        found = {}
        began, taken = time.monotonic(), 0
        for at in range(0, len(tunings), len(self.slots)):
            group = list(zip(tunings[at : at + len(self.slots)], self.slots, strict=False))
            lengths = [self.begin(tuning, slot) for tuning, slot in group]
            for step in range(max(lengths)):
                for length, (_, slot) in zip(lengths, group, strict=True):
                    if step < length:
                        slot.learner.step("questions", {})
            taken += sum(lengths)
            for tuning, slot in group:
                slot.learner.wait()
                spans = self.spans(slot.learner.model, second=not tuning.one_segment)
                found[tuning.key] = pool.submit(scored, spans)
        rate = taken / (time.monotonic() - began)
        print(f"{len(tunings)} fine-tunings, {rate:,.0f} steps/s", flush=True)
        return found

    def begin(self, tuning: Tuning, slot: Slot) -> int:
        """Puts weights and order into a slot; the number of steps. The seed draws the head."""
        order = self.order(tuning)
        learner, held = slot
        config = learner.model.encoder.config
        head = nn.Linear(config.hidden_size, 2)
        seeded = torch.Generator().manual_seed(tuning.seed)
        initialize(head, config.initializer_range, seeded)
        weights = {f"encoder.{name}": value for name, value in tuning.encoder.items()}
        weights |= {f"boundaries.{name}": value for name, value in head.state_dict().items()}
        learner.begin(weights, rates(len(order), self.settings.peak_learning_rate))
        held["order"].zero_()
        held["order"][: len(order)] = torch.from_numpy(order).to(device())
        held["second"].fill_(0 if tuning.one_segment else 1)
        learner.wait()
        return len(order)

    @torch.no_grad()
    def spans(self, model: QuestionAnsweringModel, second: bool) -> np.ndarray:
        """For each question the first and last context token of its best span, int [q, 2]."""
        model.eval()
        parts = []
        for rows in torch.arange(len(self.owners), device=device()).split(512):
            batch = chosen(self.asked, rows)
            with arithmetic():
                starts, ends = model.scores(
                    batch | {"token_type_ids": batch["token_type_ids"] * int(second)}
                )
            parts.append(
                best_spans(starts, ends, self.asked["may_start"][rows], self.asked["context"][rows])
            )
        model.train()
        scores, first, last = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
        best = np.lexsort((-scores, self.owners))  # by question, its best window first
        best = best[np.unique(self.owners[best], return_index=True)[1]]
        return np.stack([first[best], last[best]], 1) + self.shift[best, None]


def on_card(some: Windows) -> dict[str, Tensor]:
    """The windows as tensors on the card."""
    width = np.arange(some.ids.shape[1])
    context = (width >= some.first[:, None]) & (width < some.length[:, None] - 1)
    arrays = {
        "input_ids": some.ids,
        "attention_mask": width < some.length[:, None],
        "token_type_ids": (width >= some.first[:, None]) & (width < some.length[:, None]),
        "targets": some.targets,
        "may_start": some.may_start,
        "context": context,
    }
    return {name: torch.from_numpy(array).to(device()) for name, array in arrays.items()}


def chosen(held: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    """A batch of these windows."""
    return {
        "input_ids": held["input_ids"][rows].long(),
        "token_type_ids": held["token_type_ids"][rows].long(),
        "attention_mask": held["attention_mask"][rows],
        "start": held["targets"][rows, 0],
        "end": held["targets"][rows, 1],
    }


def best_spans(
    starts: Tensor, ends: Tensor, may_start: Tensor, may_end: Tensor, most: int = 30
) -> tuple[Tensor, Tensor, Tensor]:
    """Score, first and last position of the best span of each window, [N] each: `windows.best_spans`
    for many windows at once. starts, ends [N, n]."""
    starts = starts.masked_fill(~may_start, -torch.inf)
    ends = ends.masked_fill(~may_end, -torch.inf)
    width = ends.shape[1]
    later = F.pad(ends, (0, most - 1), value=-torch.inf).unfold(1, most, 1)[:, :width]
    last_score, distance = later.max(-1)  # [N, n]
    score, first = (starts + last_score).max(-1)
    return score, first, first + distance.gather(1, first[:, None])[:, 0]


KNOWN: dict[str, Any] = {}  # of a scoring process


def know(offsets: list[np.ndarray], questions: list[Question]) -> None:
    """Makes a process ready to score."""
    KNOWN.update(offsets=offsets, questions=questions)


def scored(spans: np.ndarray) -> dict[str, float]:
    """Exact match and F1 of answers, given as context tokens."""
    texts = {}
    pairs = zip(KNOWN["questions"], KNOWN["offsets"], spans, strict=True)
    for question, offsets, (first, last) in pairs:
        texts[question.id] = question.context[int(offsets[first, 0]) : int(offsets[last, 1])]
    found = squad.score(texts, KNOWN["questions"])
    return {name: round(found[name], 3) for name in ("exact", "f1")}
