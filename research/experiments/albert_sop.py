"""Next sentence prediction and sentence order prediction, each asked the other's question. Chapter:
`book/evidence/input_formats`.

After ALBERT's Table 5, at tiny size on the almanac. For each seed one encoder learns masked
language modeling on pairs. Copies of it then learn NSP, SOP or nothing, here from whole pairs
without masks, so that few steps suffice. All are asked both questions about held-out pairs: with
their own head, and by a probe on the frozen state of [CLS]. A bag of words gets the same pairs.
Both labels are equally frequent, so guessing gives one half.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from research.grid import text_facts
from research.measurements.frozen_states import linear_probe
from research.results import rounded
from spanbert_tutorial.bert.masking import MaskedBlocks
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData, gather
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import train
from spanbert_tutorial.text.encoding import EncodedCorpus

TASKS = ("NSP", "SOP")
READERS = ("shared", "side by side")
ARM = "trained"
ARMS = ("none", *TASKS)
SEEDS = 3
START = Run(objective="mlm+nsp", steps=1_000)
TASK = replace(START, steps=500, peak_learning_rate=1e-3)
PROBED = 3_000  # training pairs that a probe learns from
SETTINGS = {"start": START, "task": TASK, "probed": PROBED}


OBJECTIVES = {"NSP": "mlm+nsp", "SOP": "mlm+sop"}


class WholePairs(PretrainingData):
    """Pairs in which nothing is masked, rows left out until both labels are equally frequent."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.labels is not None  # its objective reads pairs
        rows = [np.flatnonzero(self.labels == label) for label in (0, 1)]
        few = min(map(len, rows))
        rng = np.random.default_rng(0)
        kept = np.sort(np.concatenate([rng.choice(part, few, replace=False) for part in rows]))
        self.segments = [part[kept] for part in self.segments]
        self.labels = self.labels[kept]

    def masked_segment(self, ranges: np.ndarray, rng: np.random.Generator) -> MaskedBlocks:
        ids, lengths = gather(self.corpus, ranges, self.wordpiece.pad_id)
        return MaskedBlocks(ids, ids, np.zeros(ids.shape, dtype=bool), lengths)


def whole(
    task: str, text: EncodedText, run: Run = START
) -> tuple[PretrainingData, PretrainingData]:
    """The pairs of one of TASKS, of the training and of the held-out text."""
    objective = Objective.named(OBJECTIVES[task])

    def pairs(corpus: EncodedCorpus) -> WholePairs:
        return WholePairs(corpus, text.wordpiece, objective, run.max_length, run.batch_size)

    return pairs(text.train), pairs(text.held_out)


# --- the encoder --------------------------------------------------------------------


def masked_start(run: Run, text: EncodedText) -> PretrainingModel:
    """A model that has learned the masked words of pairs, and nothing about the pairs."""
    model = runs.new_model(replace(run, objective="mlm"), text)
    data = PretrainingData(
        text.train, text.wordpiece, Objective.named("mlm+nsp"), run.max_length, run.batch_size
    )
    learn(model, data, run)
    return model


def learn(model: PretrainingModel, data: PretrainingData, run: Run) -> None:
    """Trains the model in place; one seed is one order of the batches."""
    train(model, data.batches(np.random.default_rng(run.seed)), run.recipe())


def with_head(start: PretrainingModel, run: Run, text: EncodedText) -> PretrainingModel:
    """A copy of `start` with a new head that reads [CLS]."""
    model = runs.new_model(run, text)
    model.load_state_dict(start.state_dict(), strict=False)  # all but the new head
    return model.eval()


@torch.no_grad()
def states(
    model: PretrainingModel, data: PretrainingData, most: int | None = None
) -> tuple[Tensor, Tensor]:
    """The states of [CLS], float [rows,H], and the labels of all pairs or of about `most`, the same
    for every model."""
    batches = list(
        islice(data.epoch(np.random.default_rng(1)), most and -(-most // data.batch_size))
    )
    found = [model.encode(batch) for batch in batches]
    assert data.objective.paired is not None
    task = data.objective.paired.name
    return torch.cat([hidden[:, 0] for hidden in found]), torch.cat(
        [batch[task] for batch in batches]
    )


def accuracies(
    model: PretrainingModel, pairs: dict[str, tuple], probed: int = PROBED
) -> dict[str, dict[str, float]]:
    """For each of TASKS the share of held-out pairs that the model's head and a probe on [CLS] get
    right.

    pairs: task → what `whole` returns. probed: training pairs that a probe learns from."""
    results, head = (
        {},
        getattr(model, model.tasks[0].name),
    )  # of the task it was trained for; asked about both
    for task, (training, held_out) in pairs.items():
        learned, labels = states(model, training, probed)
        asked, wanted = states(model, held_out)
        probe = linear_probe(learned, labels, penalty=1e-2)
        with torch.no_grad():
            predictions = {"head": head(asked[:, None]), "probe": probe(asked)}
        results[task] = {
            name: (scores.argmax(-1) == wanted).double().mean().item()
            for name, scores in predictions.items()
        }
    return results


# --- the bag of words ---------------------------------------------------------------


def bags(data: PretrainingData, reader: str, most: int) -> tuple[Tensor, Tensor]:
    """Which tokens the first `most` pairs hold, float [rows,·], and their labels. reader "shared":
    1 where both segments have the token, [rows,V]; "side by side": one bag for each segment,
    [rows,2V]."""
    both = []
    for ranges in data.segments:
        bag = np.zeros((len(ranges[:most]), len(data.wordpiece)), dtype=np.float32)
        for row, (start, end) in enumerate(ranges[:most]):
            bag[row, data.corpus.ids[start:end]] = 1
        both.append(torch.from_numpy(bag))
    joined = both[0] * both[1] if reader == "shared" else torch.cat(both, dim=1)
    assert data.labels is not None
    return joined, torch.from_numpy(data.labels[:most])


def bag_of_words(
    training: PretrainingData, held_out: PretrainingData, reader: str, most: int = 6_000
) -> float:
    """Accuracy on held-out pairs of a logistic regression on bags, as in the chapter
    `book/bert/sentence_pairs`."""
    x, y = bags(training, reader, most)
    weights = torch.zeros(x.shape[1] + 1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=30, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.binary_cross_entropy_with_logits(
            x @ weights[:-1] + weights[-1], y.float(), reduction="sum"
        )
        value = value + weights[:-1].square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    x, y = bags(held_out, reader, most)
    scores = x @ weights.detach()[:-1] + weights.detach()[-1]
    return (
        ((scores > 1e-3) == y).double().mean().item()
    )  # not 0: ties then count alike on every machine


# --- a row --------------------------------------------------------------------------


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text and its whole pairs; and the encoder of a seed, which its arms share."""
    text = open_text("almanac", folder)
    pairs = {name: whole(name, text) for name in TASKS}

    @lru_cache(maxsize=1)
    def start(seed: int) -> PretrainingModel:
        return masked_start(replace(settings["start"], seed=seed), text)

    sizes = {name: len(held_out) for name, (_, held_out) in pairs.items()}
    return text_facts(text) | {"held_out_pairs": sizes}, (text, pairs, start)


def one(
    trained: str, seed: int, settings: Mapping, text: EncodedText, pairs: dict, start: Callable
) -> dict:
    """One task learned, or none, and both questions asked."""
    task = settings["task"]
    run = replace(task, objective=OBJECTIVES.get(trained, task.objective), seed=seed)
    model = with_head(start(seed), run, text)
    if trained in pairs:
        learn(model, pairs[trained][0], run)
    return {"asked": rounded(accuracies(model, pairs, settings["probed"]))}
