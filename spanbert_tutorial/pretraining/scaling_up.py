"""What a training step costs: operations of a token, and how many a second this machine can do.
Page: `book/workshop/engine`."""

import time

import torch

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.pretraining.objectives import Mixture, Objective
from spanbert_tutorial.spanbert.span_masking import SpanMasking

POSITION = 200  # numbers of a position vector of the boundary head


def operations(config: EncoderConfig, n: int, sbo: float = True) -> float:
    """Operations (multiplications and additions) of one token in a training step, forward and
    backward: 6 for each weight that it meets, and 12 n H a layer for the attention. The heads score
    the masked tokens only. n: tokens of an input; sbo: with the span boundary objective next to the
    masked language model, or in which fraction of the batches."""
    layers = config.num_hidden_layers
    H = config.hidden_size
    V = config.vocab_size
    encoder = 6 * layers * (4 * H**2 + 2 * H * config.intermediate_size) + 12 * layers * n * H
    hidden = SpanMasking().budget(n - 2) / n
    head = H**2 + H * V
    boundary = ((2 * H + POSITION) * H + H**2 + H * V) * sbo
    return encoder + 6 * hidden * (head + boundary)


def with_boundary(objective: Objective | Mixture) -> float:
    """The fraction of an objective's batches that have boundary targets."""
    if isinstance(objective, Mixture):
        weights = objective.weights
        parts = (weights[name] * with_boundary(part) for name, part in objective.parts.items())
        return sum(parts) / sum(weights.values())
    return float(any(task.name == "boundary" for task in objective.tasks))


def matmul_rate(seconds: float = 1.0) -> float:
    """Operations a second of the multiplication of two large square matrices in the precision of
    training, on the devices of all processes: the most that a model can hope for here. The fastest
    of the multiplications that fit into so many seconds."""
    state = processes()
    on_card = state.device.type == "cuda"
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}
    n, at_once = (8192, 10) if on_card else (1024, 1)
    square = torch.ones(n, n, dtype=kinds[precision()], device=state.device)
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        began = time.perf_counter()
        for _ in range(at_once):
            product = square @ square
        product[0, 0].item()  # waits for the card
        best = min(best, (time.perf_counter() - began) / at_once)
    return state.num_processes * 2 * n**3 / best
