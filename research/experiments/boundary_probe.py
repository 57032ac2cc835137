"""What boundary states hold, with and without the span boundary objective. Chapter:
`book/evidence/spans_and_boundaries`.

Each seed trains one tiny model with token masking until it has left the plateau. From there two
models go on, with the same blocks and the same masked spans: one with the masked language model
loss alone ("span"), one with both losses ("span+sbo"). So neither has an earlier exit from the
plateau. Then all weights are frozen, one name is hidden in each block, and a linear probe reads two
states: those of the boundary tokens, or those of the span's own first and last token. Controls: the
start itself, untrained weights, and labels shuffled before the probe is fitted.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from research.grid import CURVES, curve, rounded, text_facts
from research.measurements.names import Block, named_blocks, with_specials
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train

ROWS = 64
FIT_DOCUMENTS = 1_000
LONGEST = 4
RIDGE = 10.0
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


@dataclass(frozen=True)
class HiddenNames:
    """One hidden name in each block. ids: int64 [B,n] with [CLS] and [SEP]; real: bool [B,n];
    spans: int64 [B,2], first and last place of the name in the input; labels: question → int64
    [B]."""

    ids: Tensor
    real: Tensor
    spans: Tensor
    labels: dict[str, Tensor]


def hidden_names(
    blocks: Iterable[Block], wordpiece: WordPiece, kinds: list[str], seed: int
) -> HiddenNames:
    """One name of each block that touches neither of its edges, every token of it replaced by
    [MASK].

    labels: "kind", the label's number in `kinds`; "length" in tokens, `LONGEST` and more are one;
    "first token", an id.
    """
    rng = np.random.default_rng(seed)
    rows = []
    spans = []
    labels = []
    for ids, names in blocks:
        inner = [name for name in names if 0 < name.first and name.last < len(ids) - 1]
        if inner:
            first, last, label, _ = inner[rng.integers(len(inner))]
            labels.append((kinds.index(label), min(last - first + 1, LONGEST) - 1, ids[first]))
            rows.append(
                np.concatenate(
                    [ids[:first], np.full(last - first + 1, wordpiece.mask_id), ids[last + 1 :]]
                )
            )
            spans.append((first + 1, last + 1))  # [CLS] in front
    ids, real = with_specials(rows, wordpiece)
    columns = torch.tensor(np.array(labels, dtype=np.int64)).T
    questions = dict(zip(("kind", "length", "first token"), columns, strict=True))
    return HiddenNames(
        torch.from_numpy(ids), torch.from_numpy(real), torch.tensor(spans), questions
    )


@torch.no_grad()
def states(encoder: BertEncoder, names: HiddenNames) -> dict[str, Tensor]:
    """Two final states of each block, one after the other, [B,2H]: the boundary tokens'; the name's
    first and last."""
    outside = []
    inside = []
    for start in range(0, len(names.ids), ROWS):
        rows = slice(start, start + ROWS)
        hidden = encoder(names.ids[rows], attention_mask=names.real[rows])
        row = torch.arange(len(hidden))[:, None]
        spans = names.spans[rows]
        outside.append(hidden[row, spans + torch.tensor([-1, 1])].flatten(1))
        inside.append(hidden[row, spans].flatten(1))
    return {"boundary": torch.cat(outside), "inside": torch.cat(inside)}


def probe(fit: Tensor, fit_labels: Tensor, test: Tensor, test_labels: Tensor) -> float:
    """Accuracy of a linear probe: least squares on one-hot labels with a ridge, on standardized
    states [B,F]."""
    mean = fit.mean(0)
    deviation = fit.std(0) + 1e-6
    design, asked = ((part - mean) / deviation for part in (fit, test))
    targets = torch.nn.functional.one_hot(
        fit_labels, int(max(fit_labels.max(), test_labels.max())) + 1
    ).float()
    shares = targets.mean(0)
    weights = torch.linalg.solve(
        design.T @ design + RIDGE * torch.eye(design.shape[1]), design.T @ (targets - shares)
    )
    return ((asked @ weights + shares).argmax(1) == test_labels).float().mean().item()


def probes(
    encoder: BertEncoder, fit: HiddenNames, test: HiddenNames, shuffle: int | None = None
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
                labels = labels[
                    torch.randperm(len(labels), generator=torch.Generator().manual_seed(shuffle))
                ]
            results[place][question] = probe(
                known[place], labels, asked[place], test.labels[question]
            )
    return results


def examples(wordpiece: WordPiece) -> tuple[HiddenNames, HiddenNames]:
    """Names of training documents to fit the probe, and of held-out documents to test it."""
    documents = [
        document for document, _ in zip(almanac.read("train"), range(FIT_DOCUMENTS), strict=False)
    ]
    kinds = sorted({label for document in documents for *_, label, _ in document["entities"]})
    fit = hidden_names(named_blocks(documents, wordpiece), wordpiece, kinds, seed=1)
    return fit, hidden_names(
        named_blocks(almanac.read("validation"), wordpiece), wordpiece, kinds, seed=2
    )


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
    model = runs.new_model(run, text, objective)
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
        return go_on(
            trained("start", seed)[0], replace(settings["go_on"], objective=arm, seed=seed), text
        )

    return text_facts(text) | {"fitted_on": len(fit.ids), "tested_on": len(test.ids)}, (
        trained,
        fit,
        test,
    )


def one(
    arm: str, seed: int, settings: Mapping, trained: Callable, fit: HiddenNames, test: HiddenNames
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
