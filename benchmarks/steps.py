"""A training step, raced against `transformers.BertForMaskedLM` on the same batch, and what feeds
it.

`python -m benchmarks.steps [OUTPUT.json]`: forward, backward, clipping and AdamW, n = 128, all
threads. Each model runs in a process of its own, as its users run it: ours keeps freed memory, as
`train` does. Then both in one process that keeps it.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
import transformers

from benchmarks.race import keep, race
from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.processes import keep_freed_memory, precision
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw
from spanbert_tutorial.text.encoding import EncodedCorpus

MODELS = {"tiny": 4_000, "mini": 8_000, "mini, large vocabulary": 29_000, "base": 29_000}
BATCH = {"base": 8}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def text(vocabulary: int, tokens: int = 2_000_000) -> EncodedCorpus:
    """Long documents of random tokens."""
    rng = np.random.default_rng(0)
    ends = np.arange(25, tokens + 1, 25)
    return EncodedCorpus(rng.integers(5, vocabulary, tokens).astype(np.uint16), ends, ends[39::40])


def on_disk(corpus: EncodedCorpus, folder: Path) -> EncodedCorpus:
    """The same, memory-mapped as the text of a run is."""
    for name in EncodedCorpus.__annotations__:
        np.save(folder / f"{name}.npy", getattr(corpus, name))
    return EncodedCorpus.load(folder)


def data(
    objective: str, vocabulary: int, batch: int, length: int = 128, corpus=None
) -> PretrainingData:
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    # the tokens are numbers here, and may be any
    wordpiece.starts = np.resize(wordpiece.starts, vocabulary)
    return PretrainingData(
        corpus or text(vocabulary), wordpiece, OBJECTIVES[objective], length, batch
    )


def stepper(model: torch.nn.Module, loss_of, dtype: torch.dtype):
    """One training step, as `train` does it."""
    model.train()
    optimizer = adamw(model, TrainingConfig(1, 1e-4, 0))

    def step():
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            loss = loss_of(model)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def theirs(config: EncoderConfig, batch: dict, dtype: torch.dtype):
    """The step of transformers' model: it scores every position, and is told by -100 which ones
    count."""
    sizes = {
        name: getattr(config, name)
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
        )
    }
    model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes, **NO_DROPOUT))
    fields = {
        "input_ids": batch["input_ids"],
        "token_type_ids": batch["token_type_ids"],
        "attention_mask": batch["attention_mask"],
    }
    return stepper(model, lambda model: model(**fields, labels=batch["labels"]).loss, dtype)


def ours(config: EncoderConfig, batch: dict, objective: str, dtype: torch.dtype):
    return stepper(
        PretrainingModel(config, OBJECTIVES[objective]), lambda model: model(batch)["loss"], dtype
    )


def make(whose: str, name: str, dtype: torch.dtype) -> Callable[[], None]:
    """The step of a model of this name by `whose` program: both get the same batch."""
    vocabulary = MODELS[name]
    rows = BATCH.get(name, 32)
    config = EncoderConfig.preset(name.split(",")[0], vocab_size=vocabulary, **NO_DROPOUT)
    batch = next(data("mlm", vocabulary, rows).batches(np.random.default_rng(0)))
    return theirs(config, batch, dtype) if whose == "theirs" else ours(config, batch, "mlm", dtype)


def serve(whose: str, name: str, kind: str) -> None:
    """Makes a step for each line that comes in, and answers each with an empty one."""
    if whose == "ours":
        keep_freed_memory()
    step = make(whose, name, getattr(torch, kind))
    for _ in sys.stdin:
        step()
        print(flush=True)


@contextmanager
def apart(whose: str, name: str, kind: str) -> Iterator[Callable[[], str]]:
    """The step in a process of its own, which waits while the other one is at work."""
    program = f"from benchmarks.steps import serve; serve({whose!r}, {name!r}, {kind!r})"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        yield lambda: process.stdin.write("\n") and process.stdout.readline()
        process.stdin.close()


def compare(name: str, kind: str) -> dict:
    """Our step against theirs; what SBO adds; how many times as fast as the model the batches
    come."""
    vocabulary = MODELS[name]
    rows = BATCH.get(name, 32)
    dtype = getattr(torch, kind)
    config = EncoderConfig.preset(name.split(",")[0], vocab_size=vocabulary, **NO_DROPOUT)
    with ExitStack() as processes:
        racers = [processes.enter_context(apart(whose, name, kind)) for whose in ("ours", "theirs")]
        result = {"batch": rows, "against_transformers": race(*racers)}
    result["memory_kept_for_both"] = race(make("ours", name, dtype), make("theirs", name, dtype))
    with tempfile.TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as folder:  # Windows removes no file that is mapped
        source = data("span+sbo", vocabulary, rows, corpus=on_disk(text(vocabulary), Path(folder)))
        drawn = source.batches(np.random.default_rng(0))
        span = next(drawn)
        span_only = {name: value for name, value in span.items() if not name.startswith("boundary")}
        sbo = ours(config, span, "span+sbo", dtype)
        without = ours(config, span_only, "span", dtype)
        result["span_with_sbo_against_without"] = race(without, sbo)
        result["drawing_against_the_step"] = race(lambda: next(drawn), sbo)
    speed, drawing = (
        rows * 128 / each for each in reversed(result["drawing_against_the_step"]["seconds"])
    )
    result |= {"tokens_a_second": round(speed), "tokens_drawn_a_second": round(drawing)}
    return result


def main() -> None:
    keep_freed_memory()  # as `train` does; both kinds of step gain by it
    results = {"threads": torch.get_num_threads(), "length": 128}
    for kind in ("float32", "bfloat16") if precision() == "bf16" else ("float32",):
        results[kind] = {name: compare(name, kind) for name in MODELS}
    keep("speed_steps", results)


if __name__ == "__main__":
    main()
