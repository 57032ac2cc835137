"""Four input formats with the same number of tokens in each step. Chapter: `book/relatives/roberta`.

    python -m spanbert_tutorial.experiments.roberta_formats --output FILE

After RoBERTa's §4.2 and Table 2, at tiny size. Inputs differ in length, so a batch is counted in tokens: about as many
in each step, whatever the format. Seeds are paired: with one seed all formats start from the same encoder weights.
Every model is measured on held-out text in all four formats. A stopped command goes on.
"""

import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from spanbert_tutorial import ablation, runs
from spanbert_tutorial.engine.loop import History, train
from spanbert_tutorial.experiments.continued import command, curve, rounded
from spanbert_tutorial.experiments.roberta_masks import MEASURED, first_documents, kept_rows
from spanbert_tutorial.pretraining import PretrainingModel, measure
from spanbert_tutorial.relatives.roberta import FORMATS, FormatData

SEEDS = 3
RUN = runs.Run(objective="mlm", steps=900, batch_size=32, by_length=True)  # two formats add NSP


def pretrain(form: str, run: runs.Run, text: runs.Text) -> tuple[PretrainingModel, History, float]:
    """A model trained on inputs of that format, its history, and the mean number of tokens in a step."""
    data = FormatData(text.train, text.wordpiece, run.length, run.batch_size, by_length=run.by_length, form=form)
    model = runs.new_model(replace(run, objective="mlm+nsp" if data.objective.paired else "mlm"), text)
    batches, tokens = data.batches(np.random.default_rng(run.seed)), []

    def counted():
        for batch in batches:
            tokens.append(int(batch["attention_mask"].sum()))
            yield batch

    return model, train(model, counted(), run.recipe(), text.unigram_entropy), float(np.mean(tokens))


def held_out(model: PretrainingModel, run: runs.Run, text: runs.Text) -> dict[str, dict[str, float]]:
    """Held-out losses in each format, every chosen piece hidden; the same inputs and masks for every model."""
    corpus, results = first_documents(text.held_out, MEASURED), {}
    for form in FORMATS:
        data = FormatData(corpus, text.wordpiece, run.length, 64, form=form)
        data.objective = data.objective.mask_only
        results[form] = measure(model, data, np.random.default_rng(12345))
    return results


def run_all(output: Path, seeds: int) -> None:
    """Every format with every seed; `output` is written whole after each run, and what it holds is not run again."""
    rows = kept_rows(output, RUN)
    content = {
        "command": f"python -m spanbert_tutorial.experiments.roberta_formats --output FILE --seeds {seeds}",
        "surroundings": ablation.surroundings(),
        "run": asdict(RUN),
        "curve_every": ablation.CURVE_EVERY,
    }
    with TemporaryDirectory() as scratch:
        text = runs.open_text("almanac", scratch)
        content["unigram_entropy"] = round(text.unigram_entropy, 4)
        for seed in range(seeds):
            for form in FORMATS:
                if any((row["format"], row["seed"]) == (form, seed) for row in rows):
                    continue
                began = time.monotonic()
                model, history, tokens = pretrain(form, replace(RUN, seed=seed), text)
                row = {"format": form, "seed": seed, "tokens_a_step": tokens}
                row |= {"held_out": held_out(model, RUN, text), "curve": curve(history)}
                rows.append(rounded(row))
                print(f"{time.monotonic() - began:.0f} s", seed, form, row["held_out"], flush=True)
                ablation.write_whole(output, {**content, "rows": rows})


def main(arguments: list[str] | None = None) -> int:
    return command("Four input formats with the same number of tokens.", run_all, SEEDS, arguments, goes_on=True)


if __name__ == "__main__":
    sys.exit(main())
