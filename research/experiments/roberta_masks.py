"""Static masks, ten copies and dynamic masks over 40 epochs of a small text. Evidence:
`book/evidence/relatives`.

After RoBERTa's §4.1 and Table 1, at tiny size. With one seed the three ways start from the same
weights, see the same blocks in the same order and begin with the same masks.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from research.grid import text_facts
from research.results import CURVES, curve, rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import evaluate
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train
from spanbert_tutorial.relatives.roberta import view_batches
from spanbert_tutorial.text.encoding import EncodedCorpus

EPOCHS = 40
DOCUMENTS = 160
MEASURED = 250
ARM = "way"
SEEDS = 3
ARMS = {"static": 1, "ten copies": 10, "dynamic": None}  # how many masks each block has
RUN = Run(
    objective="mlm", batch_size=16, steps=EPOCHS * math.ceil(482 / 16)
)  # the first documents: 482 blocks
SETTINGS = {"run": RUN, "documents": DOCUMENTS, "measured": MEASURED, **CURVES}


def first_documents(corpus: EncodedCorpus, documents: int) -> EncodedCorpus:
    """The corpus cut off behind that many documents."""
    ends = corpus.document_ends[:documents]
    end = corpus.document_ends[documents - 1]
    return EncodedCorpus(corpus.ids[:end], corpus.sentence_ends[corpus.sentence_ends <= end], ends)


def small(text: EncodedText, documents: int = DOCUMENTS, measured: int = MEASURED) -> EncodedText:
    """The first documents of both parts."""
    parts = first_documents(text.train, documents), first_documents(text.held_out, measured)
    return EncodedText(*parts, text.wordpiece)


def pretrain(way: str, run: Run, text: EncodedText) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with masks of that way."""
    model = runs.new_model(run, text)
    data = runs.training_data(run, text)
    order, masks = (np.random.default_rng([run.seed, stream]) for stream in range(2))
    return model, train(model, view_batches(data, ARMS[way], order, masks), run.recipe())


def losses(model: PretrainingModel, run: Run, text: EncodedText) -> dict[str, dict[str, float]]:
    """Loss in nats and accuracy with new masks, every chosen token hidden: on held-out text, and on
    the blocks of the training. The same masks for every model; no model was trained with them."""
    results = {}
    for name, corpus in {"held out": text.held_out, "trained on": text.train}.items():
        arguments = (
            corpus,
            text.wordpiece,
            runs.training_data(run, text).objective.mask_only,
            run.max_length,
            64,
        )
        data = PretrainingData(*arguments)
        figures = evaluate(model, data, np.random.default_rng(12345))
        results[name] = {"loss": figures["mlm"], "accuracy": figures["accuracy"]}
    return results


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The first documents of the almanac."""
    text = small(open_text("almanac", folder), settings["documents"], settings["measured"])
    blocks = len(runs.training_data(settings["run"], text))
    run = settings["run"]
    return text_facts(text) | {
        "blocks": blocks,
        "epochs": run.steps / math.ceil(blocks / run.batch_size),
    }, (text,)


def one(way: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run, trained and measured."""
    run = replace(settings["run"], seed=seed)
    model, history = pretrain(way, run, text)
    return {"new_masks": rounded(losses(model, run, text)), "curve": curve(history.losses["mlm"])}


def beside(settings: Mapping, text: EncodedText) -> dict:
    """A short run that the evidence page does again."""
    run = replace(settings["run"], steps=min(100, settings["run"].steps))
    again = curve(pretrain("dynamic", run, text)[1].losses["mlm"])
    return {"short": {"way": "dynamic", "run": asdict(run), "curve": again}}
