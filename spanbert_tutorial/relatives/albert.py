"""ALBERT: BERT with layers that share their weights, and narrow embeddings. Chapter:
`book/relatives/roberta`.

Source: ALBERT §3.1. The same weights give the same numbers as `transformers.AlbertModel` (tested).
Shapes: B batch, n sequence, E embedding, H hidden, L layers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import (
    BertEncoder,
    Layer,
    initialize,
)
from spanbert_tutorial.bert.inputs import Embeddings
from spanbert_tutorial.bert.weights import (
    NAME_PAIRS,
    ONLY_VALUE,
    Layout,
)
from spanbert_tutorial.errors import require

# what layers share; ALBERT: all
SHARING = "all", "attention", "feed_forward", "none"
# hidden_act → PyTorch's name of the approximation
GELUS = {"gelu": "none", "gelu_new": "tanh"}

# The parts of a layer that two kinds of sharing take. The paper does not say with which LayerNorms;
# here each goes with the part that it follows.
PARTS = {
    "attention": ("attention", "attention_norm"),
    "feed_forward": ("expand", "contract", "feed_forward_norm"),
}

GROUP = "encoder.albert_layer_groups.{}.albert_layers.0"
LAYER = {
    "attention.query": "attention.query",
    "attention.key": "attention.key",
    "attention.value": "attention.value",
    "attention.output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "expand": "ffn",
    "contract": "ffn_output",
    "feed_forward_norm": "full_layer_layer_norm",
}
PAIRS = (
    *(pair for pair in NAME_PAIRS if "embeddings." in pair[0]),
    ("embeddings.project", "encoder.embedding_hidden_mapping_in"),
    *((f"layers.{{}}.{k}", f"{GROUP}.{v}") for k, v in LAYER.items()),
)
ONE_VALUE = {k: v for k, v in ONLY_VALUE.items() if k != "hidden_act"}
ONE_VALUE["inner_group_num"] = 1
ALBERT = Layout("albert", PAIRS, ONE_VALUE)


@dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """Sizes as in `EncoderConfig`, and three settings. The defaults are ALBERT base.

    embedding_size: E. sharing: one of SHARING. hidden_act: "gelu_new" (GELU by tanh) or "gelu"
    (exact), as in the `config.json` of a checkpoint. Raises InputError for other values.
    """

    layout: ClassVar[Layout] = ALBERT

    vocab_size: int = 30_000
    embedding_size: int = 128
    sharing: str = "all"
    hidden_act: str = "gelu_new"

    def __post_init__(self) -> None:
        super().__post_init__()
        known = {"sharing": SHARING, "hidden_act": tuple(GELUS)}
        for name, allowed in known.items():
            value = getattr(self, name)
            told = f"{name} is {value!r}: choose one of {', '.join(allowed)}."
            require(value in allowed, told)

    @property
    def gelu(self) -> str:
        """The approximation that `hidden_act` asks for, as PyTorch names it."""
        return GELUS[self.hidden_act]

    def to_dict(self) -> dict[str, Any]:
        settings = asdict(self)
        shared = settings.pop("sharing") == "all"
        groups = 1 if shared else self.num_hidden_layers
        return settings | {"num_hidden_groups": groups}

    @classmethod
    def from_dict(cls, mapping: Mapping) -> Self:
        """As `EncoderConfig.from_dict`. transformers counts groups of layers that share: one group
        is "all", as many groups as layers are "none"; any other number raises InputError."""
        groups = mapping.get("num_hidden_groups", 1)
        known = groups in (1, mapping.get("num_hidden_layers"))
        told = f"num_hidden_groups is {groups!r}: give 1 (all layers share) or the number of layers."
        require(known, told)
        sharing = "all" if groups == 1 else "none"
        return super().from_dict({"sharing": sharing, **mapping})


class FactorizedEmbeddings(Embeddings):
    """BERT's embeddings, E wide, then a linear layer to H. §3.1."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__(config, config.embedding_size)
        E, H = config.embedding_size, config.hidden_size
        self.project = nn.Linear(E, H)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None
    ) -> Tensor:
        narrow = super().forward(input_ids, token_type_ids)  # [B,n,E]
        return self.project(narrow)  # [B,n,H]


class RepeatedLayer(nn.ModuleList):
    """One layer, stored once, that is iterated over `times` times."""

    def __init__(self, layer: Layer, times: int) -> None:
        super().__init__([layer])
        self.times = times

    def __iter__(self) -> Iterator[nn.Module]:
        return iter([self[0]] * self.times)


def shared_layers(config: AlbertConfig) -> nn.ModuleList:
    """The layers; what is shared is one module in several of them."""
    L = config.num_hidden_layers
    if config.sharing == "all":
        return RepeatedLayer(Layer(config), L)
    layers = nn.ModuleList(Layer(config) for _ in range(L))
    for name in PARTS.get(config.sharing, ()):
        for layer in layers[1:]:
            setattr(layer, name, getattr(layers[0], name))
    return layers


class AlbertEncoder(BertEncoder):
    """`BertEncoder` with factorized embeddings and shared layers.

    `to_huggingface()` writes "attention" and "feed_forward", which transformers does not know, as
    "none": each layer gets its own copy of what is shared here, and the numbers stay.
    """

    config_class = AlbertConfig

    def __init__(
        self,
        config: AlbertConfig,
        generator: torch.Generator | None = None,
    ) -> None:
        nn.Module.__init__(self)  # not BertEncoder's own parts
        self.config = config
        self.embeddings = FactorizedEmbeddings(config)
        self.layers = shared_layers(config)
        initialize(self, config.initializer_range, generator)
