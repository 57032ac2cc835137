"""Ten times the corpus: what reading, encoding and packing cost in time and memory.

`python -m benchmarks.growth [OUTPUT.json]`. Time is that of the processor, which other programs
disturb less. Each measurement has a process of its own, whose greatest memory the system tells; the
memory that libraries and vocabulary took before is given beside it.
"""

import json
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from benchmarks.race import greatest_memory, keep

DOCUMENTS = 1_200  # and ten times as many, all different


def measure(times: int) -> None:
    """From a file of the almanac's first documents to 50 batches; prints seconds and greatest
    memory."""
    import numpy as np

    from spanbert_tutorial import almanac
    from spanbert_tutorial.engine.files import data_path
    from spanbert_tutorial.pretraining import runs
    from spanbert_tutorial.pretraining.encoded_text import open_text
    from spanbert_tutorial.pretraining.presets import Run

    run = Run(max_length=128, batch_size=32)
    vocabulary = data_path("almanac", "vocab.txt")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "corpus.jsonl")
        with file.open("w", encoding="utf-8") as corpus:
            for document in islice(almanac.read("train"), DOCUMENTS * times):
                corpus.write(json.dumps(document) + "\n")
        before = greatest_memory()
        began = time.process_time()
        text = open_text(str(file), Path(folder, "text"), vocabulary)
        batches = runs.training_data(run, text).batches(np.random.default_rng(0))
        seconds = time.process_time() - began
        for _ in range(50):
            next(batches)
        tokens = len(text.train.ids) + len(text.held_out.ids)
        print(
            json.dumps(
                {"tokens": tokens, "seconds": seconds, "peak": greatest_memory(), "before": before}
            )
        )


def run(times: int) -> dict:
    command = [sys.executable, "-c", f"from benchmarks.growth import measure; measure({times})"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    pairs = [(run(1), run(10)) for _ in range(5)]
    ratios = sorted(large["seconds"] / small["seconds"] for small, large in pairs)
    peaks = sorted(large["peak"] / small["peak"] for small, large in pairs)
    added = [
        sorted(round(one["peak"] - one["before"]) for one in column)[2]
        for column in zip(*pairs, strict=True)
    ]
    keep(
        "growth",
        {
            "tokens": [one["tokens"] for one in pairs[0]],
            "rounds": len(pairs),
            "seconds_ratio": round(ratios[2], 2),
            "seconds_ratios": [round(ratios[0], 2), round(ratios[-1], 2)],
            "peak_memory_ratio": round(peaks[2], 3),
            "peak_memory_mib": round(pairs[0][1]["peak"]),
            "added_mib": added,
        },
    )


if __name__ == "__main__":
    main()
