"""Easy text first, at mini size on a real corpus, with controls and seeds. Chapter:
`book/evidence/plateau`.

Token masking, equal budgets, paired seeds: a run on the corpus alone against one whose first half
reads the almanac, cut into tokens of the corpus's vocabulary. The second warms up twice, so a run
whose first half is a stage on the corpus stands beside them.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from research.grid import CURVE_EVERY, curve, rounded, text_facts
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.evaluation import held_out_metrics
from spanbert_tutorial.pretraining.presets import RUNS, Run

RUN = replace(RUNS["mini"], objective="mlm", steps=1_500, max_length=64, batch_size=32)
# tokens of the corpus's vocabulary
SETTINGS = {"run": RUN, "vocab_size": 8_000, "curve_every": CURVE_EVERY}
# name → text of the first half of the steps, if that is a stage of its own
SEEDS = 3
ARMS = {"corpus only": None, "corpus, then corpus": "corpus", "almanac first": "almanac"}


def in_stages(run: Run, first: EncodedText | None, text: EncodedText) -> dict:
    """Trains one model, perhaps half of the steps on a first text, then on the other; figures of
    the held-out part of the other.

    Each stage warms up and falls to rate 0 by itself, as a run and its `--init-from` do; its
    batches are its own."""
    began = time.monotonic()
    model = runs.new_model(run, text)
    curves = {}
    half = 0 if first is None else run.steps // 2
    stages = [("corpus", text, replace(run, steps=run.steps - half))]
    if first is not None:
        stages.insert(0, ("first", first, replace(run, steps=half, seed=run.seed + 1_000)))
    for name, source, stage in stages:
        _, history = runs.pretrain(stage, source, model)
        curves[name] = curve(history.losses["mlm"])
    measured = rounded(held_out_metrics(model, run, text)["token"])
    return {"curves": curves, "held_out": measured, "seconds": round(time.monotonic() - began)}


def prepare(folder: Path, settings: Mapping, corpus: Path) -> tuple[dict, tuple]:
    """The corpus, and the almanac in its tokens."""
    text = open_text(corpus.as_posix(), folder / "corpus", vocab_size=settings["vocab_size"])
    easy = open_text("almanac", folder / "almanac", folder / "corpus" / "tokenizer.json")
    facts = {"almanac": text_facts(easy), "corpus": text_facts(text)}
    unigram = {name: told["unigram_entropy"] for name, told in facts.items()}
    sizes = {name: facts["corpus"][name] for name in ("tokens", "vocabulary")}
    return {"texts": facts, "unigram_entropy": unigram, **sizes}, (
        {None: None, "corpus": text, "almanac": easy},
    )


def one(arm: str, seed: int, settings: Mapping, texts: Mapping) -> dict:
    """One run, in one stage or in two."""
    return in_stages(replace(settings["run"], seed=seed), texts[ARMS[arm]], texts["corpus"])
