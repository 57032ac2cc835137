"""What a graphics card makes of a training step: tokens a second, share of its peak, memory. Page:
`book/workshop/engine`.

`python -m benchmarks.card [OUTPUT.json]`: mini and base, inputs of 512 tokens, with SBO, by the
training loop itself. The *share of the peak* (model FLOPs utilization, MFU) takes the operations of
`scaling_up` and the peak that the card's maker names; it is left out for a card that
`data/papers.json` does not know. Without a card it runs on the CPU, where the batch should be
small: `python -m benchmarks.card OUTPUT.json 2`.
"""

import json
import sys

import torch

from benchmarks import steps
from benchmarks.race import keep
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.pretraining import runs
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.pretraining.scaling_up import operations

LENGTH = 512
STEPS = 20
SIZES = {"mini": 64, "base": 32}  # inputs of a batch
PIECES = 29_000


def text(vocabulary: int) -> EncodedText:
    """Long documents of random tokens."""
    wordpiece = WordPiece.from_file(data_path("almanac", "vocab.txt"))
    wordpiece.starts = steps.np.resize(
        wordpiece.starts, vocabulary
    )  # the tokens are numbers here, and may be any
    wordpiece.vocabulary = [f"token {number}" for number in range(vocabulary)]
    corpus = steps.text(vocabulary)
    return EncodedText(corpus, corpus, wordpiece)


def peak(name: str) -> float | None:
    """Operations a second that the maker promises of a card of this name, in half precision."""
    known = json.loads(data_path("papers.json").read_text(encoding="utf-8"))["accelerator_peaks"][
        "value"
    ]
    return next((1e12 * card["teraflops"] for short, card in known.items() if short in name), None)


def measure(size: str, rows: int, n_steps: int = STEPS) -> dict:
    """One model of a size, with batches of so many inputs."""
    run = Run(objective="span+sbo", size=size, max_length=LENGTH, batch_size=rows, steps=n_steps)
    words = text(PIECES)
    model = runs.new_model(run, words)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    _, seconds, tokens = runs.rehearse(run, words, model, n_steps)
    found = {"batch": rows, "tokens_a_second": round(tokens / seconds)}
    if torch.cuda.is_available():
        found["gigabytes"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        if most := peak(torch.cuda.get_device_name()):
            share = found["tokens_a_second"] * operations(model.encoder.config, LENGTH) / most
            found["share_of_the_peak"] = round(share, 4)
    return found


def main() -> None:
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else None
    results = {"length": LENGTH, "arithmetic": precision()}
    keep(
        "speed_card",
        results | {size: measure(size, rows or usual) for size, usual in SIZES.items()},
    )


if __name__ == "__main__":
    main()
