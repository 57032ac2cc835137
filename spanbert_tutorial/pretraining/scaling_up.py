"""What a training step costs: operations of a token, and how many a second this machine can do.
Page: `book/workshop/engine`."""

import torch
from torch.utils.benchmark import Timer

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
    of the multiplications in so many seconds."""
    state = processes()
    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}
    n = 8192 if state.device.type == "cuda" else 1024
    square = torch.ones(n, n, dtype=kinds[precision()], device=state.device)
    threads = torch.get_num_threads()
    timer = Timer("square @ square", globals={"square": square}, num_threads=threads)
    best = min(timer.blocked_autorange(min_run_time=seconds).times)
    return state.num_processes * 2 * n**3 / best
