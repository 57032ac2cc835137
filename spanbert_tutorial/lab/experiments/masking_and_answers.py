"""What does each objective cost in answers, and does copying explain it? Chapter:
`book/evidence/masking_and_copying`.

Eight objectives go on from one checkpoint, over the same text, for the same number of steps. On the
way and at the end three things are measured: held-out losses, for rare tokens apart by whether
their block shows them once more; names that are hidden whole or in part; and F1 on SQuAD 1.1 after
fine-tuning. The objectives that matter most are trained with three seeds, the others with one. A
seed draws the order of the blocks and the masks. An interval counts pre-training runs; a run's F1
is the mean over fine-tuning seeds, which draw the new head and the order of the questions.

All of it is meant for a graphics card, where the models of a round train side by side
(`lab.side_by_side`): `make card-plan`. A CPU runs the same steps, at toy sizes.

The primary measure, the expected signs and what each outcome would mean were fixed before the first
run: `CLAIMS`.
"""

import copy
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from spanbert_tutorial.bert.encoder import set_dropout
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import write_json
from spanbert_tutorial.lab.experiments import copied_names
from spanbert_tutorial.lab.measurements import copying
from spanbert_tutorial.lab.side_by_side import Learner, device, rates
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import continue_from
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import GAPS_SEED, held_out_data
from spanbert_tutorial.pretraining.fixed_shapes import padded
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Mixture, objective_or_mixture
from spanbert_tutorial.pretraining.presets import RUNS, Run
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import (
    QuestionAnsweringData,
    QuestionAnsweringModel,
    QuestionAnsweringSettings,
)
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.tasks.windows import Encoded, Window, encode, windows
from spanbert_tutorial.text.corpora import documents

MAIN = ("mlm", "mlm+nsp", "span+sbo", "mix")
OTHERS = ("mlm-wholeword", "span", "span-subword", "span+sbo+nsp")
START = "start"
SEEDS = (1, 2, 3)
ROUNDS = (*((MAIN, seed) for seed in SEEDS), (OTHERS, 1))  # trained side by side
FRACTIONS = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
CLAIMS = {
    "spans": "F1 after all questions: span+sbo below mlm if spans cost a small model answers, as the "
    "shipped twins suggest; an interval around zero says that the objective was not the reason",
    "pairs": "F1: mlm+nsp below mlm, as in SpanBERT's ablation, where one segment was better",
    "mix": "F1: if copying is what answers need, mix, which keeps it, above span+sbo, which loses it",
    "copying": "rare tokens that the block shows again, given back, %: mlm far above span+sbo. Over "
    "all runs, F1 rises with copying if copying explains answers; the pilot, one run of each, has "
    "the run that copies least answer second best",
}


@dataclass(frozen=True)
class Settings:
    """steps: of each run. held_out: batches that are measured. names: of each kind. sizes: questions
    to learn from → epochs. on_the_way: fine-tuning seeds at a fraction of the training."""

    size: str = "mini"
    steps: int = 2_600
    max_length: int = 256
    batch_size: int = 128
    peak_learning_rate: float = 1.5e-3
    held_out: int = 12
    names: int = 300
    fine_tuning: QuestionAnsweringSettings = QuestionAnsweringSettings(
        batch_size=16, peak_learning_rate=3e-4, max_length=256, doc_stride=128, dropout=0.0
    )
    sizes: tuple[tuple[int, float], ...] = ((11_877, 2.0), (4_096, 3.0), (512, 12.0))
    tuning_seeds: int = 3
    on_the_way: int = 1
    slots: int = 6  # fine-tunings at a time

    def run(self, objective: str, seed: int) -> Run:
        """Of one arm and seed."""
        return replace(
            RUNS[self.size],
            objective=objective,
            steps=self.steps,
            max_length=self.max_length,
            batch_size=self.batch_size,
            peak_learning_rate=self.peak_learning_rate,
            seed=seed,
            by_length=False,
        )


TOY = Settings(
    size="tiny",
    steps=16,
    max_length=64,
    batch_size=4,
    held_out=2,
    names=3,
    fine_tuning=QuestionAnsweringSettings(
        batch_size=4, max_length=64, doc_stride=32, dropout=0.0, peak_learning_rate=3e-4
    ),
    sizes=((16, 1.0), (8, 2.0)),
    tuning_seeds=2,
    slots=2,
)


# --- what the runs are given ---------------------------------------------------------


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


class Given(NamedTuple):
    """blocks: by whether they are pairs. ways: held-out batches under each way of hiding. names:
    kind → names hidden. rare: bool [V]."""

    text: EncodedText
    start: Path
    blocks: dict[bool, PretrainingData]
    ways: dict[str, list[dict[str, Tensor]]]
    rare: np.ndarray
    names: dict[str, tuple[np.ndarray, np.ndarray, list[list[int]], list[list[int]]]]
    train: Windows
    asked: Windows
    offsets: list[np.ndarray]
    questions: list[Question]


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
    encoded: list[Encoded] = [encode(wordpiece, q.question, q.context) for q in questions]
    cut = [windows(one, wordpiece, settings.max_length, settings.doc_stride) for one in encoded]
    owners = [number for number, some in enumerate(cut) for _ in some]
    flat = [window for some in cut for window in some]
    none = [(0, 0)] * len(flat)
    return as_arrays(flat, owners, none, settings.max_length), [one.offsets for one in encoded]


def hidden_names(
    valid: Path, wordpiece: WordPiece, most: int, width: int
) -> dict[str, tuple[np.ndarray, np.ndarray, list[list[int]], list[list[int]]]]:
    """Names of unseen text, each kind hidden whole and in part: ids [k, n] and lengths [k] of the
    blocks, the hidden places, and what stands there."""
    names = copied_names.drawn(documents(valid), wordpiece)
    found = {}
    for told, again in copied_names.STANDS.items():
        some = [name for name in names if name.again == again]
        some = some[:most]
        for how, first in copied_names.HIDDEN.items():
            hidden = [copied_names.hide(name, how, wordpiece) for name in some]
            ids = np.zeros((len(some), width), dtype=np.int64)
            for row, (block, _) in enumerate(hidden):
                ids[row, : len(block)] = block
            lengths = np.array([len(block) for block, _ in hidden])
            wanted = [list(name.words[name.place][first:]) for name in some]
            found[f"{how}, {told}"] = (ids, lengths, [places for _, places in hidden], wanted)
    return found


def blocks_of(text: EncodedText, settings: Settings) -> dict[bool, PretrainingData]:
    """The blocks of the training text, single and in pairs, which all objectives share."""
    arms = {False: "mlm", True: "mlm+nsp"}
    return {paired: runs.training_data(settings.run(arm, 0), text) for paired, arm in arms.items()}


def prepare(
    text: EncodedText, start: Path, valid: Path, data: Path, settings: Settings
) -> Given:
    """All that the runs read. data: a folder of SQuAD files."""
    train = squad.read(data / "train-v1.1-part.json.xz")
    asked = squad.read(data / "dev-v1.1-half.json.xz")
    if settings.size == "tiny":
        train, asked = train[:40], asked[:30]
    run = settings.run("mlm", 0)
    ways = {
        way: list(islice(blocks.epoch(np.random.default_rng(GAPS_SEED)), settings.held_out))
        for way, blocks in held_out_data(run, text).items()
    }
    return Given(
        text,
        start,
        blocks_of(text, settings),
        ways,
        copying.rare_tokens(text.train.ids, len(text.wordpiece)),
        hidden_names(valid, text.wordpiece, settings.names, copied_names.LONGEST + 2),
        to_learn(train, text.wordpiece, settings.fine_tuning),
        *to_answer(asked, text.wordpiece, settings.fine_tuning),
        asked,
    )


# --- pre-training --------------------------------------------------------------------


def parts(arm: str) -> tuple[str, ...]:
    """The objectives of an arm, in turn."""
    objective = objective_or_mixture(arm)
    return tuple(objective.parts) if isinstance(objective, Mixture) else (arm,)


class Drawn(Dataset):
    """Batch number step × arms + arm, of the objective whose turn it is. What it holds follows from
    its number and the seed, so any number of workers draws the same."""

    def __init__(self, arms: Sequence[str], seed: int, given: Given, settings: Settings):
        self.arms = arms
        self.seed = seed
        self.size = settings.batch_size
        self.data: dict[str, PretrainingData] = {}
        for arm in arms:
            for name in parts(arm):
                row = objective_or_mixture(name)
                self.data[name] = copy.copy(given.blocks[row.paired is not None])
                self.data[name].objective = row  # type: ignore[assignment]
        self.order: dict[int, tuple[int, np.ndarray]] = {}

    def rows(self, data: PretrainingData, step: int) -> np.ndarray:
        """The blocks of a step: every block once in each epoch, in an order drawn by the seed."""
        count = len(data)
        epoch, at = divmod(step, count // self.size)
        if self.order.get(count, (-1, None))[0] != epoch:
            order = np.random.default_rng([self.seed, epoch]).permutation(count)
            self.order[count] = (epoch, order)
        return self.order[count][1][at * self.size : (at + 1) * self.size]

    def __getitem__(self, number: int) -> tuple[str, int, dict[str, Tensor]]:
        step, place = divmod(number, len(self.arms))
        objectives = parts(self.arms[place])
        name = objectives[step % len(objectives)]
        data = self.data[name]
        batch = data.batch(self.rows(data, step), np.random.default_rng([self.seed, place, step]))
        tokens = int(batch["attention_mask"].sum())
        targets = data.objective.masking.budget(data.max_length) + 1
        return name, tokens, padded(batch, data.max_length, targets)

    def loader(self, steps: int, workers: int) -> Iterator:
        """The batches of all steps."""
        return iter(
            DataLoader(
                self,
                batch_size=None,
                sampler=range(steps * len(self.arms)),
                num_workers=workers,
                prefetch_factor=8 if workers else None,
                pin_memory=torch.cuda.is_available(),
            )
        )


def learners_of(arms: Sequence[str], drawn: Drawn, given: Given, settings: Settings) -> list:
    """A learner for each arm, its steps recorded."""
    found = []
    for place, arm in enumerate(arms):
        model = continue_from(given.start, arm)[0]
        set_dropout(model, 0.0)
        learner = Learner(model, settings.steps, betas=(0.9, 0.98), epsilon=1e-6)
        for turn in range(len(parts(arm))):
            name, _, batch = drawn[turn * len(arms) + place]
            learner.record(name, batch)
        found.append(learner)
    return found


def train(
    arms: Sequence[str],
    seed: int,
    learners: Sequence[Learner],
    batches: Iterator,
    given: Given,
    settings: Settings,
    say: Callable[[str], None],
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, float], dict[str, Tensor]]]:
    """Trains the arms side by side. Returns the facts of each run, and its weights at each fraction
    of its steps, the whole included."""
    steps = settings.steps
    marks = {round(steps * fraction): fraction for fraction in (*FRACTIONS, 1.0)}
    for arm, learner in zip(arms, learners, strict=True):
        begun = continue_from(given.start, arm, seed)[0]
        learner.begin(begun.state_dict(), rates(steps, settings.peak_learning_rate))
    tokens = dict.fromkeys(arms, 0)
    curves: dict[str, list[float]] = {arm: [] for arm in arms}
    kept: dict[tuple[str, float], dict[str, Tensor]] = {}
    every = max(steps // 40, 1)
    began = time.monotonic()
    for step in range(1, steps + 1):
        for arm, learner in zip(arms, learners, strict=True):
            name, seen, batch = next(batches)
            tokens[arm] += seen
            learner.step(name, batch)
        if step % every == 0:
            for arm, learner in zip(arms, learners, strict=True):
                curves[arm].append(round(learner.taken_loss(every), 4))
            if step % (10 * every) == 0:
                rate = sum(tokens.values()) / (time.monotonic() - began)
                last = {arm: curve[-1] for arm, curve in curves.items()}
                say(f"step {step} of {steps}, {rate:,.0f} tokens/s, losses {last}")
        if step in marks:
            for arm, learner in zip(arms, learners, strict=True):
                kept[arm, marks[step]] = learner.weights()
    seconds = time.monotonic() - began
    facts = {
        arm: {"tokens": tokens[arm], "seconds_side_by_side": round(seconds, 1), "curve": curves[arm]}
        for arm in arms
    }
    return facts, kept


# --- measuring -----------------------------------------------------------------------


class Way(NamedTuple):
    """Held-out batches on the card under one way of hiding, and which of their masked tokens are of
    a kind, bool [t] each."""

    batches: list[dict[str, Tensor]]
    kinds: dict[str, np.ndarray]


def ways_of(given: Given) -> dict[str, Way]:
    """The held-out batches, brought to the card once."""
    found = {}
    for way, batches in given.ways.items():
        rare = given.rare[torch.cat([batch["masked_ids"] for batch in batches]).numpy()]
        again = torch.cat([copying.shown_again(batch) for batch in batches]).numpy()
        kinds = {"all": np.ones_like(again), "again": rare & again, "new": rare & ~again}
        moved = [{name: value.to(device()) for name, value in b.items()} for b in batches]
        found[way] = Way(moved, kinds)
    return found


@torch.no_grad()
def measured(model: PretrainingModel, ways: Mapping[str, Way], given: Given) -> dict[str, Any]:
    """Of the masked language model under each way of hiding: tokens, loss in nats, share given back
    in percent, for all tokens and for rare ones that their block shows again or does not; names
    given back, %."""
    model.eval()
    found: dict[str, Any] = {}
    with torch.autocast(device().type, torch.bfloat16, enabled=device().type == "cuda"):
        for name, way in ways.items():
            nats, right = of_tokens(model, way.batches)
            found[name] = {
                kind: {
                    "tokens": int(chosen.sum()),
                    "nats": round(float(nats[chosen].mean()), 4),
                    "right": round(100 * float(right[chosen].mean()), 3),
                }
                for kind, chosen in way.kinds.items()
            }
        for told, (ids, lengths, places, wanted) in given.names.items():
            said = guesses(model, ids, lengths, places)
            hits = [one == other for one, other in zip(said, wanted, strict=True)]
            found[told] = round(100 * float(np.mean(hits)), 2)
    model.train()
    return found


def of_tokens(
    model: PretrainingModel, batches: Iterable[dict[str, Tensor]]
) -> tuple[np.ndarray, np.ndarray]:
    """Loss in nats of each masked token, and whether it is given back, [t] each."""
    nats, right = [], []
    for batch in batches:
        logits = model.masked_logits(model.encode(batch), batch).float()
        nats.append(F.cross_entropy(logits, batch["masked_ids"], reduction="none"))
        right.append(logits.argmax(-1) == batch["masked_ids"])
    return torch.cat(nats).cpu().numpy(), torch.cat(right).cpu().numpy()


def guesses(
    model: PretrainingModel, ids: np.ndarray, lengths: np.ndarray, places: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The likeliest token of the MLM head for each hidden place."""
    blocks = torch.from_numpy(ids).to(device())
    mask = torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None]).to(device())
    hidden = torch.cat(
        [model.encoder(blocks[at : at + 256], None, mask[at : at + 256]) for at in range(0, len(ids), 256)]
    )
    rows = [row for row, own in enumerate(places) for _ in own]
    columns = [place for own in places for place in own]
    best = model.masked_language_model(hidden[rows, columns]).argmax(-1).tolist()
    sizes = np.cumsum([len(own) for own in places])[:-1]
    return [part.tolist() for part in np.split(np.array(best), sizes)]


# --- answering -----------------------------------------------------------------------


class Tuning(NamedTuple):
    """One fine-tuning: of which weights, on how many questions, with which seed; one_segment:
    question and context share segment A."""

    key: tuple
    encoder: Mapping[str, Tensor]
    questions: int
    epochs: float
    seed: int
    one_segment: bool = False


class Answering:
    """Fine-tunings of one size of model, several at a time, each in a slot."""

    def __init__(self, given: Given, settings: Settings):
        self.settings = settings
        self.given = given
        self.tuning = settings.fine_tuning
        self.n_questions = int(given.train.owner.max()) + 1
        self.most = max(self.steps(*size) for size in settings.sizes)
        self.slots = [self.slot() for _ in range(settings.slots)]
        self.asked = on_card(given.asked)

    def steps(self, questions: int, epochs: float) -> int:
        """Of a fine-tuning."""
        share = min(questions, self.n_questions) / self.n_questions
        return max(1, round(epochs * share * len(self.given.train.ids) / self.tuning.batch_size))

    def slot(self) -> tuple[Learner, dict[str, Tensor]]:
        """A learner, and what it reads: all windows, and the order in which it takes them."""
        encoder = continue_from(self.given.start, "mlm")[0].encoder
        set_dropout(encoder, 0.0)
        learner = Learner(QuestionAnsweringModel(encoder), self.most, (0.9, 0.999), 1e-8)
        held = on_card(self.given.train)
        held["order"] = torch.zeros(
            self.most, self.tuning.batch_size, dtype=torch.long, device=device()
        )
        held["second"] = torch.ones((), dtype=torch.long, device=device())

        def made(_: dict[str, Tensor]) -> dict[str, Tensor]:
            rows = held["order"].index_select(0, learner.at)[0]
            batch = chosen(held, rows)
            batch["segments"] = batch["segments"] * held["second"]
            return batch

        learner.made = made  # type: ignore[attr-defined]
        learner.record("questions", {}, made)
        return learner, held

    def order(self, tuning: Tuning) -> np.ndarray:
        """The windows of each step, int [steps, B]."""
        rng = np.random.default_rng(tuning.seed)
        questions = rng.permutation(self.n_questions)[: tuning.questions]
        own = np.flatnonzero(np.isin(self.given.train.owner, questions))
        steps = max(1, round(tuning.epochs * len(own) / self.tuning.batch_size))
        steps = min(steps, self.most)
        needed = steps * self.tuning.batch_size
        drawn = [rng.permutation(own) for _ in range(-(-needed // len(own)))]
        return np.concatenate(drawn)[:needed].reshape(steps, -1)

    def run(self, tunings: Sequence[Tuning], pool: ProcessPoolExecutor) -> dict[tuple, Future]:
        """All of them; the scores come from other processes."""
        found = {}
        began, taken = time.monotonic(), 0
        for at in range(0, len(tunings), len(self.slots)):
            group = list(zip(tunings[at : at + len(self.slots)], self.slots, strict=False))
            lengths = [self.begin(tuning, *slot) for tuning, slot in group]
            for step in range(max(lengths)):
                for length, (_, (learner, held)) in zip(lengths, group, strict=True):
                    if step < length:
                        learner.repeat("questions", learner.made, held)
            taken += sum(lengths)
            for tuning, (learner, held) in group:
                learner.wait()
                spans = self.spans(learner.model, bool(held["second"].item()))
                found[tuning.key] = pool.submit(scored, spans)
        seconds = time.monotonic() - began
        print(f"{len(tunings)} fine-tunings, {taken / seconds:,.0f} steps/s", flush=True)
        return found

    def begin(self, tuning: Tuning, learner: Learner, held: dict[str, Tensor]) -> int:
        """Puts weights and order into a slot; the number of steps."""
        order = self.order(tuning)
        with torch.random.fork_rng():
            torch.manual_seed(tuning.seed)
            config = learner.model.encoder.config
            head = torch.nn.Linear(config.hidden_size, 2)
            head.weight.data.normal_(std=config.initializer_range)
            head.bias.data.zero_()
        weights = {f"encoder.{name}": value for name, value in tuning.encoder.items()}
        weights |= {f"boundaries.{name}": value for name, value in head.state_dict().items()}
        learner.begin(weights, rates(len(order), self.tuning.peak_learning_rate))
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
        for at in range(0, len(self.asked["ids"]), 512):
            rows = torch.arange(at, min(at + 512, len(self.asked["ids"])), device=device())
            batch = chosen(self.asked, rows)
            batch["segments"] = batch["segments"] * int(second)
            with torch.autocast(device().type, torch.bfloat16, enabled=device().type == "cuda"):
                starts, ends = model.scores(batch)
            in_context = batch["attention_mask"] & self.asked["context"][rows]
            parts.append(best_spans(starts, ends, self.asked["may_start"][rows], in_context))
        model.train()
        scores, first, last = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
        asked = self.given.asked
        best = np.lexsort((-scores, asked.owner))
        best = best[np.unique(asked.owner[best], return_index=True)[1]]
        return np.stack([first[best], last[best]], 1) + asked.shift[best, None]


def on_card(some: Windows) -> dict[str, Tensor]:
    """The windows as tensors on the card."""
    width = np.arange(some.ids.shape[1])
    context = (width >= some.first[:, None]) & (width < some.length[:, None] - 1)
    arrays = {
        "ids": some.ids,
        "attention_mask": width < some.length[:, None],
        "segments": (width >= some.first[:, None]) & (width < some.length[:, None]),
        "targets": some.targets,
        "may_start": some.may_start,
        "context": context,
    }
    return {name: torch.from_numpy(array).to(device()) for name, array in arrays.items()}


def chosen(held: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
    """A batch of these windows."""
    return {
        "ids": held["ids"][rows].long(),
        "segments": held["segments"][rows].long(),
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


# --- all of it -----------------------------------------------------------------------


def tunings_of(
    arms: Iterable[str], seed: int, kept: Mapping, settings: Settings
) -> list[Tuning]:
    """What is fine-tuned after a round: the finished models most often, and the main ones also as
    one segment."""
    found = []
    for arm in arms:
        for fraction in (*FRACTIONS, 1.0):
            if (arm, fraction) not in kept:
                continue
            encoder = {
                name.removeprefix("encoder."): value
                for name, value in kept[arm, fraction].items()
                if name.startswith("encoder.")
            }
            whole = fraction == 1.0
            sizes = settings.sizes if whole else settings.sizes[:1]
            count = settings.tuning_seeds if whole else settings.on_the_way
            for questions, epochs in sizes:
                for tuning_seed in range(1, count + 1):
                    key = (arm, seed, fraction, questions, tuning_seed, "two segments")
                    found.append(Tuning(key, encoder, questions, epochs, tuning_seed))
            if whole:
                questions, epochs = settings.sizes[0]
                key = (arm, seed, fraction, questions, 1, "one segment")
                found.append(Tuning(key, encoder, questions, epochs, 1, one_segment=True))
    return found


def work(
    output: Path,
    given: Given,
    settings: Settings,
    workers: int,
    keep_weights: Callable[[str, int, dict[str, Tensor]], None] | None = None,
    rounds: Sequence[tuple[Sequence[str], int]] = ROUNDS,
    until: float = float("inf"),
) -> None:
    """All rounds; the file is written after each part of a round, whole. until: on the monotonic
    clock, no round begins that would not end by then."""
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)

    found: dict[str, Any] = {"settings": json.loads(json.dumps(asdict(settings)))}
    found |= {"claims": CLAIMS, "runs": [], "answers": []}
    pool = ProcessPoolExecutor(3, initializer=know, initargs=(given.offsets, given.questions))
    pool.submit(len, "").result()  # its processes are made before the card is used
    drawn = [Drawn(arms, seed, given, settings) for arms, seed in rounds]
    batches = drawn[0].loader(settings.steps, workers)
    ways = ways_of(given)
    answering = Answering(given, settings)
    say("fine-tuning is recorded")
    learners: list[Learner] = []
    for number, (arms, seed) in enumerate(rounds):
        if not learners or list(arms) != list(rounds[number - 1][0]):
            del learners
            learners = learners_of(arms, drawn[number], given, settings)
            say(f"{', '.join(arms)}: recorded")
        round_began = time.monotonic()
        facts, kept = train(arms, seed, learners, batches, given, settings, say)
        if number + 1 < len(rounds):  # the workers go on while models are measured
            batches = drawn[number + 1].loader(settings.steps, workers)
        for place, arm in enumerate(arms):
            for fraction in (*FRACTIONS, 1.0):
                learners[place].begin(kept[arm, fraction], torch.zeros(1))
                row = {"arm": arm, "seed": seed, "fraction": fraction}
                figures = measured(learners[place].model, ways, given)
                found["runs"].append(row | (facts[arm] if fraction == 1.0 else {}) | figures)
            if keep_weights is not None:
                keep_weights(arm, seed, kept[arm, 1.0])
        write_json(output, found)
        say("measured")
        tunings = tunings_of(arms, seed, kept, settings)
        if number == 0:
            tunings += at_the_start(given, settings)
        for key, score in answering.run(tunings, pool).items():
            names = ("arm", "seed", "fraction", "questions", "tuning_seed", "segments")
            found["answers"].append(dict(zip(names, key, strict=True)) | score.result())
        write_json(output, found)
        whole = settings.sizes[0][0]
        for arm in arms:
            scores = [
                row["f1"]
                for row in found["answers"]
                if (row["arm"], row["seed"], row["fraction"], row["questions"])
                == (arm, seed, 1.0, whole)
            ]
            say(f"{arm}, seed {seed}: F1 {scores}")
        took = time.monotonic() - round_began
        if time.monotonic() + took > until and number + 1 < len(rounds):
            say("no time for another round")
            break
    found["finished"] = True
    write_json(output, found)
    pool.shutdown(wait=False, cancel_futures=True)


def at_the_start(given: Given, settings: Settings) -> list[Tuning]:
    """Fine-tunings of the common start."""
    encoder = continue_from(given.start, "mlm")[0].encoder.state_dict()
    questions, epochs = settings.sizes[0]
    return [
        Tuning((START, 0, 0.0, questions, seed, "two segments"), encoder, questions, epochs, seed)
        for seed in range(1, settings.tuning_seeds + 1)
    ]
