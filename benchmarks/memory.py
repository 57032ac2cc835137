"""Greatest memory of one training step: base, n = 512, batch 8, against
`transformers.BertForMaskedLM`.

`python -m benchmarks.memory [OUTPUT.json]`. Each step has a process of its own; what the process
took before the model was made is subtracted.
"""

import json
import statistics
import subprocess
import sys

from benchmarks.race import greatest_memory, keep

ROUNDS = 5


def measure(whose: str) -> None:
    """Two steps; prints MiB beyond those before the model."""
    import numpy as np
    import torch

    from benchmarks import steps
    from spanbert_tutorial.bert.encoder import EncoderConfig

    batch = next(steps.data("mlm", 29_000, 8, 512).batches(np.random.default_rng(0)))
    config = EncoderConfig.preset("base", vocab_size=29_000, **steps.NO_DROPOUT)
    before = greatest_memory()
    make = (
        steps.theirs
        if whose == "theirs"
        else lambda *given: steps.ours(given[0], given[1], "mlm", given[2])
    )
    step = make(config, batch, torch.float32)
    step()
    step()
    print(json.dumps(greatest_memory() - before))


def run(whose: str) -> float:
    command = [sys.executable, "-c", f"from benchmarks.memory import measure; measure({whose!r})"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    pairs = [(run("ours"), run("theirs")) for _ in range(ROUNDS)]
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = (round(statistics.median(column)) for column in zip(*pairs, strict=True))
    keep(
        "memory",
        {
            "model": "base",
            "length": 512,
            "batch": 8,
            "kind": "float32",
            "rounds": ROUNDS,
            "ours_mib": ours,
            "theirs_mib": theirs,
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratios[0], 3), round(ratios[-1], 3)],
        },
    )


if __name__ == "__main__":
    main()
