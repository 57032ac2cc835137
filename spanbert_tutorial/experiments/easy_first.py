"""Easy text first, at mini size on a real corpus, with controls and seeds. Chapter: `book/bert/pretraining`.

    python -m spanbert_tutorial.experiments.easy_first --corpus PATH --output FILE

Token masking, equal budgets, paired seeds: a run on the corpus alone against one whose first half reads the almanac,
cut into pieces of the corpus's vocabulary. Of the second, once more without what this book changes in the start: the
positions from sinusoids, and the deviation 0.03 of the first weights. A stopped command goes on.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from spanbert_tutorial import runs
from spanbert_tutorial.ablation import CURVE_EVERY, surroundings, write_whole
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments.continued import curve, rounded

SEEDS = 3
RUN = replace(runs.RUNS["mini"], objective="mlm", steps=1_500, length=64, batch_size=32)
# name → (settings that differ, steps on the almanac); the rest of the steps is on the corpus
ARMS = {
    "corpus only": ({}, 0),
    "almanac first": ({}, 750),
    "almanac first, drawn positions": ({"sinusoidal_positions": False}, 750),
    "almanac first, start 0.02": ({"initializer_range": 0.02}, 750),
    "almanac first, start 0.06": ({"initializer_range": 0.06}, 750),
}


def one(run: runs.Run, easy_steps: int, easy: runs.Text, text: runs.Text) -> dict:
    """Trains one model, first on the easy text, then on the other; figures of the held-out part of the other.

    Each stage warms up and falls to rate 0 by itself, as a run and its `--init-from` do."""
    began, model, curves = time.monotonic(), runs.new_model(run, text), {}
    for name, source, steps in (("almanac", easy, easy_steps), ("corpus", text, run.steps - easy_steps)):
        if steps:
            _, history = runs.pretrain(replace(run, steps=steps), source, model)
            curves[name] = curve(history)
    measured = runs.held_out(model, run, text)["token"]
    return {"curves": curves, "held_out": measured, "seconds": round(time.monotonic() - began)}


def run_all(corpus: str, output: Path, seeds: int, run: runs.Run = RUN, pieces: int = 8_000) -> None:
    """All arms with every seed; `output` is rewritten after each, and what it holds is not run again."""
    rows = json.loads(output.read_text(encoding="utf-8"))["rows"] if output.exists() else []
    done = {(row["arm"], row["seed"]) for row in rows}
    with TemporaryDirectory() as scratch:
        text = runs.open_text(corpus, Path(scratch, "corpus"), vocab_size=pieces)
        easy = runs.open_text("almanac", Path(scratch, "almanac"), Path(scratch, "corpus", "tokenizer.json"))
        unigram = {"almanac": easy.unigram_entropy, "corpus": text.unigram_entropy}
        for seed in range(seeds):
            for arm, (changes, easy_steps) in ARMS.items():
                if (arm, seed) in done:
                    continue
                figures = one(replace(run, seed=seed, **changes), easy_steps * run.steps // RUN.steps, easy, text)
                rows.append({"arm": arm, "seed": seed, **figures})
                print(f"{arm}, seed {seed}: {rows[-1]['held_out']}, {rows[-1]['seconds']} s", flush=True)
                write_whole(output, content(rows, run, unigram, len(text.train.ids), len(text.wordpiece), seeds))


def content(rows: list[dict], run: runs.Run, unigram: dict, pieces: int, vocabulary: int, seeds: int) -> dict:
    """The content of the results file."""
    return {
        "command": f"python -m spanbert_tutorial.experiments.easy_first --corpus PATH --output FILE --seeds {seeds}",
        "surroundings": surroundings(),
        "run": asdict(run),
        "arms": {arm: {"changes": changes, "almanac_steps": steps} for arm, (changes, steps) in ARMS.items()},
        "unigram_entropy": rounded(unigram),
        "pieces": pieces,
        "vocabulary": vocabulary,
        "curve_every": CURVE_EVERY,
        "rows": rounded(rows),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Easy text first, at mini size, with controls.")
    parser.add_argument("--corpus", required=True, help="text file, .jsonl file, a folder of them, or a hub name")
    parser.add_argument("--output", type=Path, required=True, help="JSON file of the results")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args(arguments)
    try:
        if not options.output.exists():
            check_output(options.output)
        run_all(options.corpus, options.output, options.seeds)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
