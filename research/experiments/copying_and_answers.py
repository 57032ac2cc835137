"""Does a model answer worse because it cannot copy? Chapter: `book/evidence/masking_and_copying`.

Four models of one size were trained from one checkpoint on the same text (`--arms`, a folder with
the checkpoints `mlm`, `mlmnsp`, `spansbo` and `mix`; `HOW_MADE`). There
is one of each, so their scores describe four models, not four methods.

"nothing": a finished model as it is. "nothing, one segment": question and context share one
segment, because models of one segment have never seen a second. The others continue for a short
while with another objective. If token masking teaches copying, and answering needs copying, then a
model of tokens that continues with spans loses both, and a model of spans that continues with
tokens gains both. The control continues with its own masking: the same text, steps and learning
rate. A seed draws the order of the blocks, the masks, the order of the questions and the new head.

The primary measure, the expected signs and what each outcome means were fixed before the first run:
`CLAIMS`. Two things changed on the way. A first version fine-tuned on 4,096 questions in long
windows; after that no model answers (F1 21 in both of its rows, where a program that looks for
words of the right type gets 26), so it was stopped after two rows. And three seeds of each
continuation were planned. After one, two fine-tunings of the same continuation were 7 F1 apart, so
that three could not have decided anything. The finished models got the three seeds instead.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from research.experiments import copied_names
from research.experiments.one_segment import in_one_segment
from research.experiments.spans_and_boundaries import kept_or_trained
from research.experiments.spans_on_wikipedia import begun_from
from research.grid import as_json, fingerprint, text_facts
from research.measurements import copying
from research.results import rounded
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.checkpoints import continue_from
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import GAPS_SEED, held_out_data
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import RUNS
from spanbert_tutorial.tasks import squad
from spanbert_tutorial.tasks.question_answering import PRESETS, fine_tune
from spanbert_tutorial.tasks.real_questions import answered
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import encode_corpus

FINISHED = ("mlm", "mlmnsp", "spansbo", "mix")
NOTHING = "nothing"
ONE_SEGMENT = "nothing, one segment"
TRAINED_ON, ASKED = "train-v1.1-part", "dev-v1.1-half"
ARM = ("start", "goes_on")
SEEDS = 3
CROSSED = (("mlm", "mlm"), ("mlm", "span"), ("spansbo", "mlm"), ("spansbo", "span"))
ONCE = (
    *((start, ONE_SEGMENT) for start in ("mlm", "spansbo")),  # have never seen a second
    *CROSSED,
    ("spansbo", "mlm-wholeword"),
)
ARMS = (*((start, NOTHING) for start in FINISHED), *ONCE)
RUN = replace(RUNS["mini"], steps=600, max_length=128, batch_size=32, peak_learning_rate=1e-3)
CLAIMS = {
    "copying moves": "names said again, last token given back, %: a model that goes on with tokens "
    "above the same model that goes on with spans, from both starts",
    "answers follow": "F1 on SQuAD 1.1: the same sign, by at least a point, if copying is the "
    "cause; an interval around zero, or the other sign, acquits it",
    "whole words": "F1: spansbo that goes on with whole words, which leave no part of a word to copy "
    "by. If copying is the cause, as low as with spans; if not, as high as with tokens. (Added after "
    "the first seed of the crossing, before any run with whole words.)",
    "pairs": "F1: mlm that goes on with pairs below mlm that goes on with mlm",
}
# by the run that made the finished models, once, on one graphics card. f1: of two fine-tunings
# each, in windows of 256 tokens (preset small, batches of 16, two epochs), on all 5,665 questions
HOW_MADE = {
    "made_on": "one NVIDIA H100 80GB HBM3",
    "start": "almanac, mlm, 1,500 steps of 32 blocks of 64 tokens",
    "text": "Wikipedia, 52.0 million tokens, without the titles of SQuAD's development set",
    "steps": 9_500,
    "batch_size": 128,
    "max_length": 256,
    "peak_learning_rate": 1.5e-3,
    "seconds": 371,  # for all four
    "million_tokens": {"mlm": 278, "mlmnsp": 304, "spansbo": 278, "mix": 278},
    "held_out_nats": {
        "mlm": {"token": 2.46, "span": 5.70},
        "mlmnsp": {"token": 2.69, "span": 5.87},
        "spansbo": {"token": 5.58, "span": 5.47},
        "mix": {"token": 2.61, "span": 5.51},
    },
    "f1": {
        "mlm": [51.7, 47.0],
        "mlmnsp": [41.8, 45.2],
        "spansbo": [47.1, 47.8],
        "mix": [38.5, 33.0],
    },
}
SETTINGS = {
    "run": RUN,
    "batches": 40,  # of unseen text, for rare tokens
    "names": 300,  # of each kind
    "questions": 11_877,  # all of them
    "asked_every": 3,  # of the questions of the test part
    "fine_tuning": replace(PRESETS["short-first"], epochs=2.0),
    "claims": CLAIMS,
}


class Given(NamedTuple):
    """arms: folder of the finished models; models: folder that keeps those that continued."""

    text: EncodedText
    arms: Path
    models: Path
    names: dict[str, list[copied_names.Name]]
    train: list[Question]
    asked: list[Question]


def prepare(
    folder: Path,
    settings: Mapping,
    corpus: Path,
    valid: Path,
    arms: Path,
    data: Path,
    models: Path,
) -> tuple[dict, tuple]:
    """Text to continue with, unseen text, names to hide, questions. data: a folder of SQuAD files."""
    left_out = set(data_path("squad_dev_titles.txt").read_text(encoding="utf-8").splitlines())
    text = open_text(corpus.as_posix(), folder / "corpus", arms / FINISHED[0], leave_out=left_out)
    encode = text.wordpiece.encode_many, len(text.wordpiece)
    text = replace(text, held_out=encode_corpus(documents(valid), *encode, folder / "valid"))
    names = some_names(valid, text.wordpiece, settings["names"])
    train = squad.read(data / f"{TRAINED_ON}.json.xz")
    asked = squad.read(data / f"{ASKED}.json.xz")[:: settings["asked_every"]]
    facts = {
        "begun_from": {name: begun_from(arms / name) for name in FINISHED},
        "names_asked": {name: len(some) for name, some in names.items()},
        "questions_known": [len(train), len(asked)],
        "questions_fingerprint": fingerprint(train, asked),
    }
    return text_facts(text) | facts, (Given(text, arms, models, names, train, asked),)


def beside(settings: Mapping, given: Given) -> dict:
    """What is known of the finished models."""
    return {"finished_models": HOW_MADE}


def some_names(valid: Path, wordpiece: WordPiece, most: int) -> dict[str, list[copied_names.Name]]:
    """Names of unseen text, those that their block says again and those that it does not."""
    names = copied_names.drawn(documents(valid), wordpiece)
    return {
        told: [name for name in names if name.again == again][:most]
        for told, again in copied_names.STANDS.items()
    }


def one(arm: tuple[str, str], seed: int, settings: Mapping, given: Given) -> dict:
    """A model that continues, or a finished one: what it copies, and what it answers."""
    start, goes_on = arm
    model = model_of(start, goes_on, seed, settings, given)
    found = {"copying": copied(model, settings, given)}
    if goes_on == ONE_SEGMENT:  # the encoder no longer hears of a second one
        in_one_segment(model.encoder)
    return rounded(found | {"squad": answers(model, seed, settings, given)})


def model_of(
    start: str, goes_on: str, seed: int, settings: Mapping, given: Given
) -> PretrainingModel:
    """Trained, kept from before, or finished."""
    folder = given.arms / start
    if goes_on in (NOTHING, ONE_SEGMENT):
        return continue_from(folder, "mlm")[0]
    run = replace(settings["run"], objective=goes_on, seed=seed)
    facts = as_json({"run": run, "begun_from": begun_from(folder), **text_facts(given.text)})

    def train() -> tuple:
        batches = runs.data_of(run, given.text).batches(np.random.default_rng(1_000 + seed))
        begun = continue_from(folder, goes_on, seed)[0]
        return begun, runs.train(begun, batches, run.recipe())

    name = f"{start}-{goes_on.replace('+', '-')}-{seed}"
    return kept_or_trained(given.models / name, facts, train, given.text.wordpiece, goes_on)[0]


def copied(model: PretrainingModel, settings: Mapping, given: Given) -> dict:
    """Rare tokens under both ways of hiding, and names, hidden whole or in part."""
    run = replace(settings["run"], objective="mlm", by_length=False)
    rare = copying.rare_tokens(given.text.train.ids, len(given.text.wordpiece))
    found: dict = {}
    for way, blocks in held_out_data(run, given.text).items():
        batches = islice(blocks.epoch(np.random.default_rng(GAPS_SEED)), settings["batches"])
        found[way] = copying.measured(model, batches, rare)
    for told, some in given.names.items():
        for how in copied_names.HIDDEN:
            right = copied_names.right(some, how, model, given.text.wordpiece)
            found[f"{how}, {told}"] = float(right.mean())
    return found


def answers(model: PretrainingModel, seed: int, settings: Mapping, given: Given) -> dict:
    """Scores on questions after fine-tuning on others, the same for all arms of a seed."""
    order = np.random.default_rng(seed).permutation(len(given.train))
    questions = [given.train[number] for number in order[: settings["questions"]]]
    tuning = replace(settings["fine_tuning"], seed=seed)
    answerer, _ = fine_tune(model.encoder, given.text.wordpiece, questions, tuning)
    scores = squad.score(*answered(answerer, given.asked)[:2])
    return {name: scores[name] for name in ("exact", "f1")}
