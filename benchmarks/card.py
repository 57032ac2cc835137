"""What a graphics card makes of a training step: tokens a second, share of its arithmetic, memory.
Page: `book/workshop/engine`.

`python -m benchmarks.card [OUTPUT.json] [--toy]`: for `mini`, `base` and `small`, on the same batches
of random tokens, with the arithmetic of `engine.processes.precision`:

- *transformers*: `BertForMaskedLM` of the same size in Accelerate's plain loop;
- *plain*: the package's own loop; *with SBO*: the same on batches of spans;
- *compiled*: as `pretrain` runs it on this card, on batches that lie ready;
- *package*: the same, drawn as it goes: the difference is what drawing costs.

MFU (model FLOPs utilization) takes the operations of `scaling_up` and the rate that the card
reaches in a large matrix product, measured in the same run. The file is written after each row, so
that a run may be cut off at any moment. `--toy` rehearses all of it on a CPU within a minute, where
nothing is compiled.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.engine import NO_DROPOUT, data, transformers_model
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.engine.device import steps_between_readings
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import machine
from spanbert_tutorial.engine.stream import Stream
from spanbert_tutorial.pretraining.batches import Batches
from spanbert_tutorial.pretraining.fixed_shapes import compiled, compiling_pays, with_fixed_shapes
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.scaling_up import matmul_rate, operations
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw, train

Batch = dict[str, Tensor]
READY = 8  # batches that a measurement goes round and round


class Shape(NamedTuple):
    """What is measured of one size: inputs of a batch, their length, the vocabulary; steps that are
    timed, and those before them."""

    batch: int
    length: int
    vocabulary: int = 29_000
    steps: int = 40
    warm_up: int = 10


# a way → its objective
WAYS = dict.fromkeys(("transformers", "plain", "with SBO", "compiled", "package"), "mlm")
WAYS["with SBO"] = "span+sbo"
SIZES = {"mini": Shape(128, 256), "base": Shape(32, 512), "small": Shape(64, 512)}
TOY = {"tiny": Shape(2, 32, 4_000, steps=2, warm_up=1)}


def batches_of(shape: Shape, objective: str = "mlm") -> Batches:
    batches = data(objective, shape.vocabulary, shape.batch, shape.length).batches(
        np.random.default_rng(0)
    )
    return with_fixed_shapes(batches) if objective == "mlm" else batches


def timed(batches: Iterable[Batch], shape: Shape, found: list[float]) -> Iterator[Batch]:
    """The batches; puts into `found` the seconds and the tokens of a step, once it is warm, each
    moment taken with the card idle."""
    tokens, began = 0, 0.0
    for number, batch in enumerate(batches):
        if number in (shape.warm_up, shape.warm_up + shape.steps):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            found[:] = [(time.perf_counter() - began) / shape.steps, tokens / shape.steps]
            tokens, began = 0, time.perf_counter()
        tokens += int(batch["attention_mask"].sum())
        yield batch


def ours(size: str, shape: Shape, batches: Iterable[Batch], found: list[float], way: str) -> None:
    """The package's loop; compiled and package: as `pretrain` does it here."""
    run = Run(size=size, max_length=shape.length, batch_size=shape.batch)
    model = PretrainingModel(config_of(size, shape), OBJECTIVES[WAYS[way]])
    steps = shape.warm_up + shape.steps + 1
    config = TrainingConfig(steps, 1e-4, warmup_steps=1, log_every=steps_between_readings())
    compiling = way in ("compiled", "package") and compiling_pays(run)
    with compiled(model, run) if compiling else nullcontext():
        train(model, timed(batches, shape, found), config)


def theirs(size: str, shape: Shape, batches: Iterable[Batch], found: list[float]) -> None:
    """`transformers` in Accelerate's plain loop."""
    from accelerate import Accelerator

    bare = transformers_model(config_of(size, shape)).train()
    processes()
    accelerator = Accelerator(mixed_precision=precision())
    model, optimizer = accelerator.prepare(bare, adamw(bare, TrainingConfig(1, 1e-4, 0)))
    fields = ("input_ids", "token_type_ids", "attention_mask", "labels")
    for batch in islice(timed(batches, shape, found), shape.warm_up + shape.steps + 1):
        inputs = {name: batch[name].to(accelerator.device) for name in fields}
        accelerator.backward(model(**inputs).loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def config_of(size: str, shape: Shape) -> EncoderConfig:
    """Without dropout, as small runs have it."""
    return EncoderConfig.preset(size, vocab_size=shape.vocabulary, **NO_DROPOUT)


def row_of(size: str, way: str, shape: Shape, rate: float, batches: Iterable[Batch]) -> dict:
    """One way measured; one that fails leaves its error, and the others go on."""
    row: dict = {"size": size, "way": way, "batch": shape.batch, "length": shape.length}
    torch.compiler.reset()  # a function is compiled eight times at most
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    found: list[float] = []
    try:
        if way == "transformers":
            theirs(size, shape, batches, found)
        else:
            ours(size, shape, batches, found, way)
    except Exception as error:  # out of memory, a compiler that is missing: what it was is kept
        told = f"{type(error).__name__}: {str(error).strip()}"
        return row | {"failed": told.splitlines()[0][:200]}
    seconds, tokens = found
    cost = operations(config_of(size, shape), shape.length, "SBO" in way) * tokens / seconds
    row |= {"milliseconds": round(1e3 * seconds, 3), "tokens_a_second": round(tokens / seconds)}
    row |= {"mfu": round(cost / rate, 4)}
    if torch.cuda.is_available():
        row["gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return row


def rows_of(size: str, shape: Shape, rate: float) -> Iterator[dict]:
    ready = {name: list(islice(batches_of(shape, name), READY)) for name in set(WAYS.values())}
    with closing(Stream(batches_of(shape))) as drawn:
        for way, objective in WAYS.items():
            batches = drawn if way == "package" else cycle(ready[objective])
            yield row_of(size, way, shape, rate, batches)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    usual = data_path("results") / "speed_card.json"
    parser.add_argument("output", nargs="?", type=Path, default=usual)
    parser.add_argument("--toy", action="store_true", help="a rehearsal: tiny, few steps")
    asked = parser.parse_args(words)
    rate = matmul_rate(0.1 if asked.toy else 1.0)
    found: dict = {"command": "python -m benchmarks.card OUTPUT.json", "machine": machine()}
    found |= {"arithmetic": precision(), "matmul_teraflops": round(rate / 1e12, 3), "rows": []}
    for size, shape in (TOY if asked.toy else SIZES).items():
        for row in rows_of(size, shape, rate):
            found["rows"].append(row)
            write_json(asked.output, found)
            print(json.dumps(row), flush=True)
    write_json(asked.output, found | {"finished": True})


if __name__ == "__main__":
    main()
