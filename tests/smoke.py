"""A quick look at whether the package works with this Python: `python tests/smoke.py`."""

import importlib
import pkgutil
import sys

import numpy as np
import torch

import spanbert_tutorial
from spanbert_tutorial.bert.encoder import BertEncoder, EncoderConfig
from spanbert_tutorial.spanbert.boundary import SpanBoundaryObjective, boundary_targets
from spanbert_tutorial.spanbert.span_masking import SpanMasking

for module in pkgutil.walk_packages(spanbert_tutorial.__path__, "spanbert_tutorial."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

rng = np.random.default_rng(0)
config = EncoderConfig.preset("tiny", vocab_size=50, max_position_embeddings=64)
encoder = BertEncoder(config)
head = SpanBoundaryObjective(
    config.hidden_size, torch.zeros(50, config.hidden_size, requires_grad=True)
)
ids = rng.integers(5, 50, size=(2, 40))
lengths = np.array([40, 40])
selected = SpanMasking().select_batch(np.ones((2, 40), dtype=bool), lengths, rng)
targets = boundary_targets(selected, ids, lengths)
hidden = encoder(torch.as_tensor(np.pad(ids, ((0, 0), (1, 1)), constant_values=2)))
logits = head(hidden, targets)
logits.sum().backward()
assert hidden.shape == (2, 42, 128) and logits.shape[1] == 50
print(f"The package works with Python {sys.version.split()[0]}, torch {torch.__version__}.")
