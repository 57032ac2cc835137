"""`make card-plan`: all that is due on a graphics card, in one call of a few minutes that may be
cut off.

    python tools/card_plan.py pack TEXT START VALID DATA PACKED     # here: what travels to the card
    python tools/card_plan.py run --output OUT --packed PACKED      # on the card
    python tools/card_plan.py collect OUT FOLDER                    # here: the checkpoints

TEXT is an encoded text, START a checkpoint to continue from, VALID unseen text (.jsonl), DATA a
folder of SQuAD files.

`run` does, in this order: the benchmark (`benchmarks.card`) alone, then `card_check.py --quick` and,
next to it, the runs of the experiment `masking_and_answers`. The output folder gets at most eight
files of at most 16 MiB:

- `benchmark.json`, `check.json`: the tables, written after each row;
- `answers.json`: the experiment's file, written after each round;
- `weights.json` and `weights.0` … `weights.3`: the trained models in half precision, one behind the
  other, as many as there is room for.

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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from environment import ROOT
from processes import stop

sys.path.insert(0, str(ROOT))  # a bare machine has the repository and no installed package

from spanbert_tutorial.engine.files import whole_file, whole_folder, write_json
from spanbert_tutorial.errors import InputError

PARTS = ("benchmark", "check", "runs")
BENCHMARK_SECONDS = 150  # at most, of a full plan
SPARE = 15  # seconds at the end, for the last file
MOST_SENT = 60 * 2**20  # bytes of all that is packed: with the repository it stays below 64 MiB
PIECE = 2**23  # tokens that are packed, and unpacked, at a time
# two bytes a token, which the defaults of xz do not know; Wikipedia needs 7.5 bits a token so
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 3, "lp": 1, "pb": 1}]
VOLUME = 31 * 2**19  # bytes: four of them and the tables stay below 64 MiB
VOLUMES = 4
WEIGHTS = "model.safetensors"
QUESTIONS = ("train-v1.1-part.json.xz", "dev-v1.1-half.json.xz")


# --- what travels to the card --------------------------------------------------------


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


def pack(
    text: Path,
    start: Path,
    valid: Path,
    data: Path,
    target: Path,
    most: int | None = None,
    largest: int = MOST_SENT,
) -> int:
    """Packs what the runs read into a new folder; its bytes. most: tokens of the training text, if
    not all. Raises InputError if they are more than `largest`, or something is missing."""
    if not (text / "tokenizer.json").is_file():
        raise InputError(
            f"{text} holds no encoded text: give the folder that has its tokenizer.json."
        )
    wanted = [start / WEIGHTS, valid, *(data / name for name in QUESTIONS)]
    if missing := [path for path in wanted if not path.is_file()]:
        raise InputError(f"{missing[0]} is missing: give the folder, or the file, that is there.")
    with whole_folder(target) as made:
        pack_text(text, made / "text", most)
        shutil.copytree(start, made / "start", ignore=shutil.ignore_patterns(WEIGHTS))
        weights = lzma.compress((start / WEIGHTS).read_bytes(), filters=FILTERS)
        (made / "start" / f"{WEIGHTS}.xz").write_bytes(weights)
        shutil.copy(valid, made / f"valid{''.join(valid.suffixes)}")
        (made / "data").mkdir()
        for name in QUESTIONS:
            shutil.copy(data / name, made / "data")
        size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
        if size > largest:
            raise InputError(
                f"what is packed has {size / 2**20:.0f} MiB, over {largest / 2**20:.0f}: take less "
                "of the text by --tokens."
            )
    return size


def pack_text(text: Path, made: Path, most: int | None) -> None:
    """An encoded text, its arrays in pieces."""
    made.mkdir()
    facts: dict[str, dict] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
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


def fingerprint(ids: np.ndarray) -> str:
    """Of the tokens, so that a broken copy is seen."""
    return hashlib.sha256(np.ascontiguousarray(ids).tobytes()).hexdigest()[:16]


def unpack(source: Path, target: Path) -> None:
    """Makes text and start again, whole or not at all; the rest is read where it is. Raises
    InputError for a broken copy."""
    text = source / "text"
    try:
        facts = json.loads((text / "packed.json").read_text(encoding="utf-8"))
        with whole_folder(target) as made:
            for part, arrays in facts.items():
                (made / "text" / part).mkdir(parents=True)
                ids, sentences, documents = (
                    unpacked(text, f"{part}.{name}", **arrays[name])
                    for name in ("ids", "sentences", "documents")
                )
                if fingerprint(ids) != arrays["fingerprint"]:
                    raise InputError(f"the packed text in {source} is broken: copy it again.")
                folder = made / "text" / part
                np.save(folder / "ids.npy", ids)
                np.save(folder / "sentence_ends.npy", np.cumsum(sentences, dtype=np.int64))
                np.save(folder / "document_ends.npy", np.cumsum(documents, dtype=np.int64))
            shutil.copy(text / "tokenizer.json", made / "text")
            ignored = shutil.ignore_patterns(f"{WEIGHTS}.xz")
            shutil.copytree(source / "start", made / "start", ignore=ignored)
            weights = lzma.decompress((source / "start" / f"{WEIGHTS}.xz").read_bytes())
            (made / "start" / WEIGHTS).write_bytes(weights)
    except (OSError, ValueError, KeyError, TypeError, lzma.LZMAError, EOFError) as error:
        raise InputError(f"{source} is not whole ({error}): pack it again.") from None


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


class Kept:
    """The trained models of an output folder."""

    def __init__(self, output: Path, start: Path):
        self.file = output / "weights.json"
        self.start = start
        self.rows: list[dict[str, Any]] = []
        if self.file.is_file():
            self.rows = json.loads(self.file.read_text(encoding="utf-8"))
        used = max((row["began"] + row["length"] for row in self.rows), default=0)
        self.volumes = Volumes(output, used)

    def keep(self, arm: str, seed: int, weights: dict[str, Any]) -> None:
        """The weights first, then the row that names them: without it they do not count."""
        from spanbert_tutorial.pretraining.checkpoints import (  # here: it imports torch, which
            continue_from,  # `pack` does not need
            read_vocabulary,
            save_checkpoint,
        )

        name = f"{arm.replace('+', '-')}-{seed}"
        if name in [row["name"] for row in self.rows]:
            return
        model = continue_from(self.start, arm, seed)[0]
        model.load_state_dict(weights)
        card = f"# {name}\n\nTrained by `tools/card_plan.py`; `answers.json` has its figures.\n"
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, "checkpoint")
            vocabulary = read_vocabulary(self.start)
            save_checkpoint(folder, model, vocabulary, arm, {"README.md": card}, half=True)
            content = as_archive(folder)
        if not self.volumes.room(len(content)):
            print(f"runs: no room for the weights of {name}", flush=True)
            return
        began = self.volumes.append(content)
        sha256 = hashlib.sha256(content).hexdigest()
        row = {"name": name, "began": began, "length": len(content), "sha256": sha256}
        self.rows.append(row)
        write_json(self.file, self.rows)


def collect(output: Path, target: Path) -> list[str]:
    """Writes the checkpoints that came back into a new folder, one folder each; their names.
    Raises InputError where none came back, or one is broken."""
    file = output / "weights.json"
    if not file.is_file():
        raise InputError(f"{output} has no weights.json: no run was finished.")
    rows = json.loads(file.read_text(encoding="utf-8"))
    volumes = Volumes(output)
    with whole_folder(target) as made:
        for row in rows:
            content = volumes.read(row["began"], row["length"])
            if hashlib.sha256(content).hexdigest() != row["sha256"]:
                raise InputError(f"the weights of {row['name']} are broken: copy {output} again.")
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(made / row["name"], filter="data")
    return [row["name"] for row in rows]


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
        if asked.packed is None:
            print("runs: left out, since there is no --packed", flush=True)
            return due
        due["runs"] = [__file__, "train", "--output", str(asked.output), "--scratch", str(scratch)]
        due["runs"] += ["--packed", str(asked.packed), *toy]
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
    from research.experiments import masking_and_answers as experiment
    from spanbert_tutorial.pretraining.encoded_text import reopen_text

    here = asked.scratch / "unpacked"
    if not here.is_dir():
        unpack(asked.packed, here)
    settings = experiment.TOY if asked.toy else experiment.Settings()
    settings = settings if asked.steps is None else replace(settings, steps=asked.steps)
    (valid,) = asked.packed.glob("valid.*")
    start = here / "start"
    text = reopen_text(here / "text")
    given = experiment.prepare(text, start, valid, asked.packed / "data", settings)
    print("runs: all is prepared", flush=True)
    kept = Kept(asked.output, start)
    done = experiment.work(asked.output / "answers.json", given, settings, kept.keep, end)
    return 0 if done else 1


# --- the command line ----------------------------------------------------------------


def place(text: str) -> Path:
    """A path that is the same for the parts, which run in another folder."""
    return Path(text).resolve()


def words_of(text: str) -> list[str]:
    """What a comma divides."""
    return [word for word in text.split(",") if word]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    doc = __doc__ or ""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=form)
    doing = parser.add_subparsers(dest="what", required=True)
    packing = doing.add_parser("pack", help="pack what is to be sent")
    packing.add_argument("text", type=Path, help="folder with train, held_out, tokenizer.json")
    packing.add_argument("start", type=Path, help="checkpoint to continue from")
    packing.add_argument("valid", type=Path, help="unseen text (.jsonl)")
    packing.add_argument("data", type=Path, help="folder of SQuAD files (.json.xz)")
    packing.add_argument("target", type=Path)
    packing.add_argument("--tokens", type=int, help="at most so many of the training text")
    collecting = doing.add_parser("collect", help="the checkpoints that came back")
    collecting.add_argument("source", type=Path)
    collecting.add_argument("target", type=Path)
    for name in ("run", "train"):
        told = "do what is due" if name == "run" else "only the runs, as `run` starts them"
        running = doing.add_parser(name, help=told)
        running.add_argument("--output", type=place, required=True)
        running.add_argument("--minutes", type=float, default=9.0)
        running.add_argument("--packed", type=place, help="what was packed; without it, no runs")
        running.add_argument("--steps", type=int, help="of a run, where a card is slower or faster")
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
            given = asked.text, asked.start, asked.valid, asked.data
            size = pack(*given, asked.target, asked.tokens)
            print(f"{asked.target}: {size / 2**20:.1f} MiB.")
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
