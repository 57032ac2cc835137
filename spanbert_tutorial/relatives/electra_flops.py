"""What a pre-training step costs: multiplications and additions of the matrix products.

Chapter: `book/relatives/electra`. A product of [a,b] with [b,c] takes 2abc of them: abc
multiplications and as many additions. Softmax, GELU, LayerNorm and look-ups are left out. Shapes:
n sequence, H hidden, I feed-forward width, E width of the embeddings, V vocabulary, t masked
tokens.
"""

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.relatives.electra import ElectraConfig

# forward once, backward twice: a product has two gradients, products as large as itself
TRAINING = 3


def encoder_flops(config: EncoderConfig, n: int) -> int:
    """Of one forward pass over n tokens.

    Each token meets n others in the attention, twice: QKᵀ, and the mixture of the values."""
    H = config.hidden_size
    E = getattr(config, "embedding_size", H)
    layer = 4 * H * H + 2 * H * config.intermediate_size + 2 * n * H
    project = 0 if E == H else E * H
    return 2 * n * (config.num_hidden_layers * layer + project)


def mlm_flops(config: EncoderConfig, n: int, t: int) -> int:
    """Of one training step on a sequence with t masked tokens.

    The MLM head works at these alone: H×E, then E×V."""
    H = config.hidden_size
    E = getattr(config, "embedding_size", H)
    head = 2 * t * E * (H + config.vocab_size)
    return TRAINING * (encoder_flops(config, n) + head)


def electra_flops(
    config: ElectraConfig, n: int, t: int
) -> dict[str, int]:
    """The same for ELECTRA; its second head works at all tokens."""
    H = config.hidden_size
    head = 2 * n * H * (H + 1)
    return {
        "generator": mlm_flops(config.generator(), n, t),
        "discriminator": TRAINING * (encoder_flops(config, n) + head),
    }
