"""Ten times the corpus: what encoding and packing cost in time and memory. `python -m benchmarks.growth [OUTPUT.json]`.

Each measurement has a process of its own, whose greatest memory the system tells.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from benchmarks.race import keep

DOCUMENTS = 2_000


def measure(times: int) -> None:
    """Encodes `times` the first documents of the almanac, packs them, draws 50 batches; prints seconds and bytes."""
    import numpy as np

    from spanbert_tutorial import almanac
    from spanbert_tutorial.batches import OBJECTIVES, PretrainingData
    from spanbert_tutorial.corpora import encode_corpus, split_sentences
    from spanbert_tutorial.data_files import data_path
    from spanbert_tutorial.wordpiece import WordPiece

    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    documents = [split_sentences(document["text"]) for document in islice(almanac.read("train"), DOCUMENTS)]
    list(wordpiece.encode_many(documents[0]))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        stream = (document for _ in range(times) for document in documents)
        corpus = encode_corpus(stream, wordpiece.encode_many, len(wordpiece), Path(folder))
        data = PretrainingData(corpus, wordpiece, OBJECTIVES["span+sbo"], length=128, batch_size=32)
        seconds, batches = time.perf_counter() - began, data.batches(np.random.default_rng(0))
        for _ in range(50):
            next(batches)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"pieces": len(corpus.ids), "seconds": seconds, "peak": after, "before": before}))


def run(times: int) -> dict:
    command = [sys.executable, "-c", f"from benchmarks.growth import measure; measure({times})"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    pairs = [(run(1), run(10)) for _ in range(5)]
    ratios = sorted(large["seconds"] / small["seconds"] for small, large in pairs)
    peaks = sorted(large["peak"] / small["peak"] for small, large in pairs)
    pieces = [pairs[0][0]["pieces"], pairs[0][1]["pieces"]]
    keep("growth", {"pieces": pieces, "rounds": len(pairs), "seconds_ratio": round(ratios[2], 2),
                    "seconds_ratios": [round(ratios[0], 2), round(ratios[-1], 2)],
                    "peak_memory_ratio": round(peaks[2], 3), "peak_memory_mib": round(pairs[0][1]["peak"] / 1024)})


if __name__ == "__main__":
    main()
