"""What a machine makes of a training step: tokens a second, share of its arithmetic, memory. Page:
`book/workshop/engine`.

`python -m benchmarks.card [OUTPUT.json] [--toy]`: for `mini`, `base` and `small`, without a graphics
card for `tiny` and `mini` in smaller batches, on random tokens drawn on the way, with the arithmetic
of `engine.processes.precision`:

- *transformers*: `BertForMaskedLM` of the same size in Accelerate's plain loop;
- *plain*: the package's own loop; *with SBO*: the same on batches of spans;
- *compiled*: as `pretrain` runs it on a card; elsewhere it is the plain loop once more.

MFU (model FLOPs utilization) takes the operations of `scaling_up` and the rate that the machine
reaches in a large matrix product, measured in the same run. The file is written after each row, so
that a run may be cut off at any moment. `--toy` rehearses all of it within a minute.
"""

import argparse
import json
import time
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import transformers
from accelerate import Accelerator

from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import machine
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.fixed_shapes import compiling_pays
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.scaling_up import matmul_rate, operations
from spanbert_tutorial.pretraining.train import adamw
from spanbert_tutorial.text.encoding import EncodedCorpus


class Shape(NamedTuple):
    """What is measured of one size: inputs of a batch, their length, the vocabulary; steps that are
    timed, after as many to warm up."""

    batch: int
    length: int
    vocabulary: int = 29_000
    steps: int = 40


CARD = {"mini": Shape(128, 256), "base": Shape(32, 512), "small": Shape(64, 512)}
CPU = {"tiny": Shape(32, 128, 4_000, steps=20), "mini": Shape(32, 128, 8_000, steps=20)}
TOY = {"tiny": Shape(2, 32, 4_000, steps=2)}
# a way → its objective
WAYS = {"transformers": "mlm", "plain": "mlm", "with SBO": "span+sbo", "compiled": "mlm"}


def random_text(vocabulary: int) -> EncodedText:
    """Documents of 1,000 random tokens in sentences of 25; every fourth token continues a word."""
    names = (f"{'##' if i % 4 == 0 else ''}w{i}" for i in range(vocabulary - len(SPECIALS)))
    wordpiece = WordPiece({token: i for i, token in enumerate([*SPECIALS, *names])})
    ids = np.random.default_rng(0).integers(len(SPECIALS), vocabulary, 2_000_000).astype(np.uint16)
    ends = np.arange(25, len(ids) + 1, 25)
    corpus = EncodedCorpus(ids, ends, ends[39::40])
    return EncodedText(corpus, corpus, wordpiece)


def theirs(model: PretrainingModel, run: Run, text: EncodedText, steps: int) -> tuple[float, float]:
    """Seconds and tokens of a step of `transformers` in Accelerate's plain loop."""
    sizes = "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size"
    dropout = "hidden_dropout_prob attention_probs_dropout_prob"
    given = {name: getattr(model.encoder.config, name) for name in f"{sizes} {dropout}".split()}
    bare = transformers.BertForMaskedLM(transformers.BertConfig(**given)).train()
    processes()
    accelerator = Accelerator(mixed_precision=precision())
    model, optimizer = accelerator.prepare(bare, adamw(bare, run.recipe()))
    fields = ("input_ids", "token_type_ids", "attention_mask", "labels")
    tokens, began = 0, 0.0
    for number, batch in enumerate(islice(runs.batches_of(run, text), 2 * steps)):
        if number == steps:
            idle()
            tokens, began = 0, time.perf_counter()
        tokens += int(batch["attention_mask"].sum())
        inputs = {name: batch[name].to(accelerator.device) for name in fields}
        accelerator.backward(model(**inputs).loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    idle()
    return (time.perf_counter() - began) / steps, tokens / steps


def idle() -> None:
    """Waits until the card has nothing left to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def row_of(size: str, way: str, shape: Shape, rate: float, text: EncodedText) -> dict:
    """One way measured; one that fails leaves its error, and the others go on."""
    row: dict = {"size": size, "way": way, "batch": shape.batch, "length": shape.length}
    torch.compiler.reset()  # a function is compiled eight times at most
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    sizes = {"max_length": shape.length, "batch_size": shape.batch}
    run = Run(size=size, objective=WAYS[way], dropout=0.0, **sizes)
    model = runs.new_model(run, text)
    try:
        if way == "transformers":
            seconds, tokens = theirs(model, run, text, shape.steps)
        else:
            compiling = way == "compiled" and compiling_pays(run)
            _, seconds, tokens = runs.rehearse(run, text, model, compiling)
    except Exception as error:  # out of memory, a compiler that is missing: what it was is kept
        told = f"{type(error).__name__}: {str(error).strip()}"
        return row | {"failed": told.splitlines()[0][:200]}
    cost = operations(model.encoder.config, shape.length, "SBO" in way) * tokens / seconds
    row |= {"milliseconds": round(1e3 * seconds, 3), "tokens_a_second": round(tokens / seconds)}
    row |= {"mfu": round(cost / rate, 4)}
    if torch.cuda.is_available():
        row["gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return row


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    usual = data_path("results") / "speed_card.json"
    parser.add_argument("output", nargs="?", type=Path, default=usual)
    parser.add_argument("--toy", action="store_true", help="a rehearsal: tiny, few steps")
    asked = parser.parse_args(words)
    rate = matmul_rate(0.1 if asked.toy else 1.0)
    found: dict = {"command": "python -m benchmarks.card OUTPUT.json", "machine": machine()}
    found |= {"arithmetic": precision(), "matmul_teraflops": round(rate / 1e12, 3), "rows": []}
    sizes = TOY if asked.toy else CARD if torch.cuda.is_available() else CPU
    for size, shape in sizes.items():
        text = random_text(shape.vocabulary)
        for way in WAYS:
            found["rows"].append(row_of(size, way, shape, rate, text))
            write_json(asked.output, found)
            print(json.dumps(found["rows"][-1]), flush=True)
    write_json(asked.output, found | {"finished": True})


if __name__ == "__main__":
    main()
