"""What boundary states hold, with and without the span boundary objective. Chapter: `book/spanbert/boundary`.

    python -m spanbert_tutorial.experiments.boundary_probe --output FILE

Each seed trains one tiny model with token masking until it has left the plateau. From there two models go on, with the
same blocks and the same masked spans: one with the masked language model loss alone ("span"), one with both losses
("span+sbo"). So neither has an earlier exit from the plateau. Then all weights are frozen, one name is hidden in each
block, and a linear probe reads two states: those of the boundary tokens, or those of the span's own first and last
piece. Controls: the start itself, untrained weights, and labels shuffled before the probe is fitted.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from spanbert_tutorial import almanac, runs
from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.experiments.continued import GO_ON, START, command, curve, go_on, keep
from spanbert_tutorial.experiments.names import Block, named_blocks, with_specials
from spanbert_tutorial.wordpiece import WordPiece

ARMS = ("span", "span+sbo")
SEEDS, ROWS = 5, 64
FIT_DOCUMENTS, LONGEST, RIDGE = 1_000, 4, 10.0


@dataclass(frozen=True)
class HiddenNames:
    """One hidden name in each block. ids: int64 [B,n] with [CLS] and [SEP]; real: bool [B,n]; spans: int64 [B,2], first
    and last place of the name in the input; labels: question → int64 [B]."""

    ids: Tensor
    real: Tensor
    spans: Tensor
    labels: dict[str, Tensor]


def hidden_names(blocks: Iterable[Block], wordpiece: WordPiece, kinds: list[str], seed: int) -> HiddenNames:
    """One name of each block that touches neither of its edges, every piece of it replaced by [MASK].

    labels: "kind", the label's number in `kinds`; "length" in pieces, `LONGEST` and more are one; "first piece", an id.
    """
    rng, rows, spans, labels = np.random.default_rng(seed), [], [], []
    for ids, names in blocks:
        inner = [name for name in names if 0 < name.first and name.last < len(ids) - 1]
        if inner:
            first, last, label = inner[rng.integers(len(inner))]
            labels.append((kinds.index(label), min(last - first + 1, LONGEST) - 1, ids[first]))
            rows.append(np.concatenate([ids[:first], np.full(last - first + 1, wordpiece.mask_id), ids[last + 1 :]]))
            spans.append((first + 1, last + 1))  # [CLS] in front
    ids, real = with_specials(rows, wordpiece)
    columns = torch.tensor(np.array(labels, dtype=np.int64)).T
    questions = dict(zip(("kind", "length", "first piece"), columns, strict=True))
    return HiddenNames(torch.from_numpy(ids), torch.from_numpy(real), torch.tensor(spans), questions)


@torch.no_grad()
def states(encoder: BertEncoder, names: HiddenNames) -> dict[str, Tensor]:
    """Two final states of each block, one after the other, [B,2H]: the boundary tokens'; the name's first and last."""
    outside, inside = [], []
    for start in range(0, len(names.ids), ROWS):
        rows = slice(start, start + ROWS)
        hidden = encoder(names.ids[rows], None, names.real[rows])
        row, spans = torch.arange(len(hidden))[:, None], names.spans[rows]
        outside.append(hidden[row, spans + torch.tensor([-1, 1])].flatten(1))
        inside.append(hidden[row, spans].flatten(1))
    return {"boundary": torch.cat(outside), "inside": torch.cat(inside)}


def probe(fit: Tensor, fit_labels: Tensor, test: Tensor, test_labels: Tensor) -> float:
    """Accuracy of a linear probe: least squares on one-hot labels with a ridge, on standardised states [B,F]."""
    mean, deviation = fit.mean(0), fit.std(0) + 1e-6
    design, asked = ((part - mean) / deviation for part in (fit, test))
    targets = torch.nn.functional.one_hot(fit_labels, int(max(fit_labels.max(), test_labels.max())) + 1).float()
    shares = targets.mean(0)
    weights = torch.linalg.solve(design.T @ design + RIDGE * torch.eye(design.shape[1]), design.T @ (targets - shares))
    return ((asked @ weights + shares).argmax(1) == test_labels).float().mean().item()


def probes(encoder: BertEncoder, fit: HiddenNames, test: HiddenNames, shuffle: int | None = None) -> dict:
    """Accuracy for each place of the states and each question. shuffle: seed, to shuffle the labels for fitting."""
    known, asked, results = states(encoder.eval(), fit), states(encoder, test), {}
    for place in known:
        results[place] = {}
        for question, labels in fit.labels.items():
            if shuffle is not None:
                labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(shuffle))]
            results[place][question] = probe(known[place], labels, asked[place], test.labels[question])
    return results


def examples(wordpiece: WordPiece) -> tuple[HiddenNames, HiddenNames]:
    """Names of training documents to fit the probe, and of held-out documents to test it."""
    documents = [document for document, _ in zip(almanac.read("train"), range(FIT_DOCUMENTS), strict=False)]
    kinds = sorted({label for document in documents for *_, label, _ in document["entities"]})
    fit = hidden_names(named_blocks(documents, wordpiece), wordpiece, kinds, seed=1)
    return fit, hidden_names(named_blocks(almanac.read("validation"), wordpiece), wordpiece, kinds, seed=2)


def run_all(output: Path, seeds: int, begin: Callable = runs.pretrain, further: Callable = go_on) -> None:
    """All seeds; `output` is written whole after each run. begin, further: as `runs.pretrain` and `go_on`."""
    rows: list[dict] = []
    with TemporaryDirectory() as scratch:
        text = runs.open_text("almanac", scratch)
        fit, test = examples(text.wordpiece)

        def add(arm: str, seed: int, encoder: BertEncoder, losses: list[float], shuffle: int | None = None) -> None:
            rows.append({"arm": arm, "seed": seed, "probe": probes(encoder, fit, test, shuffle), "curve": losses})
            print(arm, seed, rows[-1]["probe"], flush=True)
            settings = {"go_on": asdict(GO_ON), "fitted_on": len(fit.ids), "tested_on": len(test.ids)}
            keep(output, "boundary_probe", seeds, rows, **settings)

        for seed in range(seeds):
            add("untrained", seed, runs.new_model(replace(START, seed=seed), text).encoder, [])
            start, history = begin(replace(START, seed=seed), text)
            add("start", seed, start.encoder, curve(history))
            for arm in ARMS:
                model, history = further(start, replace(GO_ON, objective=arm, seed=seed), text)
                add(arm, seed, model.encoder, curve(history))
            add("shuffled labels", seed, model.encoder, [], shuffle=seed)  # of the last arm, with the objective


def main(arguments: list[str] | None = None) -> int:
    return command("What boundary states hold, with and without the boundary objective.", run_all, SEEDS, arguments)


if __name__ == "__main__":
    sys.exit(main())
