"""What a training step costs: operations of a token. Page: `book/workshop/engine`."""

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.spanbert.span_masking import SpanMasking

POSITION = 200  # numbers of a position vector of the boundary head


def operations(config: EncoderConfig, n: int, sbo: bool = True) -> float:
    """Operations (multiplications and additions) of one token in a training step, forward and
    backward: 6 for each weight that it meets, and 12 n H a layer for the attention. The heads score
    the masked tokens only. n: tokens of an input; sbo: with the span boundary objective next to the
    masked language model."""
    layers = config.num_hidden_layers
    H = config.hidden_size
    V = config.vocab_size
    encoder = 6 * layers * (4 * H**2 + 2 * H * config.intermediate_size) + 12 * layers * n * H
    hidden = SpanMasking().budget(n - 2) / n
    head = H**2 + H * V
    boundary = ((2 * H + POSITION) * H + H**2 + H * V) * sbo
    return encoder + 6 * hidden * (head + boundary)
