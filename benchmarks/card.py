"""What a graphics card makes of a training step: tokens a second, share of its arithmetic, memory.
Page: `book/workshop/engine`.

`python -m benchmarks.card [OUTPUT.json] [--toy]`: for `mini`, `small` and `base`, each in several
ways, on the same batches of random tokens, with the arithmetic of `engine.processes.precision`:

- *transformers*: `BertForMaskedLM` of the same size in Accelerate's plain loop;
- *plain*: our model, eager, in a loop that never waits for the card;
- *compiled*: the same, the encoder through `torch.compile`;
- *graph*: the compiled step recorded once as a CUDA graph, and played;
- *with SBO*: plain, on batches of spans;
- *package, ready* and *package*: the package's own loop, compiled as `pretrain` compiles it, on
  batches that lie ready, and drawn as it goes: the difference is what drawing costs.

MFU (model FLOPs utilization) takes the operations of `scaling_up` and the rate that the card
reaches in a large matrix product, measured in the same run; the share of the maker's peak stands
beside it. The file is written after each row, whole, so that a run may be cut off at any moment.
`--toy` rehearses all of it on a CPU within a minute; there, "compiled" runs without a code
generator.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import EncoderConfig
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.device import steps_between_readings
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.stream import Stream
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.fixed_shapes import compiled, compiling_pays, with_fixed_shapes
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.scaling_up import matmul_rate, operations
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw, train
from spanbert_tutorial.text.encoding import EncodedCorpus

Batch = dict[str, Tensor]
Step = Callable[[Batch], object]


@dataclass(frozen=True)
class Shape:
    """What is measured of one size: inputs of a batch, their length, the vocabulary."""

    batch: int
    length: int
    vocabulary: int = 29_000


SIZES = {
    "mini": Shape(128, 256),
    "base": Shape(32, 512),
    "small": Shape(64, 512),
}  # the goals first
TOY = {"tiny": Shape(2, 32, 4_000)}
WARM_UP, STEPS = 10, 40
READY = 8  # batches that a measurement goes round and round
TOKENS = 2_000_000  # of the random text
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


# --- what is measured ----------------------------------------------------------------


def machine() -> dict[str, str | int]:
    """Versions, device and arithmetic. On a machine for a few minutes SciPy, which `lab` needs, may
    be missing."""
    packages = {name: version(name) for name in ("torch", "transformers", "accelerate", "numpy")}
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return {
        "python": platform.python_version(),
        **packages,
        "device": name,
        "threads": torch.get_num_threads(),
        "arithmetic": precision(),
    }


def device() -> torch.device:
    """The card, or the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    """Until the card has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak(name: str) -> float | None:
    """Operations a second that the maker promises of a card of this name, in half precision."""
    known = json.loads(data_path("papers.json").read_text(encoding="utf-8"))["accelerator_peaks"]
    cards = known["value"].items()
    return next((1e12 * card["teraflops"] for short, card in cards if short in name), None)


def seconds_a_step(step: Step, batches: list[Batch], n_steps: int, warm_up: int) -> float:
    """Of a step on batches that lie on the device, in turn, once it is warm."""
    stream = cycle(batches)
    for batch in islice(stream, warm_up):
        step(batch)
    wait()
    began = time.perf_counter()
    for batch in islice(stream, n_steps):
        step(batch)
    wait()
    return (time.perf_counter() - began) / n_steps


# --- batches -------------------------------------------------------------------------


def data_of(shape: Shape, objective: str) -> PretrainingData:
    """Documents of 1,000 random tokens in sentences of 25."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    # the tokens are numbers here, and may be any
    wordpiece.starts = np.resize(wordpiece.starts, shape.vocabulary)
    rng = np.random.default_rng(0)
    ids = rng.integers(5, shape.vocabulary, TOKENS).astype(np.uint16)
    ends = np.arange(25, TOKENS + 1, 25)
    corpus = EncodedCorpus(ids, ends, ends[39::40])
    row = OBJECTIVES[objective]
    return PretrainingData(corpus, wordpiece, row, shape.length, shape.batch)


def fixed(data: PretrainingData) -> Iterator[Batch]:
    """Batches of one shape, without end."""
    return with_fixed_shapes(data.batches(np.random.default_rng(0)))


def on_device(batches: list[Batch]) -> list[Batch]:
    """The same where the model is."""
    return [{name: value.to(device()) for name, value in batch.items()} for batch in batches]


def tokens_of(batches: list[Batch]) -> float:
    """Real tokens of a batch, the mean."""
    return sum(int(batch["attention_mask"].sum()) for batch in batches) / len(batches)


# --- the ways ------------------------------------------------------------------------


def config_of(size: str, shape: Shape) -> EncoderConfig:
    """Without dropout, as small runs have it."""
    return EncoderConfig.preset(size, vocab_size=shape.vocabulary, **NO_DROPOUT)


def step_of(model: nn.Module, loss_of: Callable[[Batch], Tensor], graph: bool = False) -> Step:
    """A training step as `train` does it, which asks the card for nothing."""
    optimizer = adamw(model, TrainingConfig(1, 1e-4, 0))
    for group in optimizer.param_groups:
        group["capturable"] = graph
    dtype = TYPES[precision()]

    def step(batch: Batch) -> None:
        # a graph cannot keep the casts of weights from one step to the next
        with torch.autocast(
            device().type, dtype, enabled=dtype != torch.float32, cache_enabled=not graph
        ):
            loss = loss_of(batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=not graph)

    return step


def ours(size: str, shape: Shape, objective: str = "mlm", compiling: bool = False) -> nn.Module:
    """Our model in training mode, on the device; compiling: its encoder, for one shape."""
    model = PretrainingModel(config_of(size, shape), OBJECTIVES[objective]).to(device()).train()
    if compiling:
        # on a CPU a code generator may be missing, and a rehearsal needs none
        backend = "inductor" if torch.cuda.is_available() else "eager"
        model.encoder.compile(dynamic=False, backend=backend)
    return model


def plain(size: str, shape: Shape, objective: str = "mlm", compiling: bool = False) -> Step:
    """Our step, eager or compiled."""
    model = ours(size, shape, objective, compiling)
    return step_of(model, lambda batch: model(batch)["loss"])


def recorded(size: str, shape: Shape, batch: Batch) -> Step:
    """The compiled step as a CUDA graph: each call copies a batch to where the graph reads it."""
    model = ours(size, shape, compiling=True)
    step = step_of(model, lambda batch: model(batch)["loss"], graph=True)
    held = {name: value.clone() for name, value in batch.items()}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(held)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(held)

    def play(batch: Batch) -> None:
        for name, value in batch.items():
            held[name].copy_(value, non_blocking=True)
        graph.replay()

    return play


def theirs(size: str, shape: Shape) -> Step:
    """`transformers` in Accelerate's plain loop; it scores every position, and labels of -100 say
    which ones count."""
    import transformers
    from accelerate import Accelerator

    processes()
    accelerator = Accelerator(mixed_precision=precision())
    config = config_of(size, shape)
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    sizes = {name: getattr(config, name) for name in (*names, "intermediate_size")}
    settings = transformers.BertConfig(**sizes, **NO_DROPOUT)
    bare = transformers.BertForMaskedLM(settings).train()
    model, optimizer = accelerator.prepare(bare, adamw(bare, TrainingConfig(1, 1e-4, 0)))

    def step(batch: Batch) -> None:
        fields = {"input_ids": batch["input_ids"], "token_type_ids": batch["token_type_ids"]}
        fields |= {"attention_mask": batch["attention_mask"], "labels": batch["labels"]}
        accelerator.backward(model(**fields).loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def package(
    size: str, shape: Shape, batches: Iterable[Batch], n_steps: int, warm_up: int
) -> tuple[float, float]:
    """Seconds and tokens a step of the package's own loop, once it is warm; compiled where
    `pretrain` compiles."""
    model = ours(size, shape).cpu()
    moments: list[float] = []
    seen: list[int] = []
    steps, log_every = warm_up + n_steps + 1, steps_between_readings()
    config = TrainingConfig(steps, 1e-4, warmup_steps=1, log_every=log_every)
    run = Run(size=size, max_length=shape.length, batch_size=shape.batch)
    with compiled(model, run) if compiling_pays(run) else nullcontext():
        train(model, timed(batches, (warm_up, warm_up + n_steps), moments, seen), config)
    began, ended = moments
    return (ended - began) / n_steps, sum(seen[warm_up : warm_up + n_steps]) / n_steps


def timed(
    batches: Iterable[Batch], at: tuple[int, int], moments: list[float], seen: list[int]
) -> Iterator[Batch]:
    """The batches; notes the moments at which those numbered `at` are asked for, with the card
    idle, and the tokens of each."""
    for number, batch in enumerate(batches):
        if number in at:
            wait()
            moments.append(time.perf_counter())
        seen.append(int(batch["attention_mask"].sum()))
        yield batch


# --- rows ----------------------------------------------------------------------------


class Report:
    """The results so far, and their file, written after each row."""

    def __init__(self, path: Path, rate: float):
        self.path = path
        self.found: dict = {
            "command": "python -m benchmarks.card OUTPUT.json",
            "surroundings": machine(),
            "matmul_teraflops": round(rate / 1e12, 3),
            "rows": [],
        }
        self.rate = rate
        self.promised = peak(torch.cuda.get_device_name()) if torch.cuda.is_available() else None

    def add(
        self, size: str, way: str, shape: Shape, work: Callable[[], tuple[float, float]]
    ) -> None:
        """A row from seconds and tokens a step; a way that fails leaves its error, and the others
        go on."""
        row: dict = {"size": size, "way": way, "batch": shape.batch, "length": shape.length}
        torch.compiler.reset()  # a function is compiled eight times at most
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        try:
            row |= self.figures(
                *work(), operations(config_of(size, shape), shape.length, "SBO" in way)
            )
        except Exception as error:  # out of memory, a compiler that is missing: what it was is kept
            row["failed"] = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:200]
        row["seconds_in_all"] = round(time.perf_counter() - began, 1)
        self.found["rows"].append(row)
        self.write()
        print(json.dumps(row), flush=True)

    def figures(self, seconds: float, tokens: float, cost: float) -> dict:
        """What a row says of a step: cost is in operations a token."""
        rate = tokens / seconds
        found = {"milliseconds": round(1e3 * seconds, 3), "tokens_a_second": round(rate)}
        found["mfu"] = round(rate * cost / self.rate, 4)
        if self.promised:
            found["share_of_the_peak"] = round(rate * cost / self.promised, 4)
        if torch.cuda.is_available():
            found["gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        return found

    def write(self) -> None:
        """The file, whole or not at all."""
        self.found["goals"] = goals(self.found["rows"])
        write_json(self.path, self.found)


def goals(rows: list[dict]) -> dict[str, bool | None]:
    """Whether each goal was reached; None where it was not measured. They are meant for an H100 in
    bfloat16."""
    best: dict[str, dict[str, float]] = {}
    for row in rows:
        if "failed" not in row and row["way"] != "transformers":
            of_size = best.setdefault(row["size"], {})
            for name in ("mfu", "tokens_a_second"):
                of_size[name] = max(of_size.get(name, 0), row[name])
    hidden = [drawing_hidden(rows, size) for size in SIZES]
    return {
        "base at 512 tokens: MFU of 50% or more": best["base"]["mfu"] >= 0.5
        if "base" in best
        else None,
        "mini at 256 tokens: 3 million tokens a second or more": best["mini"]["tokens_a_second"]
        >= 3e6
        if "mini" in best
        else None,
        "drawing hidden behind the step": None if None in hidden else all(hidden),
    }


def drawing_hidden(rows: list[dict], size: str) -> bool | None:
    """Whether the package's loop is as fast, within 5%, where it draws its batches as where they
    lie ready."""
    of = {row["way"]: row.get("tokens_a_second") for row in rows if row["size"] == size}
    if not (of.get("package") and of.get("package, ready")):
        return None
    return of["package"] >= 0.95 * of["package, ready"]


def drawing(report: Report, size: str, shape: Shape, data: PretrainingData, n_steps: int) -> None:
    """What one process draws in a second, and what share of the time drawing between the steps
    would take beside the fastest of our steps."""
    stream = data.batches(np.random.default_rng(0))
    next(stream)
    began = time.perf_counter()
    drawn = list(islice(stream, n_steps))
    seconds = (time.perf_counter() - began) / n_steps
    fastest = min(
        (
            row["milliseconds"] / 1e3
            for row in report.found["rows"]
            if row["size"] == size and row["way"] in ("plain", "compiled", "graph") and "mfu" in row
        ),
        default=None,
    )
    found = {"tokens_drawn_a_second": round(tokens_of(drawn) / seconds)}
    if fastest is not None:
        found["share_of_the_time"] = round(seconds / (seconds + fastest), 4)
    report.found.setdefault("drawing", {})[size] = found
    report.write()
    print(json.dumps({"size": size, "drawing": found}), flush=True)


def measure(report: Report, size: str, shape: Shape, n_steps: int, warm_up: int) -> None:
    """All rows of one size."""
    data = data_of(shape, "mlm")
    batches = list(islice(fixed(data), READY))

    def add(way: str, make: Callable[[list[Batch]], Step], some: list[Batch] = batches) -> None:
        def work() -> tuple[float, float]:
            moved = on_device(some)
            return seconds_a_step(make(moved), moved, n_steps, warm_up), tokens_of(some)

        report.add(size, way, shape, work)

    add("plain", lambda _: plain(size, shape))
    add("compiled", lambda _: plain(size, shape, compiling=True))
    if torch.cuda.is_available():
        add("graph", lambda moved: recorded(size, shape, moved[0]))
    add("transformers", lambda _: theirs(size, shape), [batch for batch in batches])
    spans = list(islice(data_of(shape, "span+sbo").batches(np.random.default_rng(0)), READY))
    add("with SBO", lambda _: plain(size, shape, "span+sbo"), spans)
    drawing(report, size, shape, data, n_steps)
    lying = cycle(batches)
    report.add(size, "package, ready", shape, lambda: package(size, shape, lying, n_steps, warm_up))

    def as_it_goes() -> tuple[float, float]:
        with closing(Stream(fixed(data))) as drawn:
            return package(size, shape, drawn, n_steps, warm_up)

    report.add(size, "package", shape, as_it_goes)


def main(words: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    usual = data_path("results") / "speed_card.json"
    parser.add_argument("output", nargs="?", type=Path, default=usual)
    parser.add_argument("--toy", action="store_true", help="a rehearsal: tiny, few steps")
    asked = parser.parse_args(words)
    report = Report(asked.output, matmul_rate(0.1 if asked.toy else 1.0))
    report.write()
    for size, shape in (TOY if asked.toy else SIZES).items():
        measure(report, size, shape, *((2, 1) if asked.toy else (STEPS, WARM_UP)))
    report.found["finished"] = True
    report.write()
    print(json.dumps(report.found["goals"], indent=1), flush=True)


if __name__ == "__main__":
    main()
