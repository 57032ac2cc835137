"""Static masks, ten copies and dynamic masks over 40 epochs of a small text. Chapter: `book/relatives/roberta`.

    python -m spanbert_tutorial.experiments.roberta_masks --output FILE

After RoBERTa's §4.1 and Table 1, at tiny size. With one seed the three ways start from the same weights, see the same
blocks in the same order and begin with the same masks. A stopped command goes on.
"""

import json
import math
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.batches import PretrainingData
from spanbert_tutorial.checkpoints import check_output
from spanbert_tutorial.corpora import EncodedCorpus
from spanbert_tutorial.engine.loop import History, train
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments.continued import command, curve, rounded
from spanbert_tutorial.pretraining import PretrainingModel, measure
from spanbert_tutorial.relatives.roberta import view_batches

WAYS = {"static": 1, "ten copies": 10, "dynamic": None}
SEEDS, EPOCHS, DOCUMENTS, MEASURED = 5, 40, 160, 250
RUN = runs.Run(objective="mlm", batch_size=16)  # its steps follow from EPOCHS


def first_documents(corpus: EncodedCorpus, documents: int) -> EncodedCorpus:
    """The corpus cut off behind that many documents."""
    ends, end = corpus.document_ends[:documents], corpus.document_ends[documents - 1]
    return EncodedCorpus(corpus.ids[:end], corpus.sentence_ends[corpus.sentence_ends <= end], ends)


def small(text: runs.Text) -> runs.Text:
    """The first documents of both parts."""
    parts = first_documents(text.train, DOCUMENTS), first_documents(text.held_out, MEASURED)
    return runs.Text(*parts, text.wordpiece)


def pretrain(way: str, run: runs.Run, text: runs.Text) -> tuple[PretrainingModel, History]:
    """As `runs.pretrain`, with masks of that way."""
    model, data = runs.new_model(run, text), runs.training_data(run, text)
    order, masks = (np.random.default_rng([run.seed, stream]) for stream in range(2))
    return model, train(model, view_batches(data, WAYS[way], order, masks), run.recipe(), text.unigram_entropy)


def losses(model: PretrainingModel, run: runs.Run, text: runs.Text) -> dict[str, dict[str, float]]:
    """Loss in nats and accuracy with new masks, every chosen piece hidden: on held-out text, and on the blocks of the
    training. The same masks for every model; no model was trained with them."""
    results = {}
    for name, corpus in {"held out": text.held_out, "trained on": text.train}.items():
        arguments = (corpus, text.wordpiece, runs.training_data(run, text).objective.mask_only, run.length, 64)
        data = PretrainingData(*arguments)
        figures = measure(model, data, np.random.default_rng(12345))
        results[name] = {"loss": figures["mlm"], "accuracy": figures["accuracy"]}
    return results


def run_all(output: Path, seeds: int) -> None:
    """Every way with every seed; `output` is written whole after each run, and what it holds is not run again."""
    with TemporaryDirectory() as scratch:
        text = small(runs.open_text("almanac", scratch))
        blocks = len(runs.training_data(RUN, text))
        run = replace(RUN, steps=EPOCHS * math.ceil(blocks / RUN.batch_size))
        rows, short = kept_rows(output, run), replace(run, steps=100)
        again = {"way": "dynamic", "run": asdict(short), "curve": rounded(curve(pretrain("dynamic", short, text)[1]))}
        content = {
            "command": f"python -m spanbert_tutorial.experiments.roberta_masks --output FILE --seeds {seeds}",
            "surroundings": ablation.surroundings(),
            "run": asdict(run),
            "epochs": EPOCHS,
            "documents": DOCUMENTS,
            "blocks": blocks,
            "pieces": len(text.train.ids),
            "unigram_entropy": round(text.unigram_entropy, 4),
            "curve_every": ablation.CURVE_EVERY,
            "curve_tolerance": ablation.CURVE_TOLERANCE,
            "short": again,
        }
        for seed in range(seeds):
            for way in WAYS:
                if any((row["way"], row["seed"]) == (way, seed) for row in rows):
                    continue
                began = time.monotonic()
                model, history = pretrain(way, replace(run, seed=seed), text)
                row = {"way": way, "seed": seed, "new_masks": losses(model, run, text), "curve": curve(history)}
                rows.append(rounded(row))
                print(f"{time.monotonic() - began:.0f} s", seed, way, row["new_masks"], flush=True)
                ablation.write_whole(output, {**content, "rows": rows})


# --- a command that goes on where it was stopped --------------------------------------------------------------------


def kept_rows(output: Path, run: runs.Run) -> list[dict]:
    """Rows of an earlier, stopped command, none if there was none. Raises InputError when it had other settings."""
    if not output.exists():
        check_output(output)
        return []
    kept = json.loads(output.read_text(encoding="utf-8"))
    if kept.get("run") != asdict(run):
        raise InputError(f"{output} holds results of other settings: give another --output.")
    return kept["rows"]


def main(arguments: list[str] | None = None) -> int:
    return command("Static masks, ten copies and dynamic masks.", run_all, SEEDS, arguments, goes_on=True)


if __name__ == "__main__":
    sys.exit(main())
