"""A training step that keeps its memory for the next, against one that hands it back to the system
each time.

`python -m benchmarks.freed_memory [OUTPUT.json]`. Why `processes.keep_freed_memory` is there. A
process cannot undo the setting, so each round starts two, one of each kind, and compares their
seconds of processor time.
"""

import json
import statistics
import subprocess
import sys
import time

from benchmarks.race import WARM_UP, greatest_memory, keep

SIZES = {"tiny": (4_000, 32, 128), "mini": (8_000, 32, 128), "base": (29_000, 2, 512)}  # V, B, n
ROUNDS = 5


def measure(size: str, keeping: bool, steps: int = 7) -> None:
    """Prints the median processor seconds of a step, and the most memory that this process had in
    MiB."""
    import numpy as np
    import torch

    from benchmarks import steps as race
    from spanbert_tutorial.bert.encoder import EncoderConfig
    from spanbert_tutorial.engine.processes import keep_freed_memory, precision

    torch.set_num_threads(1)
    assert not keeping or keep_freed_memory(), "this system has no such setting"
    vocabulary, rows, length = SIZES[size]
    batch = next(race.data("mlm", vocabulary, rows, length).batches(np.random.default_rng(0)))
    config = EncoderConfig.preset(size, vocab_size=vocabulary, **race.NO_DROPOUT)
    step = race.ours(
        config, batch, "mlm", torch.bfloat16 if precision() == "bf16" else torch.float32
    )
    times = []
    for _ in range(WARM_UP + steps):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    print(
        json.dumps({"seconds": statistics.median(times[WARM_UP:]), "mib": round(greatest_memory())})
    )


def run(size: str, keeping: bool) -> dict[str, float]:
    command = [
        sys.executable,
        "-c",
        f"from benchmarks.freed_memory import measure; measure({size!r}, {keeping})",
    ]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compare(size: str) -> dict:
    """Ratios handing back / keeping: above 1, keeping is faster; for the memory below 1, it takes
    more."""
    pairs = [(run(size, True), run(size, False)) for _ in range(ROUNDS)]
    ratios = {
        name: [back[name] / kept[name] for kept, back in pairs] for name in ("seconds", "mib")
    }
    return {
        "rounds": len(pairs),
        "ratio": round(statistics.median(ratios["seconds"]), 3),
        "ratios": [round(min(ratios["seconds"]), 3), round(max(ratios["seconds"]), 3)],
        "memory_ratio": round(statistics.median(ratios["mib"]), 3),
    }


def main() -> None:
    keep("freed_memory", {"threads": 1, **{size: compare(size) for size in SIZES}})


if __name__ == "__main__":
    main()
