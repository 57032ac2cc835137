"""A run that is killed again and again ends with the weights of one that is left alone.

`python -m benchmarks.kills data/results/kills.json` kills 50 times (SIGKILL, which no program can catch), at random
moments, also while a snapshot is being written: the run writes one after every step.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.race import keep
from spanbert_tutorial.snapshots import checksum

# The command as it is, but with a snapshot after every step.
PROGRAM = "import sys; from spanbert_tutorial import snapshots; snapshots.EVERY = 0; " \
          "from spanbert_tutorial.__main__ import main; sys.exit(main(sys.argv[1:]))"
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


def kill_once(process: subprocess.Popen, state: Path, rng: random.Random) -> dict:
    """Waits until the run writes snapshots of its own, then a random moment, and kills it."""
    before = newest(state)
    while newest(state) == before and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 0.3))
    process.kill()
    process.wait()
    return {"step": newest(state), "writing": any(state.glob("snapshots/*.part"))}


def newest(state: Path) -> int:
    """Step of the last whole snapshot, or 0."""
    return max((int(path.name.removeprefix("step-")) for path in state.glob("snapshots/step-*[0-9]")), default=0)


def kill_again_and_again(folder: Path, kills: int, steps: int, seed: int = 0) -> dict:
    """Steps at which the run was killed, how often within a write, and whether the weights are the same at the end."""
    text, rng = corpus(folder / "text.txt"), random.Random(seed)
    calm, hunted = folder / "calm", folder / "hunted"
    assert start(text, calm, steps).wait() == 0
    killed = []
    while len(killed) < kills:
        process = start(text, hunted, steps, *["--resume"] * bool(killed))
        found = kill_once(process, folder / "hunted.training", rng)
        assert process.returncode == -9, f"ended before it was killed: {process.stderr.read()}"
        killed.append(found)
    process = start(text, hunted, steps, "--resume")
    assert process.wait() == 0, process.stderr.read()
    weights = [checksum(path / "model.safetensors") for path in (calm, hunted)]
    return {"kills": kills, "steps": steps, "killed_after_step": [found["step"] for found in killed],
            "while_writing": sum(found["writing"] for found in killed), "same_weights": weights[0] == weights[1]}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        result = kill_again_and_again(Path(scratch), kills=50, steps=1_000)
    keep("kills", result)
