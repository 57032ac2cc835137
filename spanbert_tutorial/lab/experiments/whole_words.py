"""What does a model lose that never sees a part of a word? Chapter:
`book/evidence/masking_and_copying`.

Every tutorial says that the rest of a word is nearly free to predict when its beginning is in view,
and that whole words and spans are hidden to forbid it. `spanbert-mini` (`--start`) was trained so.
From it training goes on with the boundary objective over Wikipedia, and only the masks differ
(`ARMS`): no word is broken; one hidden word of several tokens in a block is broken at a random
place, and its end or its beginning stays visible; or single tokens are hidden, without the boundary
objective, which shows that the ability can come back at all. SpanBERT's released code breaks the
last word of a span when the budget ends inside it, in about three blocks of ten, and it is always
the end that stays visible. What a broken word saves is spent on further words, so that all hide
equally many tokens. The same seed gives all arms the same blocks in the same order.

A seed is a continuation. Words are asked for, and losses are measured, on `--valid`, at four points
of the way (at the first three with fewer words) and before it. `whole_words_answers` then asks what
the models at the end answer.

What is measured first, and what each outcome would mean, stood here before the first run: `CLAIMS`.
A pilot with one seed each had been seen then: finishing a name that the block says again 1.6% (no
word broken), 18.8% and 33.9% (the beginning stays visible in 0.3 and in all blocks), beginning one
38.8% and 53.1% (its end stays visible).
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spanbert_tutorial.bert.masking import word_sizes
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.lab.experiments.spans_on_wikipedia import begun_from
from spanbert_tutorial.lab.grid import as_json, text_facts
from spanbert_tutorial.lab.measurements import words_in_parts
from spanbert_tutorial.lab.measurements.words_in_parts import Word
from spanbert_tutorial.lab.results import rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import Batches
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    load_checkpoint,
    save_checkpoint,
)
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import RUNS, Run
from spanbert_tutorial.spanbert.boundary import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking, mask_words
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import encode_corpus

BEGINNING, END = "beginning", "end"
TOKENS = "tokens"
ARM = "broken"
SEEDS = 3
# → what of a broken word stays visible, and in which share of the blocks there is one; in the order
# in which they are run
ARMS = {
    "none": ("", 0.0),
    "its end, 0.3": (END, 0.3),
    "its beginning, 0.3": (BEGINNING, 0.3),
    TOKENS: ("", 0.0),
    "its end, 1.0": (END, 1.0),
    "its beginning, 1.0": (BEGINNING, 1.0),
}
RUN = replace(
    RUNS["mini"],
    objective="span+sbo",
    steps=1_200,
    max_length=256,
    batch_size=16,
    peak_learning_rate=5e-4,
    warmup=0.06,
)
CLAIMS = {
    "primary": "finishing a name that the block says again, right in %, at the end: 'its beginning, "
    "0.3' above 'none', paired by seed, with a 95% interval beyond 0. If so, the ability is lost for "
    "want of being asked, and a share like the released code's is enough to bring it back. If not, "
    "the pilot saw one lucky run",
    "chance": "none: the loss of finishing a name that the block says again is not below a uniform "
    "guess, at every point and every seed. If it is below, 'worse than chance' was the starting "
    "checkpoint's",
    "two directions": "finishing under 'its end' is within 3 points of 'none', and beginning under "
    "'its beginning' within 3 points of 'none', while the asked direction gains at least 10. If so, "
    "an ability is what was asked, direction by direction; if the other one rises too, breaking words "
    "helps as such",
    "share": "0.3 gives at least half of what 1.0 gives, in both directions. If so, the released code "
    "(the end visible, 0.3) should begin words and not finish them",
    "cost": "the loss on span masks within 0.05 nats of 'none', and whole names that the block says "
    "again within 3 points. Outside: the ability has a price",
    "answers": "F1 on SQuAD 1.1 (`whole_words_answers`): 'its beginning' (both shares) minus 'none'. "
    "At least 2 points with an interval beyond 0: what is lost matters to a task. An interval around "
    "0: this task does not need it, as far as three continuations can tell",
}
SETTINGS = {
    "run": RUN,
    "points": 4,  # of a continuation, equally far apart
    "asked": 300,  # words of each kind, before and at the end
    "asked_on_the_way": 100,
    "batches": 30,  # of unseen text, for the losses
    "claims": CLAIMS,
}
FACTS = "facts.json"


@dataclass(frozen=True)
class BreakingSpans(SpanMasking):
    """Spans of whole words, and in a share of the blocks one hidden word of several tokens is broken
    at a random place. visible: which part of it stays so, `BEGINNING` or `END`. What that saves is
    spent on further words."""

    visible: str = BEGINNING
    share: float = 1.0

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """bool [n] in, bool [n] out; see `MaskingScheme.select`."""
        sizes = word_sizes(word_starts)
        masked = np.zeros(len(sizes), dtype=bool)
        mask_words(masked, sizes, self.budget(len(word_starts)), self._cumulated, rng)
        whole = masked & (sizes > 1)
        if rng.random() >= self.share or not whole.any():
            return np.repeat(masked, sizes)
        word = int(rng.choice(np.flatnonzero(whole)))
        first = int(sizes[:word].sum())
        cut = first + int(rng.integers(1, sizes[word]))
        shown = slice(first, cut) if self.visible == BEGINNING else slice(cut, first + sizes[word])
        mask_words(masked, sizes, shown.stop - shown.start, self._cumulated, rng)
        selected = np.repeat(masked, sizes)
        selected[shown] = False
        return selected

    def select_rows(
        self, word_starts: np.ndarray, lengths: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Row after row."""
        selected = np.zeros(word_starts.shape, dtype=bool)
        for row, length in enumerate(lengths.tolist()):
            selected[row, :length] = self.select(word_starts[row, :length], rng)
        return selected


def objective_of(arm: str) -> Objective:
    """What an arm is trained on."""
    visible, share = ARMS[arm]
    if not visible:
        return Objective.named("mlm" if arm == TOKENS else "span+sbo")
    return Objective(BreakingSpans(visible=visible, share=share), "span", (Boundary(),))


def run_of(arm: str, seed: int, settings: Mapping) -> Run:
    """The run of an arm and a seed, with the heads that it needs."""
    return replace(settings["run"], objective="mlm" if arm == TOKENS else "span+sbo", seed=seed)


def name_of(arm: str, seed: int) -> str:
    """The folder of a model."""
    return f"{arm.replace(', ', '-').replace(' ', '-')}-{seed}"


# --- what it needs ------------------------------------------------------------------


class Given(NamedTuple):
    """start: folder of the model that all arms go on from; models: folder that keeps the trained
    ones, and the state of those that are being trained."""

    text: EncodedText
    start: Path
    models: Path
    words: list[Word]


def prepare(
    folder: Path, settings: Mapping, corpus: Path, valid: Path, start: Path, models: Path
) -> tuple[dict, tuple]:
    """Text to train on without the titles of SQuAD's development set, another file to measure on,
    and the words that are asked for."""
    left_out = set(data_path("squad_dev_titles.txt").read_text(encoding="utf-8").splitlines())
    text = open_text(corpus.as_posix(), folder / "corpus", start, leave_out=left_out)
    encode = text.wordpiece.encode_many, len(text.wordpiece)
    text = replace(text, held_out=encode_corpus(documents(valid), *encode, folder / "valid"))
    words = words_in_parts.drawn(documents(valid), text.wordpiece, settings["asked"])
    asked = {kind: sum(word.kind == kind for word in words) for kind in words_in_parts.KINDS}
    facts = {"begun_from": begun_from(start), "words_asked": asked}
    return text_facts(text) | facts, (Given(text, start, models, words),)


def beside(settings: Mapping, given: Given) -> dict:
    """What reads no block, and the model before it goes on."""
    model = load_checkpoint(given.start)[0]
    controls = words_in_parts.without_a_block(
        np.asarray(given.text.train.ids), given.text.wordpiece, given.words
    )
    return rounded({"controls": controls, "start": measured(model, given.words, settings, given)})


# --- training -----------------------------------------------------------------------


def one(arm: str, seed: int, settings: Mapping, given: Given) -> dict:
    """A continuation: its figures at each point, by the number of its step."""
    return {"points": figures(arm, seed, settings, given)}


def figures(arm: str, seed: int, settings: Mapping, given: Given) -> dict[str, dict]:
    """The figures of an arm's model at each point. The model is kept in a folder of `models`, and
    while it is being trained its state in another one there, from which a stopped command goes
    on."""
    run = run_of(arm, seed, settings)
    name = name_of(arm, seed)
    folder = given.models / name
    about = as_json({"run": run, "arm": ARMS[arm], "begun_from": begun_from(given.start)})
    if folder.exists():
        kept = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if kept["about"] != about:
            raise InputError(f"{folder} holds a model of other settings: give another --models.")
        return kept["points"]
    model = continue_from(given.start, run.objective, seed)[0]
    data = runs.blocks_of(run, given.text, objective_of(arm))
    some = words_in_parts.some_of_each(given.words, settings["asked_on_the_way"])
    batches = Watched(
        data.batches(np.random.default_rng(1_000 + seed)),
        [run.steps * point // settings["points"] for point in range(1, settings["points"])],
        lambda: measured(model, some, settings, given),
    )
    state = given.models / f"{name}.run"
    snapshots = Snapshots(state / "snapshots", {"about": json.dumps(about)})
    runs.train(model, batches, run.recipe(), given.text.unigram_entropy, snapshots)
    points = batches.found | {str(run.steps): measured(model, given.words, settings, given)}
    points = rounded(points)
    more = {"README.md": f"# {name}\n", FACTS: json.dumps({"about": about, "points": points})}
    save_checkpoint(folder, model.eval(), given.text.wordpiece, run.objective, more)
    shutil.rmtree(state)
    return points


class Watched:
    """Batches that have figures taken before some of them is drawn, when so many steps are done.
    at: numbers of steps; take: gives the figures, which are kept with the place."""

    def __init__(self, batches: Batches, at: list[int], take: Callable[[], dict]):
        self.batches = batches
        self.at = at
        self.take = take
        self.drawn = 0
        self.found: dict[str, dict] = {}

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return self

    def __next__(self) -> dict[str, Tensor]:
        if self.drawn in self.at and str(self.drawn) not in self.found:
            self.found[str(self.drawn)] = self.take()
        self.drawn += 1
        return next(self.batches)

    @property
    def place(self) -> str:
        """Where the last batch stood, for messages."""
        return self.batches.place

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self.drawn, "found": self.found, "batches": self.batches.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drawn = state["drawn"]
        self.found = dict(state["found"])
        self.batches.load_state_dict(state["batches"])


# --- figures ------------------------------------------------------------------------


def measured(
    model: PretrainingModel, words: list[Word], settings: Mapping, given: Given
) -> dict[str, dict]:
    """Words, and the loss of the masked language model head under both ways of hiding."""
    run = replace(settings["run"], objective="mlm")
    losses = held_out_metrics(model, run, given.text, settings["batches"])
    return {
        "words": words_in_parts.measured(model, given.text.wordpiece, words),
        "losses": {way: found["mlm"] for way, found in losses.items()},
    }
