"""SpanBERT on one page: its lines are counted, and it trains as the package does."""

import json
import math
import re
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F

import spanbert_tutorial as st
from environment import ROOT
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.model import start_positions_from_sinusoids
from spanbert_tutorial.pretraining.presets import RUNS
from spanbert_tutorial.pretraining.train import TrainingConfig, train

PAGE = ROOT / "book" / "one_page.ipynb"
CELLS = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
# The page's own model ends where it is compared with the package's.
END = next(
    at for at, cell in enumerate(CELLS) if "".join(cell["source"]).startswith("Is this code right?")
)
MODEL = [
    "".join(cell["source"]) for cell in CELLS[:END] if "teach" in cell["metadata"].get("tags", [])
]


def test_the_page_has_as_many_lines_as_it_says_and_none_comes_from_the_package():
    lines = [line for cell in MODEL for line in cell.splitlines() if line.strip()]
    opening = "".join(CELLS[0]["source"])
    assert int(re.search(r"in (\d+) lines", opening)[1]) == len(lines) <= 190
    assert not [line for line in lines if re.search(r"spanbert_tutorial|\bst\.", line)]


def test_a_few_steps_leave_the_weights_that_the_package_leaves(on_the_processor):
    page = {"math": math, "np": np, "torch": torch, "F": F, "nn": torch.nn}
    for cell in MODEL:
        exec(cell, page)
    package, wordpiece = st.load_checkpoint(data_path("checkpoints", "spanbert-tiny"))
    model = page["PretrainingModel"](len(wordpiece))
    model.load_state_dict(package.state_dict())
    rng = np.random.default_rng(0)

    def batches():
        while True:
            blocks = rng.integers(200, len(wordpiece), size=(8, 22))
            starts = wordpiece.word_starts(blocks).copy()
            starts[:, 0] = True
            yield page["collate"](blocks, starts, wordpiece, blocks.ravel(), rng)

    drawn = list(islice(batches(), 6))
    assert list(page["train"](model, drawn, steps=6, warmup_steps=2)) == [1, 2, 3, 4, 5, 6]
    peak = RUNS["tiny"].peak_learning_rate
    before = {name: weight.clone() for name, weight in package.state_dict().items()}
    train(package.train(), drawn, TrainingConfig(6, peak, warmup_steps=2))
    for name, weight in package.state_dict().items():
        assert torch.allclose(model.state_dict()[name], weight.cpu(), atol=1e-5), name
    assert not torch.allclose(before["boundary.bias"], package.boundary.bias.cpu(), atol=1e-4)


def test_the_page_starts_from_weights_like_the_packages():
    page = {"math": math, "np": np, "torch": torch, "F": F, "nn": torch.nn}
    for cell in MODEL:
        exec(cell, page)
    model = page["PretrainingModel"](500)
    page["initialize"](model)
    config = st.EncoderConfig.preset("tiny", vocab_size=500, initializer_range=0.06)
    other = st.PretrainingModel(config, st.Objective.named("span+sbo"))
    start_positions_from_sinusoids(other.encoder)
    ours, theirs = model.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        assert abs(ours[name].std() - weight.std()) < 0.01, name
    table = "encoder.embeddings.position_embeddings.weight"
    assert torch.allclose(ours[table], theirs[table])
