"""Easy text first, at mini size on a real corpus, with controls and seeds. Chapter: `book/bert/pretraining`.

    python -m spanbert_tutorial.experiments.easy_first --corpus PATH --output FILE

Token masking, equal budgets, paired seeds: a run on the corpus alone against one whose first half reads the almanac,
cut into pieces of the corpus's vocabulary. The second warms up twice, so a run whose first half is a stage on the
corpus stands beside them. A stopped command goes on.
"""

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from spanbert_tutorial import runs
from spanbert_tutorial.ablation import CURVE_EVERY, surroundings, write_whole
from spanbert_tutorial.experiments.continued import command, curve, rounded

SEEDS = 3
RUN = replace(runs.RUNS["mini"], objective="mlm", steps=1_500, length=64, batch_size=32)
# name → text of the first half of the steps, if that is a stage of its own
ARMS = {"corpus only": None, "corpus, then corpus": "corpus", "almanac first": "almanac"}


def one(run: runs.Run, first: runs.Text | None, text: runs.Text) -> dict:
    """Trains one model, perhaps half of the steps on a first text, then on the other; figures of the held-out part of
    the other.

    Each stage warms up and falls to rate 0 by itself, as a run and its `--init-from` do; its batches are its own."""
    began, model, curves = time.monotonic(), runs.new_model(run, text), {}
    half = 0 if first is None else run.steps // 2
    stages = [("corpus", text, replace(run, steps=run.steps - half))]
    if first is not None:
        stages.insert(0, ("first", first, replace(run, steps=half, seed=run.seed + 1_000)))
    for name, source, stage in stages:
        _, history = runs.pretrain(stage, source, model)
        curves[name] = curve(history)
    measured = runs.held_out(model, run, text)["token"]
    return {"curves": curves, "held_out": measured, "seconds": round(time.monotonic() - began)}


def run_all(corpus: str | Path, output: Path, seeds: int, run: runs.Run = RUN, pieces: int = 8_000) -> None:
    """All arms with every seed; `output` is rewritten after each, and what it holds is not run again."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.exists() else []
    done = {(row["arm"], row["seed"]) for row in rows}
    with TemporaryDirectory() as scratch:
        text = runs.open_text(str(corpus), Path(scratch, "corpus"), vocab_size=pieces)
        easy = runs.open_text("almanac", Path(scratch, "almanac"), Path(scratch, "corpus", "tokenizer.json"))
        unigram = {"almanac": easy.unigram_entropy, "corpus": text.unigram_entropy}
        texts = {None: None, "corpus": text, "almanac": easy}
        for seed in range(seeds):
            for arm, first in ARMS.items():
                if (arm, seed) in done:
                    continue
                figures = one(replace(run, seed=seed), texts[first], text)
                rows.append({"arm": arm, "seed": seed, **figures})
                print(f"{arm}, seed {seed}: {rows[-1]['held_out']}, {rows[-1]['seconds']} s", flush=True)
                write_whole(output, content(rows, run, unigram, len(text.train.ids), len(text.wordpiece), seeds))


def content(rows: list[dict], run: runs.Run, unigram: dict, pieces: int, vocabulary: int, seeds: int) -> dict:
    """The content of the results file."""
    return {
        "command": f"python -m spanbert_tutorial.experiments.easy_first --corpus PATH --output FILE --seeds {seeds}",
        "surroundings": surroundings(),
        "run": asdict(run),
        "first_half": ARMS,
        "unigram_entropy": rounded(unigram),
        "pieces": pieces,
        "vocabulary": vocabulary,
        "curve_every": CURVE_EVERY,
        "rows": rounded(rows),
    }


def main(arguments: list[str] | None = None) -> int:
    corpus = "text file, .jsonl file, a folder of them, or a hub name"
    return command("Easy text first, at mini size, with controls.", run_all, SEEDS, arguments, True, corpus=corpus)


if __name__ == "__main__":
    sys.exit(main())
