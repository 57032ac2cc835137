"""What boundary states hold, with and without the span boundary objective. Chapter:
`book/evidence/spans_and_boundaries`.

Each seed trains one tiny model with token masking until it has left the plateau. From there two
models go on, with the same blocks and the same masked spans: one with the masked language model
loss alone ("span"), one with both losses ("span+sbo"). So neither has an earlier exit from the
plateau. Then all weights are frozen, one name is hidden in each block, and a linear probe reads two
states: those of the boundary tokens, or those of the span's own first and last token. Controls: the
start itself, untrained weights, and labels shuffled before the probe is fitted.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from research.grid import CURVES, curve, rounded, text_facts
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train
from spanbert_tutorial.spanbert.boundary_probe import (
    LONGEST,
    RIDGE,
    MaskedNames,
    mask_names,
    probe,
    states,
)
from spanbert_tutorial.spanbert.names import named_blocks

FIT_DOCUMENTS = 1_000
SEEDS = 5
GOING_ON = ("span", "span+sbo")  # objectives
ARMS = ("untrained", "start", *GOING_ON, "shuffled labels")
START = Run(objective="mlm", steps=1_000)
SETTINGS = {
    "start": START,
    "go_on": replace(START, steps=500, peak_learning_rate=2e-3),
    **CURVES,
    "fit_documents": FIT_DOCUMENTS,
    "longest": LONGEST,
    "ridge": RIDGE,
}


def probes(
    encoder: BertEncoder, fit: MaskedNames, test: MaskedNames, shuffle: int | None = None
) -> dict[str, dict[str, float]]:
    """Accuracy for each position of the states and each question. shuffle: seed, to shuffle the labels
    for fitting."""
    known = states(encoder.eval(), fit)
    asked = states(encoder, test)
    results: dict[str, dict[str, float]] = {}
    for place in known:
        results[place] = {}
        for question, labels in fit.labels.items():
            if shuffle is not None:
                generator = torch.Generator().manual_seed(shuffle)
                labels = labels[torch.randperm(len(labels), generator=generator)]
            fitted, scored = (known[place], labels), (asked[place], test.labels[question])
            results[place][question] = probe(*fitted, *scored)
    return results


def examples(wordpiece: WordPiece) -> tuple[MaskedNames, MaskedNames]:
    """Names of training documents to fit the probe, and of held-out documents to test it."""
    documents = list(islice(almanac.read("train"), FIT_DOCUMENTS))
    kinds = sorted({label for document in documents for *_, label, _ in document["entities"]})
    fit, test = (named_blocks(part, wordpiece) for part in (documents, almanac.read("validation")))
    return mask_names(fit, wordpiece, kinds, seed=1), mask_names(test, wordpiece, kinds, seed=2)


# --- the models of a seed -----------------------------------------------------------

Trained = tuple[PretrainingModel, History]


def go_on(
    start: PretrainingModel, run: Run, text: EncodedText, objective: Objective | None = None
) -> Trained:
    """A copy of `start`, trained further as `run` says. A boundary head, where the objective has
    one, begins untrained. objective: another one than the run's row, with the same heads.

    Runs of one seed see the same blocks with the same masks, whether they have that head or not.
    """
    objective = objective or Objective.named(run.objective)
    model = runs.new_model(run, text)
    model.tasks = objective.tasks
    model.encoder.load_state_dict(start.encoder.state_dict())
    model.masked_language_model.load_state_dict(start.masked_language_model.state_dict())
    data = replace(runs.training_data(run, text), objective=objective)
    batches = data.batches(np.random.default_rng(1_000 + run.seed))  # not those of the start
    return model, train(model, batches, run.recipe())


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text, names to fit the probe and to test it, and the models of a seed, each
    trained once."""
    text = open_text("almanac", folder)
    fit, test = examples(text.wordpiece)

    @lru_cache(maxsize=len(ARMS))
    def trained(arm: str, seed: int) -> Trained:
        start = replace(settings["start"], seed=seed)
        if arm == "untrained":
            return runs.new_model(start, text), History()
        if arm == "start":
            return runs.pretrain(start, text)
        run = replace(settings["go_on"], objective=arm, seed=seed)
        return go_on(trained("start", seed)[0], run, text)

    counts = {"fitted_on": len(fit.spans), "tested_on": len(test.spans)}
    return text_facts(text) | counts, (trained, fit, test)


def one(
    arm: str, seed: int, settings: Mapping, trained: Callable, fit: MaskedNames, test: MaskedNames
) -> dict:
    """What a probe reads from one model. With shuffled labels the model is the one of the boundary
    objective."""
    if arm == "shuffled labels":
        model, _ = trained(GOING_ON[-1], seed)
        return {"probe": rounded(probes(model.encoder, fit, test, shuffle=seed)), "curve": []}
    model, history = trained(arm, seed)
    return {
        "probe": rounded(probes(model.encoder, fit, test)),
        "curve": curve(history.losses.get("mlm", [])),
    }
