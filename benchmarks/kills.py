"""A run that is killed again and again ends with the weights of one that is left alone.

`python -m benchmarks.kills data/results/kills.json` kills 50 times (SIGKILL, which no program can catch): at any moment
from the start on, so also while the text is encoded or a snapshot is loaded; just after a snapshot, often while the
next is being written, for the run writes one after every step; and after the last step, while it measures and writes
the checkpoint.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.race import keep
from spanbert_tutorial.snapshots import checksum

# The command as it is, but with a snapshot after every step.
PROGRAM = "import sys; from spanbert_tutorial import snapshots; snapshots.EVERY = 0; " \
          "from spanbert_tutorial.__main__ import main; sys.exit(main(sys.argv[1:]))"
LATEST = {"any": 4.0, "a snapshot": 0.3, "the end": 1.0}  # seconds after the start, the snapshot, the last one
WRITTEN = ("hunted.training/snapshots/*.part", "hunted.training/text.part", "tmp*")  # what a broken write leaves
RUN = ["pretrain", "--length", "32", "--batch-size", "4", "--objective", "span+sbo"]


def corpus(path: Path, documents: int = 200) -> Path:
    """Sentences of a few words, a blank line after four of them."""
    words, rng = ["river", "boat", "miller", "sold", "mended", "green", "door", "a", "the", "old"], random.Random(0)
    sentence = "{} {} {} {} {}.".format
    texts = ["\n".join(sentence(*rng.choices(words, k=5)) for _ in range(4)) for _ in range(documents)]
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def start(text: Path, output: Path, steps: int, *more: str) -> subprocess.Popen:
    given = ["--corpus", text, "--output", output, "--steps", steps, "--vocab-size", 60]
    command = [sys.executable, "-c", PROGRAM, *RUN, *map(str, given), *more]
    environment = {**os.environ, "SPANBERT_TUTORIAL_STATIC": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def kill_once(process: subprocess.Popen, output: Path, rng: random.Random, moment: str, steps: int) -> dict:
    """Waits for a random moment of this kind and kills. Returns what it met; `killed`: false if the run was faster."""
    state = output.with_name(f"{output.name}.training")
    before, least = newest(state), steps if moment == "the end" else 0
    while moment != "any" and newest(state) <= max(before, least - 1) and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, LATEST[moment]))
    process.kill()
    process.wait()
    writing = [path.name for pattern in WRITTEN for path in output.parent.glob(pattern)]
    return {"moment": moment, "step": newest(state), "writing": bool(writing), "killed": process.returncode == -9}


def newest(state: Path) -> int:
    """Step of the last whole snapshot, or 0."""
    return max((int(path.name.removeprefix("step-")) for path in state.glob("snapshots/step-*[0-9]")), default=0)


def kill_again_and_again(folder: Path, kills: int, steps: int, seed: int = 0) -> dict:
    """How often, when and at which steps the run was killed, how often within a write, and whether the weights are the
    same at the end. One kill of three comes at any moment, one of ten at the end."""
    text, rng = corpus(folder / "text.txt"), random.Random(seed)
    calm, hunted = folder / "calm", folder / "hunted"
    assert start(text, calm, steps).wait() == 0
    last = max(1, kills // 10)
    moments = [("any", "a snapshot", "a snapshot")[i % 3] for i in range(kills - last)] + ["the end"] * last
    killed, state = [], folder / "hunted.training"
    for moment in moments:
        process = start(text, hunted, steps, *["--resume"] * state.exists())
        killed.append(kill_once(process, hunted, rng, moment, steps))
        if hunted.exists():
            break  # whole before the last kills came
        assert killed[-1]["killed"], f"ended before it was killed: {process.stderr.read()}"
    if not hunted.exists():
        process = start(text, hunted, steps, "--resume")
        assert process.wait() == 0, process.stderr.read()
    weights = [checksum(path / "model.safetensors") for path in (calm, hunted)]
    counted = Counter(found["moment"] for found in killed if found["killed"])
    return {"kills": counted.total(), "steps": steps, "moments": dict(counted),
            "killed_after_step": [found["step"] for found in killed if found["killed"]],
            "while_writing": sum(found["writing"] for found in killed), "same_weights": weights[0] == weights[1]}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        result = kill_again_and_again(Path(scratch), kills=50, steps=1_000)
    keep("kills", result)
