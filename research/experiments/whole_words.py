"""What does a model lose that never sees a part of a word? Chapter:
`book/evidence/spans_and_boundaries`.

Every tutorial says that the rest of a word is nearly free to predict when its beginning is in view,
and that whole words and spans are masked to forbid it. `spanbert-mini` (`--start`) was trained so.
From it training goes on with the boundary objective over Wikipedia, and only the masks differ
(`ARMS`): no word is broken; one masked word of several tokens in a block is broken at a random
place, and its end or its beginning stays visible; or single tokens are masked, without the boundary
objective, which shows that the ability can come back at all. SpanBERT's released code breaks the
last word of a span when the budget ends inside it, in about three blocks of ten, and it is always
the end that stays visible. What a broken word saves is spent on further words, so that all mask
equally many tokens. The same seed gives all arms the same blocks in the same order.

A seed is a continuation. Words are asked for, and losses are measured, on `--valid`, at four points
of the way (at the first three with fewer words) and before it.

What is measured first, and what each outcome would mean, stood here before the first run: `CLAIMS`.
A pilot with one seed each had been seen then: finishing a name that the block says again 1.6% (no
word broken), 18.8% and 33.9% (the beginning stays visible in 0.3 and in all blocks), beginning one
38.8% and 53.1% (its end stays visible). The stored rows come from the tree tagged
`before-the-spine`; this file asks the same.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from research.experiments.spans_and_boundaries import losses
from research.experiments.spans_on_wikipedia import begun_from, open_wikipedia
from research.grid import as_json, rounded, text_facts
from research.measurements import words_in_parts
from research.measurements.words_in_parts import Word
from spanbert_tutorial.bert.masking import word_sizes
from spanbert_tutorial.engine.files import write_json
from spanbert_tutorial.engine.hooks import Hook, ProgressBar
from spanbert_tutorial.engine.snapshots import Snapshots
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.checkpoints import (
    continue_from,
    load_checkpoint,
    save_checkpoint,
)
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import RUNS, Run
from spanbert_tutorial.pretraining.train import train
from spanbert_tutorial.spanbert.boundary_task import Boundary
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric, mask_words
from spanbert_tutorial.text.corpora import documents

BEGINNING, END = "beginning", "end"
TOKENS = "tokens"
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
FACTS, LOOKS = "facts.json", "looks.json"


@dataclass(frozen=True)
class BreakingSpans(SpanMasking):
    """Spans of whole words, and in a share of the blocks one masked word of several tokens is broken
    at a random place. visible: which part of it stays so, `BEGINNING` or `END`. What that saves is
    spent on further words."""

    visible: str = BEGINNING
    share: float = 1.0

    def select(self, word_starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """bool [n] in, bool [n] out."""
        sizes = word_sizes(word_starts)
        budget, probs = self.budget(len(word_starts)), clipped_geometric(self.p, self.max_words)
        masked = mask_words(sizes, budget, probs, rng)
        several = np.flatnonzero(masked & (sizes > 1))
        if rng.random() >= self.share or not len(several):
            return np.repeat(masked, sizes)
        word = rng.choice(several)
        first = int(sizes[:word].sum())
        cut = first + int(rng.integers(1, sizes[word]))
        stays = slice(first, cut) if self.visible == BEGINNING else slice(cut, first + sizes[word])
        others = np.where(masked, len(word_starts) + 1, sizes)  # masked words fit no budget
        masked |= mask_words(others, stays.stop - stays.start, probs, rng)
        selected = np.repeat(masked, sizes)
        selected[stays] = False
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
    """Text to train on without SQuAD's titles, a file to measure on, and the words asked for."""
    text = open_wikipedia(folder, corpus, valid, start)
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


def place(path: tuple) -> tuple | None:
    """A control is a condition."""
    return (path[1], path[2:] or ("nats",)) if path[0] == "controls" else None


# --- training -----------------------------------------------------------------------


def one(arm: str, seed: int, settings: Mapping, given: Given) -> dict:
    """A continuation: its figures at the end, and on the way by "step N". The model is kept in a
    folder of `models`, and while it is being trained its state in another one there, from which a
    stopped command goes on."""
    run = run_of(arm, seed, settings)
    some = words_in_parts.some_of_each(given.words, settings["asked_on_the_way"])
    every = run.steps // settings["points"]

    def look(model: PretrainingModel, step: int) -> dict:
        return measured(model, given.words if step == run.steps else some, settings, given)

    found = continued(
        given.models / name_of(arm, seed), run, objective_of(arm), given.text, given.start, every, look
    )  # fmt: skip
    return found | found.pop(f"step {run.steps}")  # the end has no step in the table


def continued(
    folder: Path,
    run: Run,
    objective: Objective,
    text: EncodedText,
    start: Path,
    every: int,
    look: Callable[[PretrainingModel, int], dict],
) -> dict:
    """The figures of a continuation by "step N", kept with its model in `folder`; a stopped one goes
    on where it was. every: steps between two looks."""
    about = as_json({"run": run, "masking": repr(objective.masking), "begun_from": begun_from(start)})  # fmt: skip
    if folder.exists():
        kept = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        if kept["about"] != about:
            raise InputError(f"{folder} holds a model of other settings: give another --models.")
        return kept["points"]
    model = continue_from(start, run.objective, run.seed)[0]
    data = runs.training_data(run, text, objective)
    batches = data.batches(np.random.default_rng(1_000 + run.seed))
    state = folder.with_name(f"{folder.name}.run")
    looks = Looks(state / LOOKS, every, look)
    with closing(ProgressBar(text.unigram_entropy)) as bar:
        snapshots = Snapshots(state / "snapshots", {"about": json.dumps(about)})
        train(model, batches, run.recipe(), [looks, snapshots, bar])
    more = {"README.md": f"# {folder.name}\n", FACTS: json.dumps({"about": about, "points": looks.found})}  # fmt: skip
    save_checkpoint(folder, model.eval(), text.wordpiece, run.objective, more)
    shutil.rmtree(state)
    return looks.found


class Looks(Hook):
    """Takes figures every so many steps, kept in a file: a stopped run has them again."""

    def __init__(self, file: Path, every: int, look: Callable[[PretrainingModel, int], dict]):
        self.file = file
        self.every = every
        self.look = look
        self.found: dict[str, dict] = {}

    def on_start(self, state: Any) -> None:
        if self.file.exists():
            self.found = json.loads(self.file.read_text(encoding="utf-8"))

    def on_log(self, state: Any) -> None:
        step = state.history.done
        if step % self.every == 0:
            self.found[f"step {step}"] = rounded(self.look(state.model, step))
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.file, self.found)


# --- figures ------------------------------------------------------------------------


def measured(
    model: PretrainingModel, words: list[Word], settings: Mapping, given: Given
) -> dict[str, dict]:
    """Words, and the loss of the masked language model head under both ways of masking."""
    return {
        "words": words_in_parts.measured(model, given.text.wordpiece, words),
        "losses": losses(model, settings["run"], given.text, settings["batches"]),
    }
