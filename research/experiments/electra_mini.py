"""ELECTRA against masked language modeling in miniature, at equal computation. Evidence:
`book/evidence/relatives`.

Tiny encoders on the almanac, seeds paired: the same first weights of the encoder, the same blocks,
the same chosen tokens. Twice: from scratch, and going on from a masked language model that has left
the plateau (in ELECTRA its encoder and embeddings; the generator's layers and both heads start
anew). The losses cannot be compared, so every encoder, the generator left aside, is measured on the
tasks of `frozen_states`. Variant: the likeliest token instead of a sampled one. Control: the
untrained encoder.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from research.grid import CURVE_EVERY, curves, rounded, text_facts
from research.measurements import frozen_states as tasks
from spanbert_tutorial import almanac
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.model import PretrainingModel, start_positions_from_sinusoids
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.relatives.electra import (
    ElectraConfig,
    ElectraPretraining,
    electra_flops,
    mlm_flops,
    replace_tokens,
    sample,
    top_prediction,
)

# What is trained, and from where: "scratch", or the "start", which is the masked language model
# from scratch.
SEEDS = 5
ARMS = (
    ("untrained", "scratch"),
    ("mlm", "scratch"),
    ("electra", "scratch"),
    ("mlm", "start"),
    ("electra", "start"),
    ("arg-max", "start"),
)
PICKS = {"electra": sample, "arg-max": top_prediction}
MLM = Run(objective="mlm", steps=1_000)
GO_ON = replace(MLM, steps=400, peak_learning_rate=2e-3)
LIVE = replace(
    GO_ON, steps=110
)  # what the chapter does again, from the shipped model: 99 steps of ELECTRA
TOLERANCE = {
    "mlm": 0.1,
    "rtd": 0.04,
}  # nats by which a point of a curve may differ on another machine
SETTINGS = {"scratch": MLM, "go_on": GO_ON, "curve_every": CURVE_EVERY}

Model = PretrainingModel | ElectraPretraining


def cost_ratio(run: Run, vocabulary: int) -> float:
    """Computation of a step of ELECTRA divided by that of a step of the masked language model of
    the same size."""
    config = ElectraConfig.preset(run.size, vocab_size=vocabulary)
    chosen = Objective.named("mlm").masking.budget(run.max_length - 2)
    return sum(electra_flops(config, run.max_length, chosen).values()) / mlm_flops(
        config, run.max_length, chosen
    )


def new_model(run: Run, text: EncodedText, **changes: Any) -> ElectraPretraining:
    """An untrained pair; its discriminator starts from the weights that `runs.new_model` gives an
    encoder."""
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = ElectraConfig.preset(
        run.size, vocab_size=len(text.wordpiece), initializer_range=run.initializer_range, **off
    )
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        model = ElectraPretraining(config, text.wordpiece.mask_id, run.seed, **changes)
    if run.sinusoidal_positions:
        start_positions_from_sinusoids(model.discriminator)
    return model


def same_cost(run: Run, text: EncodedText) -> Run:
    """As many steps of ELECTRA as cost what the run's steps of the masked language model cost."""
    return replace(run, steps=round(run.steps / cost_ratio(run, len(text.wordpiece))))


def go_on(
    arm: str, start: BertEncoder, run: Run, text: EncodedText
) -> tuple[ElectraPretraining, History]:
    """A pair whose discriminator and embeddings start as `start`, trained as long as the run says,
    in steps of its own. arm: of `PICKS`."""
    pair = new_model(run, text, pick=PICKS[arm])
    pair.discriminator.load_state_dict(start.state_dict(), strict=False)  # all but the head
    # Like a PretrainingModel, a pair returns its losses for a batch.
    _, history = runs.pretrain(run, text, pair)  # type: ignore[arg-type]
    return pair.cpu(), history


def train(
    arm: str,
    begin: str,
    seed: int,
    text: EncodedText,
    start: PretrainingModel | None,
    scratch: Run = MLM,
    further: Run = GO_ON,
) -> tuple[Model, History]:
    """The trained model of one arm and its history. start: for arms that go on."""
    run = (
        replace(scratch, seed=seed) if begin == "scratch" else replace(further, seed=1_000 + seed)
    )  # other blocks
    if arm == "untrained":
        return runs.new_model(run, text).eval(), History()
    if arm == "mlm":
        model, history = runs.pretrain(
            run, text, copy.deepcopy(start) if begin == "start" else None
        )
        return model.cpu(), history
    run = same_cost(run, text)
    if start is not None:
        return go_on(arm, start.encoder, run, text)
    pair = new_model(run, text, pick=PICKS[arm])
    _, history = runs.pretrain(run, text, pair)  # type: ignore[arg-type]  # as in `go_on`
    return pair.cpu(), history


@torch.no_grad()
def detection(
    model: ElectraPretraining, text: EncodedText, length: int = MLM.max_length
) -> dict[str, dict[str, float]]:
    """On held-out text, replaced in each way of `PICKS`; the same chosen tokens for every model.

    replaced: share of the chosen tokens whose replacement is another token; accuracy: over all
    tokens; always_original: the accuracy of saying "original" everywhere; found: share of the
    replaced tokens with a positive logit; false_alarms: the same of the others."""
    figures = {}
    for name, pick in PICKS.items():
        data = PretrainingData(
            text.held_out, text.wordpiece, Objective.named("mlm").mask_only, length, 64
        )
        draws = torch.Generator().manual_seed(0)
        chosen = 0
        replaced = []
        said = []
        for batch in data.epoch(np.random.default_rng(12345)):
            ids, labels = replace_tokens(batch, pick(model.generate(batch), draws))
            real = batch["attention_mask"].bool()
            chosen += len(batch["masked_positions"])
            replaced.append(labels[real])
            said.append(model.detect(batch, ids)[real] > 0)
        labels = torch.cat(replaced)
        predictions = torch.cat(said)
        figures[name] = {
            "replaced": labels.sum().item() / chosen,
            "accuracy": (labels == predictions).float().mean().item(),
            "always_original": 1 - labels.float().mean().item(),
            "found": predictions[labels].float().mean().item(),
            "false_alarms": predictions[~labels].float().mean().item(),
        }
    return figures


def measured(
    encoder: BertEncoder, text: EncodedText, seed: int, mentions: list
) -> dict[str, float]:
    """Accuracy on unseen sentences: tags after fine-tuning, tags and roles read from the frozen
    last layer."""
    tokens = text.wordpiece
    rows, tests = tasks.samples(tokens, seed)
    seen, unseen = (tasks.tag_states(encoder, part, tokens) for part in (rows, tests))
    found = {
        "tags, frozen": tasks.accuracy(
            tasks.linear_probe(seen[0][-1], seen[1]), unseen[0][-1], unseen[1]
        )
    }
    known, asked = tasks.role_split(mentions, seed)
    probe = tasks.linear_probe(tasks.states_at(encoder, known, tokens), tasks.roles_of(known))
    found["roles, frozen"] = tasks.accuracy(
        probe, tasks.states_at(encoder, asked, tokens), tasks.roles_of(asked)
    )
    tuned = copy.deepcopy(encoder)
    classifier = tasks.tune(tuned, rows, tokens, seed)
    states, tags = tasks.tag_states(tuned, tests, tokens)
    return found | {"tags, fine-tuned": tasks.accuracy(classifier, states[-1], tags)}


def figures_of(
    seed: int, model: Model, history: History, text: EncodedText, mentions: list
) -> dict:
    """The figures of one run."""
    encoder = model.discriminator if isinstance(model, ElectraPretraining) else model.encoder
    metrics: dict[str, Any] = {
        "steps": len(history.steps),
        "curve": own_curves(history),
        "tasks": measured(encoder, text, seed, mentions),
    }
    if isinstance(model, ElectraPretraining):
        metrics["detection"] = detection(model, text)
    return rounded(metrics)


def own_curves(history: History) -> dict[str, list[float]]:
    """Means over steps of each loss, without their sum."""
    return {name: values for name, values in curves(history).items() if name != "loss"}


def live(text: EncodedText, run: Run = LIVE) -> tuple[ElectraPretraining, dict[str, list[float]]]:
    """A short run that starts from the shipped tiny model, and its curves."""
    start, _ = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    pair, history = go_on("electra", start.encoder, same_cost(run, text), text)
    return pair, own_curves(history)


def prepare(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The almanac's text, the mentions that ask for roles, and the start of a seed, trained
    once."""
    text = open_text("almanac", folder)
    documents = [document for split in ("validation", "test") for document in almanac.read(split)]
    mentions = tasks.town_mentions(documents, text.wordpiece)

    @lru_cache(maxsize=1)
    def start(seed: int) -> tuple[Model, History]:
        return train("mlm", "scratch", seed, text, None, settings["scratch"])

    ratio = {"cost_ratio": round(cost_ratio(settings["scratch"], len(text.wordpiece)), 4)}
    return text_facts(text) | ratio, (text, mentions, start)


def one(
    arm: tuple[str, str],
    seed: int,
    settings: Mapping,
    text: EncodedText,
    mentions: list,
    start: Callable,
) -> dict:
    """One run, trained and measured."""
    what, begin = arm
    if arm == ("mlm", "scratch"):
        model, history = start(seed)
    else:
        begun = start(seed)[0] if begin == "start" else None
        model, history = train(
            what, begin, seed, text, begun, settings["scratch"], settings["go_on"]
        )
    return figures_of(seed, model, history, text, mentions)


def beside(settings: Mapping, text: EncodedText, *_: object) -> dict:
    """The chapter's run."""
    again = replace(settings["go_on"], steps=min(LIVE.steps, settings["go_on"].steps))
    kept = {"run": asdict(again), "curve": live(text, again)[1]}
    return {"live": kept, "live_tolerance": TOLERANCE}
