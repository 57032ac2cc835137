"""BERT's encoder, written to be read: self-attention, layers, two
heads. Sizes: `config`; embeddings: `inputs`.

Chapter: `book/bert/bert`. The same weights give the same numbers as
`transformers.BertModel` (tested). Shapes: B batch, n sequence, H
hidden, A heads, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.fast_attention import (
    attend,
    attention_probs,
)
from spanbert_tutorial.bert.inputs import Embeddings
from spanbert_tutorial.bert.pretrained import (
    PretrainedEncoder,
    check_inputs,
)


class SelfAttention(nn.Module):
    """Every position mixes the values of all, in A heads.

    Transformer §3.2."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        H = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout_prob = config.attention_probs_dropout_prob
        self.query, self.key, self.value, self.output = (
            nn.Linear(H, H) for _ in range(4)
        )

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None
    ) -> Tensor:
        """[B,n,H]. mask: true where a position may be looked at."""
        value = self.split(self.value(hidden_states))  # [B,A,n,H/A]
        query = self.split(self.query(hidden_states))
        key = self.split(self.key(hidden_states))
        dropout = self.dropout_prob if self.training else 0.0
        # softmax(QKᵀ/√d)V, by the fastest kernel
        mixed = attend(query, key, value, mask, dropout)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def split(self, vectors: Tensor) -> Tensor:
        """[B,n,H] -> [B,A,n,H/A]."""
        return vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attention_probs(
        self, hidden_states: Tensor, mask: Tensor | None
    ) -> Tensor:
        """How much row i takes from each position, [B,A,n,n]."""
        query = self.split(self.query(hidden_states))
        key = self.split(self.key(hidden_states))
        return attention_probs(query, key, mask)


class Layer(nn.Module):
    """Attention, then two linear layers with GELU between.

    After each: add the input, then LayerNorm. Transformer §3.1."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        H, eps = config.hidden_size, config.layer_norm_eps
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(H, eps)
        self.expand = nn.Linear(H, config.intermediate_size)
        # exact, by erf; Google's released BERT has the tanh form
        self.gelu = nn.GELU(config.gelu)
        self.contract = nn.Linear(config.intermediate_size, H)
        self.feed_forward_norm = nn.LayerNorm(H, eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None
    ) -> Tensor:
        """[B,n,H] -> [B,n,H]."""
        mixed = self.dropout(self.attention(hidden_states, mask))
        x = self.attention_norm(hidden_states + mixed)
        changed = self.contract(self.gelu(self.expand(x)))
        return self.feed_forward_norm(x + self.dropout(changed))


class BertEncoder(PretrainedEncoder):
    """Embeddings and layers: input_ids [B,n] to states [B,n,H].

    BERT §3."""

    embeddings_class: Any = Embeddings  # relatives have their own

    def __init__(
        self,
        config: EncoderConfig,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.embeddings = self.embeddings_class(config)
        self.layers = nn.ModuleList(
            Layer(config) for _ in range(config.num_hidden_layers)
        )
        initialize(self, config.initializer_range, generator)

    def forward(
        self,
        input_ids: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """Hidden states [B,n,H].

        token_type_ids [B,n]: 0 (the default) or 1. attention_mask
        [B,n]: 1 at tokens, 0 at padding; or [B,n,n]: 1 where the row's
        position may look at the column's."""
        mask = check_inputs(
            self.config, input_ids, token_type_ids, attention_mask
        )
        hidden_states = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask)
        return hidden_states


def set_dropout(model: nn.Module, probability: float) -> None:
    """Of hidden states and attention weights; the config keeps what it
    says."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = probability
        attention: Any = part
        if hasattr(attention, "dropout_prob"):
            attention.dropout_prob = probability


def initialize(
    module: nn.Module,
    deviation: float = 0.02,
    generator: torch.Generator | None = None,
) -> None:
    """BERT's start, in place: linear and embedding weights N(0, deviation²), biases 0, LayerNorm 1
    and 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(
                part.weight, std=deviation, generator=generator
            )
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()


class MaskedLanguageModelHead(nn.Module):
    """Hidden states [...,H] -> logits [...,V]. BERT §3.1.

    The decoder's weight is the word embedding [V,H] itself, so that
    training moves it in both places. Where a relative's embeddings are
    narrower than H, dense makes the states as narrow."""

    def __init__(
        self,
        hidden_size: int,
        embedding_weight: Tensor,
        layer_norm_eps: float = 1e-12,
        gelu: str = "none",
    ) -> None:
        super().__init__()
        width = embedding_weight.shape[1]  # H in BERT
        self.dense = nn.Linear(hidden_size, width)
        self.gelu = nn.GELU(gelu)
        self.layer_norm = nn.LayerNorm(width, layer_norm_eps)
        self.embedding_weight = embedding_weight
        self.bias = nn.Parameter(torch.zeros(len(embedding_weight)))
        initialize(self)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Logits [...,V]."""
        y = self.layer_norm(self.gelu(self.dense(hidden_states)))
        return F.linear(y, self.embedding_weight, self.bias)


class NextSentenceHead(nn.Module):
    """Two logits [B,2] from the hidden state of [CLS]. BERT §3.1.

    0 = IsNext, 1 = NotNext, as in transformers."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden_size, hidden_size)
        self.classifier = nn.Linear(hidden_size, 2)
        initialize(self)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """hidden_states: [B,n,H]."""
        cls = hidden_states[:, 0]
        return self.classifier(torch.tanh(self.pooler(cls)))
