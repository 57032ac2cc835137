"""What does each objective cost in answers, and does copying explain it? Chapter:
`book/evidence/masking_and_copying`.

Eight objectives continue from one checkpoint, over the same text, for the same number of steps. On
the way and at the end three things are measured: held-out losses, for rare tokens apart by whether
their block shows them again; names masked whole or in part; and F1 on SQuAD 1.1 after fine-tuning.
The objectives that matter most are trained with three seeds, the others with one. A seed draws the
order of the blocks and the masks. An interval counts pre-training runs; the F1 of a run is the mean
over fine-tuning seeds, which draw the new head, and the questions and their order.

It needs a graphics card, where the models of a round train side by side (`research.side_by_side`):
`make card-plan`. A CPU runs the same steps at toy sizes.

The primary measure, the expected signs and what each outcome means were fixed before the first run:
`CLAIMS`.
"""

import copy
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from research.experiments import copied_names
from research.measurements import copying
from research.measurements.many_answers import (
    Answering,
    Tuning,
    Windows,
    know,
    to_answer,
    to_learn,
)
from research.results import surroundings
from research.side_by_side import Learner, arithmetic, device, rates
from spanbert_tutorial.bert.encoder import BertEncoder, set_dropout
from spanbert_tutorial.bert.inputs import masked_labels
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import write_json
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import continue_from
from spanbert_tutorial.pretraining.encoded_text import EncodedText, reopen_text
from spanbert_tutorial.pretraining.evaluation import GAPS_SEED, held_out_data
from spanbert_tutorial.pretraining.fixed_shapes import padded
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Mixture, objective_or_mixture
from spanbert_tutorial.pretraining.presets import RUNS, Run
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import QuestionAnsweringSettings
from spanbert_tutorial.tasks.squad import Question
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
    to learn from, with the epochs; the first is the primary one. tuning_seeds: of a finished model;
    on_the_way: at a fraction of the training. slots: fine-tunings at a time. workers: processes
    that draw batches. most_questions: fewer than all, for a rehearsal."""

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
    slots: int = 6
    workers: int = 10
    most_questions: int | None = None

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
    workers=0,
    most_questions=30,
)


# --- what the runs are given ---------------------------------------------------------


class HiddenNames(NamedTuple):
    """Names of unseen text, masked in one way: ids [k, n] and lengths [k] of their blocks, the
    masked positions of each, and the tokens that are right there."""

    ids: np.ndarray
    lengths: np.ndarray
    positions: list[list[int]]
    gold: list[list[int]]


class Given(NamedTuple):
    """What the runs read. blocks: by whether they are pairs. ways: held-out batches under each way
    of masking. rare: bool [V]. train, asked: windows of questions to learn from and to answer, with
    the places of each context's tokens."""

    text: EncodedText
    start: Path
    blocks: dict[bool, PretrainingData]
    ways: dict[str, list[dict[str, Tensor]]]
    rare: np.ndarray
    names: dict[str, HiddenNames]
    train: Windows
    asked: Windows
    offsets: list[np.ndarray]
    questions: list[Question]


def hidden_names(valid: Path, wordpiece: WordPiece, most: int) -> dict[str, HiddenNames]:
    """At most so many names of each kind, each masked whole and in part."""
    names = copied_names.drawn(documents(valid), wordpiece)
    found = {}
    for told, again in copied_names.STANDS.items():
        some = [name for name in names if name.again == again][:most]
        if not some:
            continue
        for how, first in copied_names.HIDDEN.items():
            hidden = [copied_names.hide(name, how, wordpiece) for name in some]
            ids = np.zeros((len(some), copied_names.LONGEST + 2), dtype=np.int64)
            for row, (block, _) in enumerate(hidden):
                ids[row, : len(block)] = block
            found[f"{how}, {told}"] = HiddenNames(
                ids,
                np.array([len(block) for block, _ in hidden]),
                [positions for _, positions in hidden],
                [list(name.words[name.place][first:]) for name in some],
            )
    return found


def prepare(text: EncodedText, start: Path, valid: Path, data: Path, settings: Settings) -> Given:
    """All that the runs read. valid: unseen text. data: a folder of SQuAD files."""
    train = squad.read(data / "train-v1.1-part.json.xz")[: settings.most_questions]
    asked = squad.read(data / "dev-v1.1-half.json.xz")[: settings.most_questions]
    tuning = settings.fine_tuning
    ways = held_out_data(settings.run("mlm", 0), text)
    with ProcessPoolExecutor() as pool:  # beside the sentence pairs, which take longest
        names = pool.submit(hidden_names, valid, text.wordpiece, settings.names)
        to_learn_from = pool.submit(to_learn, train, text.wordpiece, tuning)
        to_ask = pool.submit(to_answer, asked, text.wordpiece, tuning)
        blocks = {
            paired: runs.training_data(settings.run(arm, 0), text)
            for paired, arm in {True: "mlm+nsp", False: "mlm"}.items()
        }
        return Given(
            text,
            start,
            blocks,
            {
                way: list(islice(of.epoch(np.random.default_rng(GAPS_SEED)), settings.held_out))
                for way, of in ways.items()
            },
            copying.rare_tokens(text.train.ids, len(text.wordpiece)),
            names.result(),
            to_learn_from.result(),
            *to_ask.result(),
            asked,
        )


# --- pre-training --------------------------------------------------------------------


def parts(arm: str) -> tuple[str, ...]:
    """The objectives of an arm, in turn."""
    objective = objective_or_mixture(arm)
    return tuple(objective.parts) if isinstance(objective, Mixture) else (arm,)


class Drawn(Dataset):
    """Batch number step × arms + arm, of the objective whose turn it is, with its tokens. What it
    holds follows from its number and the seed, so any number of workers draws the same."""

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


def learners_of(
    arms: Sequence[str],
    drawn: Drawn,
    given: Given,
    settings: Settings,
    say: Callable[[str], None],
) -> list[Learner[PretrainingModel]]:
    """A learner for each arm, its steps ready."""
    found = []
    for place, arm in enumerate(arms):
        model = continue_from(given.start, arm)[0]
        set_dropout(model, 0.0)
        learner = Learner(model, settings.steps, betas=(0.9, 0.98), epsilon=1e-6)
        for turn in range(len(parts(arm))):
            name, _, batch = drawn[turn * len(arms) + place]
            say(f"{arm}: a step on {name} is {learner.record(name, batch)}")
        found.append(learner)
    return found


def train(
    arms: Sequence[str],
    seed: int,
    learners: Sequence[Learner[PretrainingModel]],
    batches: Iterator,
    given: Given,
    settings: Settings,
    say: Callable[[str], None],
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, float], dict[str, Tensor]]]:
    """Trains the arms side by side. Returns tokens, seconds (of all together) and losses of each,
    and its weights at each fraction of its steps, 1 included."""
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
                curves[arm].append(round(learner.mean_loss(every), 4))
            if step % (10 * every) == 0:
                rate = sum(tokens.values()) / (time.monotonic() - began)
                last = {arm: curve[-1] for arm, curve in curves.items()}
                say(f"step {step} of {steps}, {rate:,.0f} tokens/s, losses {last}")
        if step in marks:
            for arm, learner in zip(arms, learners, strict=True):
                kept[arm, marks[step]] = learner.weights()
    seconds = time.monotonic() - began
    facts = {
        arm: {
            "tokens": tokens[arm],
            "seconds_side_by_side": round(seconds, 1),
            "curve": curves[arm],
        }
        for arm in arms
    }
    return facts, kept


# --- measuring -----------------------------------------------------------------------


class Way(NamedTuple):
    """Held-out batches on the card under one way of masking, and which of their masked tokens are
    of a kind, bool [t] each."""

    batches: list[dict[str, Tensor]]
    kinds: dict[str, np.ndarray]


def ways_of(given: Given) -> dict[str, Way]:
    """The held-out batches, brought to the card once."""
    found = {}
    for way, batches in given.ways.items():
        rare = given.rare[torch.cat([masked_labels(batch) for batch in batches]).numpy()]
        again = torch.cat([copying.shown_again(batch) for batch in batches]).numpy()
        kinds = {"all": np.ones_like(again), "again": rare & again, "new": rare & ~again}
        moved = [{name: value.to(device()) for name, value in b.items()} for b in batches]
        found[way] = Way(moved, kinds)
    return found


@torch.no_grad()
def measured(model: PretrainingModel, ways: Mapping[str, Way], given: Given) -> dict[str, Any]:
    """Under each way of masking: tokens, loss in nats and accuracy in percent, for all masked tokens
    and for rare ones that their block shows again or does not; and how many names are restored,
    in percent."""
    model.eval()
    found: dict[str, Any] = {}
    with arithmetic():
        for name, way in ways.items():
            nats, right = of_tokens(model, way.batches)
            found[name] = {
                kind: {
                    "tokens": int(chosen.sum()),
                    "nats": round(float(nats[chosen].mean()), 4),
                    "right": round(100 * float(right[chosen].mean()), 3),
                }
                for kind, chosen in way.kinds.items()
                if chosen.any()
            }
        for told, names in given.names.items():
            hits = [p == g for p, g in zip(restored(model, names), names.gold, strict=True)]
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
        nats.append(F.cross_entropy(logits, masked_labels(batch), reduction="none"))
        right.append(logits.argmax(-1) == masked_labels(batch))
    return torch.cat(nats).cpu().numpy(), torch.cat(right).cpu().numpy()


def restored(model: PretrainingModel, names: HiddenNames) -> list[list[int]]:
    """The top prediction at each masked position of each name."""
    ids = torch.from_numpy(names.ids).to(device())
    lengths = torch.from_numpy(names.lengths).to(device())
    mask = torch.arange(ids.shape[1], device=device()) < lengths[:, None]
    parts = zip(ids.split(256), mask.split(256), strict=True)
    hidden = torch.cat([model.encoder(part, attention_mask=real) for part, real in parts])
    rows = [row for row, own in enumerate(names.positions) for _ in own]
    places = [place for own in names.positions for place in own]
    best = iter(model.masked_language_model(hidden[rows, places]).argmax(-1).tolist())
    return [[next(best) for _ in own] for own in names.positions]


# --- all of it -----------------------------------------------------------------------

NAMES = ("arm", "seed", "fraction", "questions", "tuning_seed", "segments")


def tunings_of(
    arms: Iterable[str], seed: int, kept: Mapping, settings: Settings
) -> Iterator[Tuning]:
    """What is fine-tuned after a round: finished models with each number of questions, and once as
    one segment; those on the way with all questions."""
    for arm in arms:
        for fraction in (*FRACTIONS, 1.0):
            encoder = of_encoder(kept[arm, fraction])
            whole = fraction == 1.0
            sizes = settings.sizes if whole else settings.sizes[:1]
            for questions, epochs in sizes:
                for number in range(settings.tuning_seeds if whole else settings.on_the_way):
                    key = (arm, seed, fraction, questions, number + 1, "two segments")
                    yield Tuning(key, encoder, questions, epochs, number + 1)
            if whole:
                questions, epochs = settings.sizes[0]
                key = (arm, seed, fraction, questions, 1, "one segment")
                yield Tuning(key, encoder, questions, epochs, 1, one_segment=True)


def of_encoder(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's part of a model's weights."""
    first = "encoder."
    return {n.removeprefix(first): v for n, v in weights.items() if n.startswith(first)}


def from_the_start(given: Given, settings: Settings) -> Iterator[Tuning]:
    """Fine-tunings of the common checkpoint."""
    encoder = continue_from(given.start, "mlm")[0].encoder.state_dict()
    questions, epochs = settings.sizes[0]
    for number in range(settings.tuning_seeds):
        key = (START, 0, 0.0, questions, number + 1, "two segments")
        yield Tuning(key, encoder, questions, epochs, number + 1)


def begun(output: Path, settings: Settings) -> dict[str, Any]:
    """What the file holds of earlier rounds, or its beginning. Raises InputError where it was made
    with other settings."""
    facts = json.loads(json.dumps({"settings": asdict(settings), "claims": CLAIMS}))
    if not output.is_file():
        return facts | {"surroundings": surroundings(), "rounds": [], "runs": [], "answers": []}
    found = json.loads(output.read_text(encoding="utf-8"))
    if any(found.get(name) != value for name, value in facts.items()):
        raise InputError(f"{output} was made with other settings: give another output.")
    return found


def work(
    output: Path,
    given: Given,
    settings: Settings,
    keep_weights: Callable[[str, int, dict[str, Tensor]], None] | None = None,
    until: float = float("inf"),
) -> bool:
    """All rounds that the file does not have yet; it is written after each, whole. until: on the
    monotonic clock; a round begins only if it should end by then. Returns whether all is done."""
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)

    found = begun(output, settings)
    rounds = [one for one in ROUNDS if [list(one[0]), one[1]] not in found["rounds"]]
    if not rounds:
        return True
    drawn = [Drawn(arms, seed, given, settings) for arms, seed in rounds]
    with ProcessPoolExecutor(
        3, initializer=know, initargs=(given.offsets, given.questions)
    ) as pool:
        pool.submit(len, "").result()  # the first process is made before the card is used
        batches = drawn[0].loader(settings.steps, settings.workers)
        ways = ways_of(given)
        answering = Answering(
            lambda: encoder_of(given.start),
            given.train,
            given.asked,
            settings.fine_tuning,
            dict(settings.sizes),
            settings.slots,
        )
        say(f"a step of fine-tuning is {answering.how}")
        learners: list[Learner[PretrainingModel]] = []
        longest = 0.0
        for number, (arms, seed) in enumerate(rounds):
            round_began = time.monotonic()
            if round_began + longest > until:
                say("no time for another round")
                return False
            if not number or arms != rounds[number - 1][0]:
                learners.clear()
                learners += learners_of(arms, drawn[number], given, settings, say)
            facts, kept = train(arms, seed, learners, batches, given, settings, say)
            if number + 1 < len(rounds):  # they are drawn while models are measured
                batches = drawn[number + 1].loader(settings.steps, settings.workers)
            for arm, learner in zip(arms, learners, strict=True):
                for fraction in (*FRACTIONS, 1.0):
                    learner.begin(kept[arm, fraction], torch.zeros(1))
                    row = {"arm": arm, "seed": seed, "fraction": fraction}
                    row |= facts[arm] if fraction == 1.0 else {}
                    found["runs"].append(row | measured(learner.model, ways, given))
            say("measured")
            tunings = list(tunings_of(arms, seed, kept, settings))
            if not found["rounds"]:
                tunings += from_the_start(given, settings)
            scores = answering.run(tunings, pool)
            found["answers"] += [
                dict(zip(NAMES, key, strict=True)) | score.result() for key, score in scores.items()
            ]
            found["rounds"].append([list(arms), seed])
            if keep_weights is not None:
                for arm in arms:
                    keep_weights(arm, seed, kept[arm, 1.0])
            write_json(output, found)
            say(", ".join(f"{arm} F1 {f1:.1f}" for arm, f1 in answered(found, seed).items()))
            longest = max(longest, time.monotonic() - round_began)
    return True


def encoder_of(start: Path) -> BertEncoder:
    """The encoder of a checkpoint."""
    return continue_from(start, "mlm")[0].encoder


def answered(found: Mapping[str, Any], seed: int) -> dict[str, float]:
    """The mean F1 of each finished run of a seed, after all questions."""
    most = max(row["questions"] for row in found["answers"])
    scores: dict[str, list[float]] = {}
    for row in found["answers"]:
        asked = (row["seed"], row["fraction"], row["questions"], row["token_type_ids"])
        if asked == (seed, 1.0, most, "two segments"):
            scores.setdefault(row["arm"], []).append(row["f1"])
    return {arm: float(np.mean(f1s)) for arm, f1s in scores.items()}


def content(folder: Path, text: Path, start: Path, valid: Path, data: Path) -> dict:
    """All rounds. text: encoded. Raises InputError without a graphics card."""
    if not torch.cuda.is_available():
        raise InputError(
            "this experiment trains 16 models on 80 million tokens each: use a machine with a "
            "graphics card (`make card-plan`)."
        )
    settings = Settings()
    output = folder / "rounds.json"
    work(output, prepare(reopen_text(text), start, valid, data, settings), settings)
    return json.loads(output.read_text(encoding="utf-8"))
