"""Measurements of the engine, as the page `book/workshop/engine` shows them:
`python -m benchmarks.engine NAME [OUTPUT.json]`, where NAME is

- attention: the fused kernel against the maps written out, forward and backward;
- masking: span masking of a batch against a plain loop of the released code's rules;
- steps: a training step against `transformers.BertForMaskedLM`, the SBO, drawing the batches;
- freed_memory: a step that keeps its memory for the next against one that hands it back;
- memory: the greatest memory of a step of *base* against `transformers.BertForMaskedLM`;
- growth: ten times the corpus, its time and memory.

Two ways are raced in turns in one run, so that a noisy machine slows both alike.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import transformers

from research.grid import surroundings
from spanbert_tutorial import almanac
from spanbert_tutorial.bert import encoder, fast_attention
from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.masking import corrupt
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path, write_json
from spanbert_tutorial.engine.processes import keep_freed_memory, precision
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.encoded_text import open_text
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import OBJECTIVES
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.train import TrainingConfig, adamw
from spanbert_tutorial.spanbert.span_masking import SpanMasking, clipped_geometric
from spanbert_tutorial.text.encoding import EncodedCorpus

Step = Callable[[], object]
ROUNDS = 5  # of what has a process of its own
WARM_UP = 5  # on a virtual machine the first steps wait until their memory is really there
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")


def seconds(call: Step) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def race(first: Step, second: Step, rounds: int = 7) -> dict:
    """Median seconds of both, and the median, least and greatest of the ratios second / first, one
    a round: a ratio above 1 says how many times as fast `first` is."""
    pairs = [(seconds(first), seconds(second)) for _ in range(WARM_UP + rounds)][WARM_UP:]
    medians = [round(statistics.median(times), 6) for times in zip(*pairs, strict=True)]
    return {"seconds": medians, "rounds": rounds} | ratio(pairs)


def ratio(pairs: list[tuple[float, float]], name: str = "ratio") -> dict:
    """The median, least and greatest of second / first."""
    ratios = [second / first for first, second in pairs]
    ends = [round(min(ratios), 3), round(max(ratios), 3)]
    return {name: round(statistics.median(ratios), 3), f"{name}s": ends}


def alone(call: str) -> dict:
    """What a function of this module finds in a process of its own, whose memory the system
    tells."""
    program = f"import json; from benchmarks import engine; print(json.dumps(engine.{call}))"
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def greatest_memory() -> float:
    """The greatest memory of this process so far, in MiB. Windows does not tell."""
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# --- batches and steps --------------------------------------------------------------


def random_text(vocabulary: int) -> EncodedCorpus:
    """Documents of 1,000 random tokens in sentences of 25."""
    tokens = 2_000_000
    ids = np.random.default_rng(0).integers(5, vocabulary, tokens).astype(np.uint16)
    ends = np.arange(25, tokens + 1, 25)
    return EncodedCorpus(ids, ends, ends[39::40])


def on_disk(corpus: EncodedCorpus, folder: Path) -> EncodedCorpus:
    """The same, memory-mapped as the text of a run is."""
    for name in EncodedCorpus.__annotations__:
        np.save(folder / f"{name}.npy", getattr(corpus, name))
    return EncodedCorpus.load(folder)


def data(
    objective: str, vocabulary: int, batch: int, length: int = 128, corpus=None
) -> PretrainingData:
    """Batches of random tokens: they are numbers here, and may be any."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    wordpiece.starts = np.resize(wordpiece.starts, vocabulary)
    corpus = corpus or random_text(vocabulary)
    return PretrainingData(corpus, wordpiece, OBJECTIVES[objective], length, batch)


def transformers_model(config: EncoderConfig) -> torch.nn.Module:
    """`BertForMaskedLM` of the same size: it scores every position, and labels of -100 say which
    ones count."""
    sizes = {name: getattr(config, name) for name in (*SIZES, "intermediate_size")}
    return transformers.BertForMaskedLM(transformers.BertConfig(**sizes, **NO_DROPOUT))


def step_of(whose: str, config: EncoderConfig, batch: dict, dtype: torch.dtype) -> Step:
    """One training step, as `train` does it: forward, backward, clipping and AdamW; whose: "theirs"
    or an objective of ours."""
    if whose == "theirs":
        fields = ("input_ids", "token_type_ids", "attention_mask", "labels")
        model = transformers_model(config)
        given = {name: batch[name] for name in fields}
    else:
        model, given = PretrainingModel(config, OBJECTIVES[whose]), {"batch": batch}
    model.train()
    optimizer = adamw(model, TrainingConfig(1, 1e-4, 0))

    def step() -> None:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            loss = model(**given)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


# --- what is measured ---------------------------------------------------------------


def attention() -> dict:
    """A ratio above 1: the maps written out are faster (`fast_attention.unfused_is_faster`)."""

    def call(fused: bool, rows: int, length: int, dtype: torch.dtype) -> Step:
        torch.manual_seed(0)
        config = EncoderConfig.mini(vocab_size=50, attention_probs_dropout_prob=0.0)
        layer = encoder.SelfAttention(config)
        hidden = torch.randn(rows, length, 256, requires_grad=True)
        mask = torch.ones(rows, 1, 1, length, dtype=torch.bool)

        def step() -> None:
            fast_attention.unfused_is_faster = lambda value: not fused
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                output = layer(hidden, mask)
            output.float().sum().backward()

        return step

    shapes = ((64, 64), (32, 128), (16, 256), (8, 512))  # 4,096 tokens each
    results: dict = {"threads": torch.get_num_threads()}
    for dtype in (torch.float32, torch.bfloat16):
        results[str(dtype).removeprefix("torch.")] = {
            f"{rows} x {n}": race(call(False, rows, n, dtype), call(True, rows, n, dtype))
            for rows, n in shapes
        }
    return results


LENGTHS = np.cumsum(clipped_geometric()).tolist()
MASK, VOCABULARY, N = 4, 8_000, 512


def plain_block(
    ids: list[int], starts: list[int], frequent: list[int], rng: random.Random
) -> list[int]:
    """One block by the rules of the released code, in plain Python. starts: of words, and n;
    frequent: to draw from."""
    budget = -(-len(ids) * 15 // 100)
    masked: set[int] = set()
    while len(masked) < budget:
        length = bisect(LENGTHS, rng.random()) + 1
        anchor = rng.randrange(len(ids))
        if anchor in masked:
            continue  # the length is thrown away, too
        word = bisect(starts, anchor) - 1
        places = range(starts[word], starts[min(word + length, len(starts) - 1)])
        masked.update([place for place in places if place not in masked][: budget - len(masked)])
    seen = list(ids)
    before = None
    for place in sorted(masked):
        if before != place - 1:
            draw = rng.random()  # once for spans that touch
        if draw < 0.9:
            seen[place] = MASK if draw < 0.8 else frequent[rng.randrange(len(frequent))]
        before = place
    return seen


def masking() -> dict:
    """Choosing and replacing; the last row breaks words as the released code does."""

    def compare(rows: int, scheme: SpanMasking) -> dict:
        rng, loop_rng = np.random.default_rng(0), random.Random(0)
        ids = rng.integers(5, VOCABULARY, (rows, N))
        word_starts = rng.random((rows, N)) < 0.75
        word_starts[:, 0] = True
        lengths = np.full(rows, N)
        frequent = rng.integers(5, VOCABULARY, 10**6)
        drawn = frequent.tolist()
        both = zip(ids.tolist(), word_starts, strict=True)
        lists = [(row, [*np.flatnonzero(starts).tolist(), N]) for row, starts in both]

        def fast() -> None:
            selected = scheme.select_batch(word_starts, lengths, rng)
            corrupt(ids, selected, rng, mask_id=MASK, random_ids=frequent)

        def plain() -> None:
            for row, starts in lists:
                plain_block(row, starts, drawn, loop_rng)

        result = race(fast, plain, rounds=15)
        speeds = [round(rows * N / each / 1e6, 2) for each in result.pop("seconds")]
        return result | {"million_tokens_a_second": speeds}

    results = {f"batch of {rows}": compare(rows, SpanMasking()) for rows in (32, 64, 256)}
    released = compare(64, SpanMasking(complete_words=False))
    return {"tokens": N, **results, "batch of 64, words may break": released}


MODELS = {"tiny": 4_000, "mini": 8_000, "mini, large vocabulary": 29_000, "base": 29_000}


def step_named(whose: str, name: str, kind: str) -> Step:
    """The step of a model of this name: both programs get the same batch."""
    vocabulary = MODELS[name]
    config = EncoderConfig.preset(name.split(",")[0], vocab_size=vocabulary, **NO_DROPOUT)
    batches = data("mlm", vocabulary, 8 if name == "base" else 32).batches(np.random.default_rng(0))
    return step_of(whose, config, next(batches), getattr(torch, kind))


def serve(whose: str, name: str, kind: str) -> None:
    """Makes a step for each line that comes in, and answers each with an empty one."""
    if whose != "theirs":
        keep_freed_memory()
    step = step_named(whose, name, kind)
    for _ in sys.stdin:
        step()
        print(flush=True)


@contextmanager
def apart(whose: str, name: str, kind: str) -> Iterator[Step]:
    """The step in a process of its own, as its users run it: ours keeps freed memory. It waits while
    the other one is at work."""
    program = f"from benchmarks.engine import serve; serve({whose!r}, {name!r}, {kind!r})"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        yield lambda: process.stdin.write("\n") and process.stdout.readline()
        process.stdin.close()


def steps() -> dict:
    """Our step against theirs; what the SBO adds; how many times as fast as the model the batches
    come."""
    keep_freed_memory()  # as `train` does; both kinds of step gain by it

    def compare(name: str, kind: str) -> dict:
        rows, dtype = 8 if name == "base" else 32, getattr(torch, kind)
        with ExitStack() as processes:
            racers = [processes.enter_context(apart(who, name, kind)) for who in ("mlm", "theirs")]
            result = {"batch": rows, "against_transformers": race(*racers)}
        both = (step_named(who, name, kind) for who in ("mlm", "theirs"))
        result["memory_kept_for_both"] = race(*both)
        # Windows removes no file that is mapped
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            corpus = on_disk(random_text(MODELS[name]), Path(folder))
            source = data("span+sbo", MODELS[name], rows, corpus=corpus)
            drawn = source.batches(np.random.default_rng(0))
            spans = next(drawn)
            bare = {key: value for key, value in spans.items() if not key.startswith("boundary")}
            config = EncoderConfig.preset(name.split(",")[0], vocab_size=MODELS[name], **NO_DROPOUT)
            sbo = step_of("span+sbo", config, spans, dtype)
            without = step_of("span", config, bare, dtype)
            result["span_with_sbo_against_without"] = race(without, sbo)
            drawing = race(lambda: next(drawn), sbo)
        result["drawing_against_the_step"] = drawing
        tokens, drawn_tokens = (round(rows * 128 / each) for each in reversed(drawing["seconds"]))
        return result | {"tokens_a_second": tokens, "tokens_drawn_a_second": drawn_tokens}

    results: dict = {"threads": torch.get_num_threads(), "length": 128}
    for kind in ("float32", "bfloat16") if precision() == "bf16" else ("float32",):
        results[kind] = {name: compare(name, kind) for name in MODELS}
    return results


def some_steps(
    whose: str, size: str, shape: tuple[int, int, int], kind: str, keeping: bool, times: int
) -> dict:
    """The median processor seconds of a step after the first ones, and the most memory beyond that
    before the model, in MiB. shape: vocabulary, inputs, length."""
    torch.set_num_threads(1)
    assert not keeping or keep_freed_memory(), "this system has no such setting"
    vocabulary, rows, length = shape
    batch = next(data("mlm", vocabulary, rows, length).batches(np.random.default_rng(0)))
    config = EncoderConfig.preset(size, vocab_size=vocabulary, **NO_DROPOUT)
    before = greatest_memory()
    step = step_of(whose, config, batch, getattr(torch, kind))
    taken = []
    for _ in range(times):
        began = time.process_time()
        step()
        taken.append(time.process_time() - began)
    most = greatest_memory()
    return {"seconds": statistics.median(taken[-7:]), "mib": most, "added": most - before}


def freed_memory() -> dict:
    """Handed back / kept: above 1, keeping is faster; for the memory below 1, it takes more. A
    process cannot undo the setting, so each round starts two (`processes.keep_freed_memory`)."""
    shapes = {"tiny": (4_000, 32, 128), "mini": (8_000, 32, 128), "base": (29_000, 2, 512)}
    kind = "bfloat16" if precision() == "bf16" else "float32"
    results: dict = {"threads": 1}
    for size, shape in shapes.items():
        given = f"'mlm', {size!r}, {shape}, {kind!r}"
        calls = [f"some_steps({given}, {keeping}, 12)" for keeping in (True, False)]
        pairs = [[alone(call) for call in calls] for _ in range(ROUNDS)]
        found = ratio([(kept["seconds"], back["seconds"]) for kept, back in pairs])
        memory = ratio([(kept["mib"], back["mib"]) for kept, back in pairs], "memory_ratio")
        results[size] = {"rounds": ROUNDS, **found, "memory_ratio": memory["memory_ratio"]}
    return results


def memory() -> dict:
    """Of one step in float32, n = 512, batch 8; what the process took before is subtracted."""
    given = "'base', (29_000, 8, 512), 'float32', False, 2"
    calls = [f"some_steps({whose!r}, {given})" for whose in ("theirs", "mlm")]
    pairs = [[alone(call)["added"] for call in calls] for _ in range(ROUNDS)]
    theirs, ours = (round(statistics.median(column)) for column in zip(*pairs, strict=True))
    facts = {"model": "base", "length": 512, "batch": 8, "kind": "float32", "rounds": ROUNDS}
    return facts | {"ours_mib": ours, "theirs_mib": theirs} | ratio(pairs)


def reading(times: int) -> dict:
    """From a file of the almanac's first documents to 50 batches: processor seconds, memory."""
    run = Run(max_length=128, batch_size=32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "corpus.jsonl")
        some = islice(almanac.read("train"), 1_200 * times)
        file.write_text("".join(json.dumps(one) + "\n" for one in some), encoding="utf-8")
        before, began = greatest_memory(), time.process_time()
        text = open_text(str(file), Path(folder, "text"), data_path("almanac", "vocab.txt"))
        batches = runs.training_data(run, text).batches(np.random.default_rng(0))
        taken = time.process_time() - began
        list(islice(batches, 50))
        tokens = len(text.train.ids) + len(text.held_out.ids)
    most = greatest_memory()
    return {"tokens": tokens, "seconds": taken, "mib": most, "added": most - before}


def growth() -> dict:
    """Ten times as many documents, all different; the memory that libraries and vocabulary took
    before is not counted in `added_mib`."""
    pairs = [(alone("reading(1)"), alone("reading(10)")) for _ in range(ROUNDS)]
    columns = list(zip(*pairs, strict=True))
    peaks = ratio([(few["mib"], many["mib"]) for few, many in pairs], "peak_memory_ratio")
    return {
        "tokens": [one["tokens"] for one in pairs[0]],
        "rounds": ROUNDS,
        **ratio([(few["seconds"], many["seconds"]) for few, many in pairs], "seconds_ratio"),
        "peak_memory_ratio": peaks["peak_memory_ratio"],
        "added_mib": [round(statistics.median(one["added"] for one in row)) for row in columns],
    }


NAMES = {call.__name__: call for call in (attention, masking, steps, freed_memory, memory, growth)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the engine.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("output", nargs="?", type=Path, help="a JSON file")
    asked = parser.parse_args()
    command = f"python -m benchmarks.engine {asked.name} OUTPUT.json"
    results = {"command": command, "surroundings": surroundings(), **NAMES[asked.name]()}
    print(json.dumps(results, indent=1))
    if asked.output:
        write_json(asked.output, results)


if __name__ == "__main__":
    main()
