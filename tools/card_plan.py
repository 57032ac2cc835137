"""`make card-plan`: all that is due on a graphics card, in one call of a few minutes that may be
cut off.

    python tools/card_plan.py pack TEXT PACKED          # here: an encoded text, packed to travel
    python tools/card_plan.py run --output OUT --text PACKED --start CHECKPOINT    # on the card
    python tools/card_plan.py collect OUT FOLDER        # here: the checkpoints that came back

`run` does, in this order: the benchmark (`benchmarks.card`) alone, then `card_check.py --quick`
and, beside it, the runs: each arm (a row of the objectives, or a mixture) goes on from the start
checkpoint over the text, with each seed. The output folder gets at most eight files of at most 16
MiB:

- `benchmark.json`, `check.json`: the tables, written after each row;
- `runs.json`: of each finished run its settings, tokens seen, seconds, curve and held-out losses;
- `weights.0` … `weights.4`: the checkpoints in half precision, one behind the other.

Each file is written whole or not at all, so what was finished stays. A second call with the same
output does what is left. `run --toy` rehearses everything on a CPU.

A machine with a card may have no network and nothing but torch, transformers, accelerate and
tokenizers: what notebooks need beyond them must be installed from wheels before, else `--parts
benchmark,runs`.
"""

import argparse
import hashlib
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from environment import ROOT
from processes import stop

sys.path.insert(0, str(ROOT))  # a bare machine has the repository and no installed package

from spanbert_tutorial.engine.files import whole_file, whole_folder, write_json
from spanbert_tutorial.errors import InputError

PARTS = ("benchmark", "check", "runs")
ARMS = ("mlm", "span+sbo", "mix", "mlm+nsp")
BENCHMARK_SECONDS = 240  # at most, of a full plan
SPARE = 15  # seconds at the end, for the last file
MOST_SENT = 60 * 2**20  # bytes of a packed text: with a start checkpoint it still goes into 64 MiB
PIECE = 2**23  # tokens that are packed, and unpacked, at a time
# two bytes a token, which the defaults of xz do not know; Wikipedia needs 7.5 bits a token so
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 3, "lp": 1, "pb": 1}]
VOLUME = 16 * 2**20 - 2**10
VOLUMES = 5
HELD_OUT_BATCHES = 64
CURVE_EVERY = 25  # steps


# --- a text that travels -------------------------------------------------------------


def packed(values: np.ndarray) -> bytes:
    """xz of an array's bytes."""
    return lzma.compress(values.tobytes(), format=lzma.FORMAT_XZ, filters=FILTERS)


def lengths_of(ends: np.ndarray) -> np.ndarray:
    """Ends as lengths, which are small."""
    lengths = np.diff(ends, prepend=0)
    return lengths.astype(np.uint16 if lengths.max(initial=0) < 2**16 else np.int64)


def cut(folder: Path, most: int | None) -> dict[str, np.ndarray]:
    """The arrays of an encoded corpus, or of its first documents with at most so many tokens."""
    names = ("ids", "sentence_ends", "document_ends")
    ids, sentences, documents = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in names)
    kept = len(documents) if most is None else int(np.searchsorted(documents, most, "right"))
    if kept == 0:
        raise InputError(
            f"the first document is longer than {most} tokens: allow more by --tokens."
        )
    end = int(documents[kept - 1])
    sentences = sentences[: int(np.searchsorted(sentences, end, "right"))]
    return {
        "ids": ids[:end],
        "sentences": lengths_of(sentences),
        "documents": lengths_of(documents[:kept]),
    }


def pack(text: Path, target: Path, most: int | None = None, largest: int = MOST_SENT) -> int:
    """Packs an encoded text, or as much of its training part as `most` tokens, into a new folder;
    its bytes. Raises InputError if they are more than `largest`, or the text is not whole."""
    if not (text / "tokenizer.json").is_file():
        raise InputError(
            f"{text} holds no encoded text: give the folder that has its tokenizer.json."
        )
    facts: dict[str, dict] = {}
    with whole_folder(target) as made, ProcessPoolExecutor(os.cpu_count()) as pool:
        for part in ("train", "held_out"):
            arrays = cut(text / part, most if part == "train" else None)
            facts[part] = {}
            for name, values in arrays.items():
                pieces = [values[at : at + PIECE] for at in range(0, len(values), PIECE)]
                for number, content in enumerate(pool.map(packed, pieces)):
                    (made / f"{part}.{name}.{number}.xz").write_bytes(content)
                facts[part][name] = {"type": str(values.dtype), "pieces": len(pieces)}
            facts[part]["fingerprint"] = fingerprint(arrays["ids"])
        shutil.copy(text / "tokenizer.json", made)
        write_json(made / "packed.json", facts)
        size = sum(file.stat().st_size for file in made.iterdir())
        if size > largest:
            raise InputError(
                f"the packed text has {size / 2**20:.0f} MiB, over {largest / 2**20:.0f}: take less "
                "of it by --tokens."
            )
    return size


def fingerprint(ids: np.ndarray) -> str:
    """Of the tokens, so that a broken copy is seen."""
    return hashlib.sha256(np.ascontiguousarray(ids).tobytes()).hexdigest()[:16]


def unpack(source: Path, target: Path) -> None:
    """Makes the encoded text again, whole or not at all. Raises InputError for a broken copy."""
    try:
        facts = json.loads((source / "packed.json").read_text(encoding="utf-8"))
        with whole_folder(target) as made:
            for part, arrays in facts.items():
                (made / part).mkdir()
                ids, sentences, documents = (
                    unpacked(source, f"{part}.{name}", **arrays[name])
                    for name in ("ids", "sentences", "documents")
                )
                if fingerprint(ids) != arrays["fingerprint"]:
                    raise InputError(f"the packed text in {source} is broken: copy it again.")
                np.save(made / part / "ids.npy", ids)
                np.save(made / part / "sentence_ends.npy", np.cumsum(sentences, dtype=np.int64))
                np.save(made / part / "document_ends.npy", np.cumsum(documents, dtype=np.int64))
            shutil.copy(source / "tokenizer.json", made)
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError, EOFError) as error:
        raise InputError(f"{source} holds no whole packed text ({error}): pack it again.") from None


def unpacked(source: Path, stem: str, type: str, pieces: int) -> np.ndarray:
    """One array."""
    files = [source / f"{stem}.{number}.xz" for number in range(pieces)]
    with ProcessPoolExecutor(min(len(files), os.cpu_count() or 1) or 1) as pool:
        return np.concatenate([np.frombuffer(b, type) for b in pool.map(read_xz, files)])


def read_xz(path: Path) -> bytes:
    """The unpacked bytes of a file."""
    return lzma.decompress(path.read_bytes())


# --- checkpoints that come back ------------------------------------------------------


@dataclass
class Volumes:
    """Bytes one behind the other, in a few files of a limited size."""

    folder: Path
    used: int = 0  # bytes that count; what lies behind them is of a run that was cut off
    size: int = VOLUME
    most: int = VOLUMES

    def room(self, more: int) -> bool:
        """Whether so many bytes still go in."""
        return self.used + more <= self.size * self.most

    def append(self, content: bytes) -> int:
        """Writes them; where they begin. Each file is replaced whole."""
        began = self.used
        while content:
            number, inside = divmod(self.used, self.size)
            path = self.folder / f"weights.{number}"
            before = path.read_bytes()[:inside] if inside else b""
            part, content = content[: self.size - inside], content[self.size - inside :]
            with whole_file(path) as file:
                file.write_bytes(before + part)
            self.used += len(part)
        return began

    def read(self, began: int, length: int) -> bytes:
        """So many bytes from there on."""
        found = b""
        for number in range(began // self.size, (began + length - 1) // self.size + 1):
            content = (self.folder / f"weights.{number}").read_bytes()
            start = max(began - number * self.size, 0)
            found += content[start : began + length - number * self.size]
        return found


def as_archive(folder: Path) -> bytes:
    """A folder's files, packed lightly: half-precision weights hardly shrink."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for file in sorted(folder.iterdir()):
            archive.add(file, file.name)
    return stream.getvalue()


def collect(output: Path, target: Path) -> list[str]:
    """Writes the checkpoints of the finished runs into a new folder, one folder each; their names.
    Raises InputError where none came back, or one is broken."""
    file = output / "runs.json"
    if not file.is_file():
        raise InputError(f"{output} has no runs.json: no run was finished.")
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    volumes = Volumes(output)
    names = []
    with whole_folder(target) as made:
        for row in rows:
            if row["weights"] is None:
                continue
            content = volumes.read(row["weights"]["began"], row["weights"]["length"])
            if hashlib.sha256(content).hexdigest() != row["weights"]["sha256"]:
                raise InputError(f"the weights of {name_of(row)} are broken: copy {output} again.")
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(made / name_of(row), filter="data")
            names.append(name_of(row))
    return names


def name_of(row: Mapping[str, Any]) -> str:
    """The folder of a run's checkpoint."""
    return f"{row['arm'].replace('+', '-')}-{row['seed']}"


# --- the runs ------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What all runs share. size: of a model without a start checkpoint."""

    steps: int = 2_000
    max_length: int = 256
    batch_size: int = 128
    peak_learning_rate: float = 1.5e-3
    size: str = "mini"


TOY = Settings(steps=3, max_length=16, batch_size=4, size="tiny")


class OutOfTime(Exception):
    """A run would not end in time."""


@dataclass
class Watch:
    """Counts the tokens of a run's batches, and ends the run where the time is too short for it."""

    steps: int
    end: float  # on the monotonic clock
    tokens: int = 0
    warm: int = 20  # batches after which a step takes what it takes
    sample: int = 40
    seen: int = field(default=0, init=False)

    def over(self, batches: Iterable[dict]) -> Iterator[dict]:
        """The same batches. Raises OutOfTime, after a few of them if they foretell it."""
        began = 0.0
        for batch in batches:
            now = time.monotonic()
            if self.seen == self.warm:
                began = now
            left = self.steps - self.seen
            if (
                self.seen == self.warm + self.sample
                and left * (now - began) / self.sample > self.end - now
            ):
                needed = left * (now - began) / self.sample
                raise OutOfTime(f"it needs {needed:.0f} s more, {self.end - now:.0f} s are left")
            if now > self.end:
                raise OutOfTime(f"stopped before step {self.seen + 1} of {self.steps}")
            self.seen += 1
            self.tokens += int(batch["attention_mask"].sum())
            yield batch


class Runs:
    """The finished runs of an output folder, and those that are left."""

    def __init__(self, output: Path, settings: Settings, text_folder: Path, start: Path | None):
        from benchmarks.card import machine  # here: it imports torch, which `pack` does not need
        from spanbert_tutorial.pretraining.encoded_text import reopen_text

        self.file = output / "runs.json"
        self.settings = settings
        self.start = start
        self.text = reopen_text(text_folder)
        self.data: dict[str, Any] = {}
        facts = {
            "settings": asdict(settings),
            "text": fingerprint(self.text.train.ids),
            "tokens_of_the_text": len(self.text.train.ids),
            "start": None if start is None else file_fingerprint(start / "model.safetensors"),
        }
        self.found: dict[str, Any] = {**facts, "surroundings": machine(), "rows": []}
        if self.file.is_file():
            before = json.loads(self.file.read_text(encoding="utf-8"))
            different = [name for name, value in facts.items() if before[name] != value]
            if different:
                raise InputError(
                    f"{self.file} has runs with other {' and '.join(different)}: give another "
                    "--output, or the same settings."
                )
            self.found = before
        weights = [row["weights"] for row in self.found["rows"] if row["weights"]]
        used = max((one["began"] + one["length"] for one in weights), default=0)
        self.volumes = Volumes(output, used)

    def left(self, arms: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int]]:
        """Arms and seeds without a row: every arm with the first seed, then with the second."""
        done = {(row["arm"], row["seed"]) for row in self.found["rows"]}
        wanted = [(arm, seed) for seed in seeds for arm in arms]
        return [one for one in wanted if one not in done]

    def work(self, arms: Iterable[str], seeds: Iterable[int], end: float) -> bool:
        """Trains what is left, until `end`; whether all is done."""
        longest = 0.0
        for arm, seed in self.left(arms, seeds):
            began = time.monotonic()
            if began + longest > end:
                print(f"runs: no time for {arm}, seed {seed}, and what follows", flush=True)
                return False
            try:
                self.one(arm, seed, end)
            except OutOfTime as why:
                print(f"runs: {arm}, seed {seed}: {why}", flush=True)
                return False
            longest = max(longest, time.monotonic() - began)
        return True

    def one(self, arm: str, seed: int, end: float) -> None:
        """Trains, measures, keeps one model. Raises OutOfTime."""
        import torch

        from spanbert_tutorial.bert.encoder import set_dropout
        from spanbert_tutorial.engine.ahead import drawn_ahead
        from spanbert_tutorial.engine.loop import train
        from spanbert_tutorial.pretraining import runs
        from spanbert_tutorial.pretraining.checkpoints import continue_from
        from spanbert_tutorial.pretraining.evaluation import held_out_metrics
        from spanbert_tutorial.pretraining.fixed_shapes import (
            compiled,
            compiling_pays,
            with_fixed_shapes,
        )
        from spanbert_tutorial.pretraining.presets import RUNS

        run = replace(RUNS[self.settings.size], **asdict(self.settings))
        run = replace(run, objective=arm, seed=seed, by_length=False)
        if arm not in self.data:  # of sentence pairs it takes long to make
            self.data[arm] = runs.data_of(run, self.text)
        model = (
            runs.new_model(run, self.text)
            if self.start is None
            else continue_from(self.start, arm, seed)[0]
        )
        set_dropout(model, run.dropout)
        watch = Watch(run.steps, end)
        began = time.monotonic()
        batches = self.data[arm].batches(np.random.default_rng(seed))
        compiling = compiling_pays(run)
        batches = with_fixed_shapes(batches) if compiling else batches
        torch.compiler.reset()  # a function is compiled eight times at most
        with (
            compiled(model, run) if compiling else nullcontext(),
            drawn_ahead(batches, torch.device(device())) as drawn,
        ):
            history = train(model, watch.over(drawn), run.recipe(), self.text.unigram_entropy)
        seconds = time.monotonic() - began
        model.to(device())
        held_out = held_out_metrics(model, run, self.text, HELD_OUT_BATCHES)
        row = {"arm": arm, "seed": seed, "steps": run.steps, "tokens": watch.tokens}
        row |= {
            "seconds": round(seconds, 1),
            "held_out": rounded(held_out),
            "curve": curve(history.losses),
        }
        self.keep(row, model.cpu())
        rate = watch.tokens / seconds
        print(f"runs: {arm}, seed {seed}: {seconds:.0f} s, {rate:,.0f} tokens/s", flush=True)

    def keep(self, row: dict[str, Any], model: Any) -> None:
        """The weights first, then the row that names them: without it they do not count."""
        from spanbert_tutorial.pretraining.checkpoints import save_checkpoint

        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "checkpoint")
            card = f"# {name_of(row)}\n\nTrained by `tools/card_plan.py`; `runs.json` has its figures.\n"
            save_checkpoint(
                folder, model, self.text.wordpiece, row["arm"], {"README.md": card}, half=True
            )
            content = as_archive(folder)
        row["weights"] = None
        if self.volumes.room(len(content)):
            sha256 = hashlib.sha256(content).hexdigest()
            began = self.volumes.append(content)
            row["weights"] = {"began": began, "length": len(content), "sha256": sha256}
        else:
            print(f"runs: no room for the weights of {name_of(row)}: losses only", flush=True)
        self.found["rows"].append(row)
        write_json(self.file, self.found)


def rounded(ways: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """With four decimals; more would differ between machines."""
    return {
        way: {name: round(value, 4) for name, value in found.items()} for way, found in ways.items()
    }


def curve(losses: Mapping[str, list[float]]) -> dict[str, list[float | None]]:
    """Means of each loss over every `CURVE_EVERY` steps; None where objectives take turns and none
    of the steps had it."""
    found: dict[str, list[float | None]] = {}
    for name, values in losses.items():
        parts = np.split(np.array(values), range(CURVE_EVERY, len(values), CURVE_EVERY))
        real = [part[~np.isnan(part)] for part in parts]
        found[name] = [round(float(part.mean()), 4) if len(part) else None for part in real]
    return found


def file_fingerprint(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def device() -> str:
    """Where models compute."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


# --- the plan ------------------------------------------------------------------------


def finished(output: Path, name: str) -> bool:
    """Whether an earlier call has finished the benchmark, or the check."""
    file = output / f"{name}.json"
    return file.is_file() and bool(json.loads(file.read_text(encoding="utf-8")).get("finished"))


def commands(asked: argparse.Namespace, scratch: Path) -> dict[str, list[str]]:
    """The command of each part that is due, without its time."""
    toy = ["--toy"] if asked.toy else []
    wanted = [name for name in PARTS if name in asked.parts]
    due: dict[str, list[str]] = {}
    if "benchmark" in wanted and not finished(asked.output, "benchmark"):
        due["benchmark"] = ["-m", "benchmarks.card", str(asked.output / "benchmark.json"), *toy]
    if "check" in wanted and not finished(asked.output, "check"):
        what = [str(ROOT / "book/tasks/squad.ipynb")] if asked.toy else ["--quick"]
        due["check"] = [str(ROOT / "tools/card_check.py"), *what]
        due["check"] += ["--output", str(asked.output / "check.json")]
    if "runs" in wanted:
        if asked.text is None:
            print("runs: left out, since there is no --text", flush=True)
            return due
        due["runs"] = [__file__, "train", "--output", str(asked.output), "--scratch", str(scratch)]
        due["runs"] += ["--text", str(asked.text), "--arms", ",".join(asked.arms), *toy]
        due["runs"] += ["--seeds", ",".join(map(str, asked.seeds))]
        due["runs"] += [] if asked.start is None else ["--start", str(asked.start)]
        due["runs"] += [] if asked.steps is None else ["--steps", str(asked.steps)]
    return due


def started(name: str, command: list[str], seconds: float) -> subprocess.Popen:
    """A part, in a process of its own; one that knows its time gets it, less what it takes to
    stop."""
    minutes = [] if name == "benchmark" else ["--minutes", str(max(seconds - SPARE / 3, 0) / 60)]
    print(f"{name}: begins, {seconds:.0f} s at most", flush=True)
    folders = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONPATH": folders, "SPANBERT_TUTORIAL_CARD": "1"}
    return subprocess.Popen([sys.executable, *command, *minutes], cwd=ROOT, env=environment)


def ended(name: str, process: subprocess.Popen, end: float) -> bool:
    """Waits for a part until `end`, then stops it; whether it went through."""
    try:
        process.wait(max(end - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        stop(process)
        print(f"{name}: stopped, its time was over", flush=True)
        return False
    print(f"{name}: ended with the status {process.returncode}", flush=True)
    return process.returncode == 0


def run_plan(asked: argparse.Namespace) -> int:
    """All parts; the exit code is 0 when nothing is left to do."""
    end = time.monotonic() + 60 * asked.minutes - SPARE
    asked.output.mkdir(parents=True, exist_ok=True)
    for left in asked.output.glob(".spanbert-*.part"):
        left.unlink()  # of a call that was cut off
    running: dict[str, subprocess.Popen] = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the parts are stopped below
    try:
        with tempfile.TemporaryDirectory() as scratch:
            due = commands(asked, Path(scratch))
            passed = []
            if "benchmark" in due:  # alone: its times count
                now = time.monotonic()
                limit = end - now if len(due) == 1 else min(end - now, BENCHMARK_SECONDS)
                command = due.pop("benchmark")
                running["benchmark"] = started("benchmark", command, limit)
                passed.append(ended("benchmark", running["benchmark"], now + limit))
            for name, command in due.items():
                running[name] = started(name, command, end - time.monotonic())
            passed += [ended(name, running[name], end) for name in due]
    finally:
        for process in running.values():
            if process.poll() is None:
                stop(process)
    print("The plan is done." if all(passed) else "Something is left: call it again.", flush=True)
    return 0 if all(passed) else 1


def train_part(asked: argparse.Namespace) -> int:
    """The process of the runs."""
    end = time.monotonic() + 60 * asked.minutes
    text = asked.text
    if (text / "packed.json").is_file():
        text = asked.scratch / "text"
        unpack(asked.text, text)
    settings = TOY if asked.toy else Settings()
    settings = settings if asked.steps is None else replace(settings, steps=asked.steps)
    runs = Runs(asked.output, settings, text, asked.start)
    return 0 if runs.work(asked.arms, asked.seeds, end) else 1


# --- the command line ----------------------------------------------------------------


def place(text: str) -> Path:
    """A path that is the same for the parts, which run in another folder."""
    return Path(text).resolve()


def words_of(text: str) -> list[str]:
    """What a comma divides."""
    return [word for word in text.split(",") if word]


def numbers_of(text: str) -> list[int]:
    """The same, as numbers."""
    return [int(word) for word in words_of(text)]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    doc = __doc__ or ""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=form)
    doing = parser.add_subparsers(dest="what", required=True)
    packing = doing.add_parser("pack", help="pack an encoded text, to be sent")
    packing.add_argument("source", type=Path, help="folder with train, held_out, tokenizer.json")
    packing.add_argument("target", type=Path)
    packing.add_argument("--tokens", type=int, help="at most so many of the training part")
    for name, told in (("unpack", "the encoded text again"), ("collect", "the checkpoints")):
        other = doing.add_parser(name, help=told)
        other.add_argument("source", type=Path)
        other.add_argument("target", type=Path)
    for name in ("run", "train"):
        told = "do what is due" if name == "run" else "only the runs, as `run` starts them"
        running = doing.add_parser(name, help=told)
        running.add_argument("--output", type=place, required=True)
        running.add_argument("--minutes", type=float, default=9.0)
        running.add_argument("--text", type=place, help="packed or encoded, to train on")
        running.add_argument(
            "--start", type=place, help="checkpoint to go on from; else new weights"
        )
        running.add_argument("--arms", type=words_of, default=ARMS, help="objectives, with commas")
        running.add_argument("--seeds", type=numbers_of, default=(1, 2, 3), help="with commas")
        running.add_argument("--steps", type=int, help=f"of a run; {Settings().steps} by default")
        running.add_argument("--toy", action="store_true", help="a rehearsal with toy sizes")
        if name == "run":
            running.add_argument("--parts", type=words_of, default=PARTS, help=",".join(PARTS))
        else:
            running.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """The exit code: 0 when nothing is left, 1 when something is, 2 for bad input."""
    asked = arguments(words)
    try:
        if asked.what == "pack":
            size = pack(asked.source, asked.target, asked.tokens)
            print(f"{asked.target}: {size / 2**20:.1f} MiB.")
        elif asked.what == "unpack":
            unpack(asked.source, asked.target)
        elif asked.what == "collect":
            print(*collect(asked.source, asked.target))
        else:
            return run_plan(asked) if asked.what == "run" else train_part(asked)
    except InputError as error:
        print(f"card_plan: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
