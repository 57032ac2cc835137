"""A run that is killed again and again ends with the weights of one that is left alone.

`python -m benchmarks.kills data/results/kills.json` kills 50 times (SIGKILL, which no program can
catch): at any moment from the start on, so also while a snapshot is loaded; just after a snapshot,
often while the next is being written, for the run writes one after every step; after the last step;
and while it writes the checkpoint.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.race import keep
from spanbert_tutorial.engine.snapshots import checksum

# The command as it is, but with a snapshot after every step.
PROGRAM = (
    "import sys; from spanbert_tutorial.engine import snapshots; snapshots.EVERY = 0; "
    "from spanbert_tutorial.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
# seconds after the start, a snapshot, the last snapshot, the first file of the checkpoint
LATEST = {"any": 4.0, "a snapshot": 0.3, "the end": 0.5, "the checkpoint": 0.01}
# what a broken write leaves
WRITTEN = (
    "hunted.training/snapshots/*.part",
    "hunted.training/.spanbert-*.part",
    ".spanbert-*.part",
)
RUN = ["pretrain", "--max-length", "32", "--batch-size", "4", "--objective", "span+sbo"]


def corpus(path: Path, documents: int = 200) -> Path:
    """Sentences of a few words, a blank line after four of them."""
    words = ["river", "boat", "miller", "sold", "mended", "green", "door", "a", "the", "old"]
    rng = random.Random(0)
    sentence = "{} {} {} {} {}.".format
    texts = [
        "\n".join(sentence(*rng.choices(words, k=5)) for _ in range(4)) for _ in range(documents)
    ]
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def start(text: Path, output: Path, steps: int, *more: str) -> subprocess.Popen:
    given = ["--corpus", text, "--output", output, "--steps", steps, "--vocab-size", 60]
    command = [sys.executable, "-c", PROGRAM, *RUN, *map(str, given), *more]
    environment = {**os.environ, "SPANBERT_TUTORIAL_STATIC": "1", "OMP_NUM_THREADS": "1"}
    with output.with_name("errors.txt").open("w") as errors:
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)


def kill_once(text: Path, output: Path, rng: random.Random, moment: str, steps: int) -> dict:
    """Starts or goes on, waits for a random moment of this kind and kills. Where the run was
    faster, or its checkpoint was whole already, what was there before is put back, so that there is
    something left to kill."""
    state = state_of(output)
    backup = output.with_name("backup")
    if state.exists():
        shutil.copytree(state, backup)
    before = newest(state)
    halves = unfinished(output)
    process = start(text, output, steps, *["--resume"] * state.exists())
    wanted = {"any": 0, "a snapshot": before + 1}.get(moment, steps)
    while newest(state) < wanted and process.poll() is None:
        time.sleep(0.002)
    while moment == "the checkpoint" and not begun(output, halves) and process.poll() is None:
        pass  # it is written in a few hundredths of a second
    starting = (
        LATEST["any"] if moment == "the end" and before == steps else 0.0
    )  # it has to start again first
    time.sleep(rng.uniform(0, starting + LATEST[moment]))
    process.kill()
    process.wait()
    whole = output.exists()
    found = {
        "moment": moment,
        "step": steps if whole else newest(state),
        "whole": whole,
        "half": begun(output, halves),
        "writing": bool(unfinished(output) - halves),
        "killed": process.returncode == -9,
    }
    assert found["killed"] or process.returncode == 0, output.with_name("errors.txt").read_text()
    if whole:
        if (
            found["killed"] and state.exists()
        ):  # killed while the state was removed: nothing is left to do
            assert start(text, output, steps, "--resume").wait() == 0 and not state.exists()
        shutil.rmtree(output)
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(backup, state)
    shutil.rmtree(backup, ignore_errors=True)
    return found


def begun(output: Path, halves: set[tuple[Path, int]]) -> bool:
    """Whether a checkpoint is half written, other than those that earlier kills left."""
    return any(path.parent == output.parent for path, _ in unfinished(output) - halves)


def state_of(output: Path) -> Path:
    """Where the run keeps what it goes on from."""
    return output.with_name(f"{output.name}.training")


def unfinished(output: Path) -> set[tuple[Path, int]]:
    """What broken writes have left, with the time of the last change."""
    left = set()
    for path in (path for pattern in WRITTEN for path in output.parent.glob(pattern)):
        with suppress(FileNotFoundError):  # it was renamed just now
            left.add((path, path.stat().st_mtime_ns))
    return left


def newest(state: Path) -> int:
    """Step of the last whole snapshot, or 0."""
    return max(
        (int(path.name.removeprefix("step-")) for path in state.glob("snapshots/step-*[0-9]")),
        default=0,
    )


def kill_again_and_again(folder: Path, kills: int, steps: int, seed: int = 0) -> dict:
    """How often, when and at which steps the run was killed, how often within a write, and whether
    the weights are the same at the end. One kill of three comes at any moment, one of ten at the
    end, one of ten in the checkpoint."""
    text = corpus(folder / "text.txt")
    rng = random.Random(seed)
    calm = folder / "calm"
    hunted = folder / "hunted"
    assert start(text, calm, steps).wait() == 0
    last = max(1, kills // 10)
    moments = [("any", "a snapshot", "a snapshot")[i % 3] for i in range(kills - 2 * last)]
    moments += ["the end"] * last + ["the checkpoint"] * last
    killed: list[dict] = []
    while len(killed) < kills:
        found = kill_once(text, hunted, rng, moments[len(killed)], steps)
        killed += [found] if found["killed"] else []
    assert start(text, hunted, steps, "--resume").wait() == 0, hunted.with_name(
        "errors.txt"
    ).read_text()
    weights = [checksum(path / "model.safetensors") for path in (calm, hunted)]
    return {
        "kills": kills,
        "steps": steps,
        "moments": dict(Counter(moments)),
        "killed_after_step": [found["step"] for found in killed],
        "while_writing": sum(found["writing"] for found in killed),
        "checkpoint_half_written": sum(found["half"] for found in killed),
        "when_whole": sum(found["whole"] for found in killed),
        "same_weights": weights[0] == weights[1],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        result = kill_again_and_again(Path(scratch), kills=50, steps=300)
    keep("kills", result)
