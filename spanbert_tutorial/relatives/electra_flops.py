"""What a pre-training step costs: multiplications and additions of the matrix products, counted by
hand. Chapter: `book/relatives/electra`.

A product of [a,b] with [b,c] takes 2abc of them: abc multiplications and as many additions.
Softmax, GELU, LayerNorm and look-ups are left out. Shapes: n sequence, H hidden, I feed-forward
width, E width of the embeddings, V vocabulary, t chosen tokens.
"""

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.relatives.electra import ElectraConfig

BACKWARD = 2  # the gradients of a product are two products as large as itself


def encoder_flops(config: EncoderConfig, n: int) -> int:
    """Of one forward pass over n tokens. Four H×H products and the feed-forward ones for each
    token; in the attention each token meets n others twice."""
    width = getattr(config, "embedding_size", config.hidden_size)  # E
    hidden = config.hidden_size
    layer = 4 * hidden**2 + 2 * hidden * config.intermediate_size + 2 * n * hidden
    projection = 0 if width == hidden else width * hidden
    return 2 * n * (config.num_hidden_layers * layer + projection)


def word_flops(config: EncoderConfig, t: int) -> int:
    """Of the head that names t tokens: H×E, then E×V."""
    width = getattr(config, "embedding_size", config.hidden_size)
    return 2 * t * width * (config.hidden_size + config.vocab_size)


def mlm_flops(config: EncoderConfig, n: int, t: int) -> int:
    """Of one training step of a masked language model on one sequence of n tokens with t chosen
    ones."""
    return (1 + BACKWARD) * (encoder_flops(config, n) + word_flops(config, t))


def electra_flops(config: ElectraConfig, n: int, t: int) -> dict[str, int]:
    """The same for ELECTRA, by part: the generator is a masked language model; the discriminator's
    head is H×H and H×1 at every token."""
    head = 2 * n * config.hidden_size * (config.hidden_size + 1)
    discriminator = (1 + BACKWARD) * (encoder_flops(config, n) + head)
    return {"generator": mlm_flops(config.generator(), n, t), "discriminator": discriminator}
