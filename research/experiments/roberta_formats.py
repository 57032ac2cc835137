"""Four input formats with the same number of tokens in each step. Chapter:
`book/evidence/input_formats`.

After RoBERTa's §4.2 and Table 2, at tiny size. Inputs differ in length, so a batch is counted in
tokens: about as many in each step, whatever the format. Seeds are paired: with one seed all formats
start from the same encoder weights. Every model is measured on held-out text in all four formats.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from research.experiments.roberta_masks import MEASURED, first_documents
from research.results import CURVE_EVERY, curve, rounded
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.evaluation import evaluate
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import History, train
from spanbert_tutorial.relatives.roberta import FORMATS, FormatData

ARM = "format"
ARMS = FORMATS
SEEDS = 3
RUN = Run(objective="mlm", steps=900, batch_size=32, by_length=True)  # two formats add NSP
SETTINGS = {"run": RUN, "measured": MEASURED, "curve_every": CURVE_EVERY}


def pretrain(form: str, run: Run, text: EncodedText) -> tuple[PretrainingModel, History, float]:
    """A model trained on inputs of that format, its history, and the mean number of tokens in a
    step."""
    data = FormatData(
        text.train,
        text.wordpiece,
        run.max_length,
        run.batch_size,
        by_length=run.by_length,
        form=form,
    )
    model = runs.new_model(
        replace(run, objective="mlm+nsp" if data.objective.paired else "mlm"), text
    )
    batches = data.batches(np.random.default_rng(run.seed))
    tokens = []

    def counted() -> Iterator[dict]:
        for batch in batches:
            tokens.append(int(batch["attention_mask"].sum()))
            yield batch

    return (
        model,
        train(model, counted(), run.recipe()),
        float(np.mean(tokens)),
    )


def held_out(
    model: PretrainingModel, run: Run, text: EncodedText, measured: int = MEASURED
) -> dict[str, dict[str, float]]:
    """Held-out losses in each format, every chosen token hidden; the same inputs and masks for
    every model. measured: held-out documents."""
    corpus = first_documents(text.held_out, measured)
    results = {}
    for form in FORMATS:
        data = FormatData(corpus, text.wordpiece, run.max_length, 64, form=form)
        data.objective = data.objective.mask_only
        results[form] = evaluate(model, data, np.random.default_rng(12345))
    return results


def one(form: str, seed: int, settings: Mapping, text: EncodedText) -> dict:
    """One run, trained and measured in every format."""
    model, history, tokens = pretrain(form, replace(settings["run"], seed=seed), text)
    figures = {
        "tokens_a_step": tokens,
        "held_out": held_out(model, settings["run"], text, settings["measured"]),
    }
    return rounded(figures) | {"curve": curve(history.losses["mlm"])}
