"""BERT's encoder, written to be read: self-attention, layers, two heads. Sizes: `config`;
embeddings: `inputs`.

Chapter: `book/bert/bert.ipynb`. The same weights give the same numbers as `transformers.BertModel`
(tested). Files and names: `weights`. Shapes: B batch, n sequence, H hidden, A heads, V vocabulary.
"""

import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from spanbert_tutorial.bert.config import PRESETS, EncoderConfig
from spanbert_tutorial.bert.inputs import Embeddings
from spanbert_tutorial.bert.weights import (
    check_weights,
    check_widths,
    checkpoint_folder,
    from_huggingface_names,
    read_config,
    read_weights,
    to_huggingface_names,
)
from spanbert_tutorial.errors import InputError

__all__ = [
    "PRESETS",
    "BertEncoder",
    "EncoderConfig",
    "MaskedLanguageModelHead",
    "NextSentenceHead",
    "initialize",
    "set_dropout",
]


class SelfAttention(nn.Module):
    """Every position mixes the values of all positions, in A heads side by side. Transformer
    §3.2."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout_prob = config.attention_probs_dropout_prob
        self.query, self.key, self.value, self.output = (
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(4)
        )

    def split(self, vectors: Tensor) -> Tensor:
        return vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B,n,H] -> [B,A,n,H/A]

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        dropout = self.dropout_prob if self.training else 0.0
        value = self.split(self.value(hidden))
        if unfused_is_faster(value):
            mixed = functional.dropout(self.maps(hidden, mask), dropout).to(value.dtype) @ value
        else:
            # PyTorch's fused kernel: the numbers of `maps() @ value`, but the [B,A,n,n] maps are
            # never stored.
            query = self.split(self.query(hidden))
            key = self.split(self.key(hidden))
            mixed = functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=dropout
            )
        return self.output(mixed.transpose(1, 2).flatten(2))  # [B,n,H]

    def maps(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """The weights of the mixture, [B,A,n,n]: row i says how much position i takes from each
        position."""
        query = self.split(self.query(hidden))
        key = self.split(self.key(hidden))
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        return scores.softmax(
            -1, dtype=torch.promote_types(scores.dtype, torch.float32)
        )  # never in half precision


def unfused_is_faster(value: Tensor) -> bool:
    """On a CPU in bfloat16 the fused kernel's backward pass is slow; storing the maps of up to 256
    positions is not (`benchmarks/attention.py`)."""
    slow = value.device.type == "cpu" and value.dtype == torch.bfloat16 and value.requires_grad
    return slow and value.shape[2] <= 256


class Layer(nn.Module):
    """Attention, then two linear layers with GELU between. After each: add the input, then
    LayerNorm (post-LayerNorm). Transformer §3.1."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.expand = nn.Linear(config.hidden_size, config.intermediate_size)
        # exact, by erf, as in transformers; Google's released BERT has the tanh form
        self.gelu = nn.GELU(config.gelu)
        self.contract = nn.Linear(config.intermediate_size, config.hidden_size)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, mask: Tensor | None) -> Tensor:
        hidden = self.attention_norm(hidden + self.dropout(self.attention(hidden, mask)))
        changed = self.contract(self.gelu(self.expand(hidden)))
        return self.feed_forward_norm(hidden + self.dropout(changed))


class BertEncoder(nn.Module):
    """Embeddings and a stack of layers: ids [B,n] -> hidden states [B,n,H]. BERT §3."""

    # relatives have their own
    config_class: ClassVar[type[EncoderConfig]] = EncoderConfig
    embeddings_class: ClassVar[type[Any]] = Embeddings

    def __init__(self, config: EncoderConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.embeddings = self.embeddings_class(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        initialize(self, config.initializer_range, generator)

    def forward(
        self,
        input_ids: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """`token_type_ids` [B,n]: 0 or 1, all 0 by default. `attention_mask` [B,n]: 1 at real tokens, 0
        at padding, where the states mean nothing; or [B,n,n]: 1 where the position of the row may
        look at the position of the column. Raises InputError for ids, lengths and masks that do not
        fit."""
        mask = self._check(input_ids, token_type_ids, attention_mask)
        hidden = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return hidden

    @torch.no_grad()
    def attention_maps(
        self,
        input_ids: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> list[Tensor]:
        """One tensor [B,A,n,n] a layer: the attention weights that `forward` uses (call `.eval()`
        first). They are for looking at, so the inputs may be on another device than the encoder,
        which is on a card after `QuestionAnswerer.from_pretrained`; the maps return to that of
        `input_ids`."""
        mask = self._check(input_ids, token_type_ids, attention_mask)
        home = input_ids.device
        here = self.embeddings.words.weight.device
        mask = None if mask is None else mask.to(here)
        maps = []
        segments = None if token_type_ids is None else token_type_ids.to(here)
        hidden = self.embeddings(input_ids.to(here), segments)
        for layer in cast("list[Layer]", self.layers):
            maps.append(layer.attention.maps(hidden, mask).to(home))
            hidden = layer(hidden, mask)
        return maps

    def _check(
        self, input_ids: Tensor, token_type_ids: Tensor | None, attention_mask: Tensor | None
    ) -> Tensor | None:
        """The attention mask as true/false [B,1,1 or n,n], None if all may look at all, once all
        fits together."""
        longest = self.config.longest
        if input_ids.dim() != 2 or 0 in input_ids.shape:
            raise InputError(
                f"input_ids have the shape {tuple(input_ids.shape)}: give a batch [B,n], a row a sequence."
            )
        if input_ids.shape[1] > longest:
            raise InputError(
                f"a sequence of {input_ids.shape[1]} tokens is longer than {longest} "
                "(max_position_embeddings): cut it, or split it into several."
            )
        _check_values("input_ids", input_ids, input_ids.shape, self.config.vocab_size)
        _check_values(
            "token_type_ids", token_type_ids, input_ids.shape, self.config.type_vocab_size
        )
        if attention_mask is None:
            return None
        shape = (
            input_ids.shape if attention_mask.dim() < 3 else (*input_ids.shape, input_ids.shape[1])
        )
        _check_values("attention_mask", attention_mask, torch.Size(shape), 2)
        mask = attention_mask.bool()
        if _may_look(mask) and not mask.any(dim=-1).all():
            raise InputError(
                "a row of attention_mask is all 0: every row needs a token to look at."
            )
        if _may_look(mask) and mask.all():
            return None  # nothing is hidden, and no mask is faster
        return mask[:, None] if mask.dim() == 3 else mask[:, None, None, :]

    @classmethod
    def from_huggingface(cls, model_or_path: nn.Module | str | Path) -> Self:
        """An encoder with the weights of a transformers model of this kind, of a folder
        (`config.json` beside `model.safetensors` or `pytorch_model.bin`) or of a hub name, in
        float32 (a model of float64 keeps that), in `.eval()`. A warning names the heads left out. A
        missing, unknown or wrongly shaped weight raises InputError."""
        encoder, _, left_out, source = cls.read(model_or_path)
        if left_out:
            warnings.warn(
                f"Only the encoder was loaded; left out of {source}: {', '.join(left_out)}.",
                stacklevel=2,
            )
        return encoder

    @classmethod
    def read(
        cls, model_or_path: nn.Module | str | Path
    ) -> tuple[Self, dict[str, Tensor], list[str], str]:
        """What `from_huggingface` returns, the weights beside the encoder under the names they came
        with, the names of their heads, and where they came from."""
        config, state, source = cls._read(model_or_path)
        with torch.device(
            "meta"
        ):  # no memory, no random numbers: the weights below take these places
            encoder = cls(cls.config_class.from_dict(config))
        layout = cls.config_class.layout
        ours, others = from_huggingface_names(state, layout)
        heads = check_weights(encoder.state_dict(), ours, others, source, layout)
        copies = {
            name: w.to(torch.promote_types(w.dtype, torch.float32), copy=True)
            for name, w in ours.items()
        }
        encoder.load_state_dict(copies, assign=True)
        return encoder.eval(), others, heads, source

    @classmethod
    def _read(cls, model_or_path: nn.Module | str | Path) -> tuple[dict, dict[str, Tensor], str]:
        """Config, weights under transformers' names, and where they came from; relatives with heads
        complete them."""
        if isinstance(model_or_path, nn.Module):
            their_config: Any = model_or_path.config
            return their_config.to_dict(), model_or_path.state_dict(), "the model"
        folder = checkpoint_folder(model_or_path)
        config = read_config(folder)
        state = read_weights(folder)
        check_widths(cls.config_class.from_dict(config).widths, state, folder)
        return config, state, str(folder)

    def to_huggingface(self) -> nn.Module:
        """The same model in `transformers`, without pooler: same numbers, same float type, in
        `.eval()` mode."""
        model = self._empty_huggingface().to(
            self.embeddings.words.weight
        )  # its device and float type
        model.load_state_dict(to_huggingface_names(self.state_dict(), layout=self.config.layout))
        return model.eval()

    def _empty_huggingface(self) -> nn.Module:
        from transformers import BertConfig, BertModel  # here, because importing it takes seconds

        return BertModel(BertConfig(**asdict(self.config)), add_pooling_layer=False)


def set_dropout(model: nn.Module, probability: float) -> None:
    """Of hidden states and attention weights; the config keeps what it says."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = probability
        if isinstance(part, SelfAttention):
            part.dropout_prob = probability


def initialize(
    module: nn.Module, deviation: float = 0.02, generator: torch.Generator | None = None
) -> None:
    """BERT's start, in place: linear and embedding weights N(0, deviation²), biases 0, LayerNorm 1
    and 0."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=deviation, generator=generator)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.LayerNorm):
            part.reset_parameters()


def _may_look(tensor: Tensor) -> bool:
    """Looking at values would stall a GPU (the host waits for it) and break a compiled graph: so
    CPU only."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _check_values(name: str, tensor: Tensor | None, shape: torch.Size, size: int) -> None:
    """Raise InputError unless the tensor has that shape and holds whole numbers below `size`."""
    if tensor is None:
        return
    if name != "attention_mask" and tensor.dtype not in (torch.int64, torch.int32):
        raise InputError(f"{name} have the type {tensor.dtype}: give whole numbers (torch.long).")
    if tensor.shape != shape:
        raise InputError(
            f"{name}: shape {tuple(tensor.shape)}, wanted {tuple(shape)}: they must be equal."
        )
    if _may_look(tensor):
        remedy = (
            "take the vocabulary of this model" if name == "input_ids" else "use only these values"
        )
        for value in (tensor.min().item(), tensor.max().item()):
            if not 0 <= value < size:
                raise InputError(f"{name}: the value {value} is outside 0 to {size - 1}; {remedy}.")


class MaskedLanguageModelHead(nn.Module):
    """States [...,H] -> logits [...,V]: dense, GELU, LayerNorm, then the word embeddings once more
    (the same tensor) as decoder, with a bias of its own. BERT §3.1; chapter `masking`.

    Where the embeddings are narrower than H, as in some relatives, dense makes the states as
    narrow."""

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
        self.embedding_weight = (
            embedding_weight  # [V,H], tied: training moves it here and in the embeddings
        )
        self.bias = nn.Parameter(torch.zeros(len(embedding_weight)))
        initialize(self)

    def forward(self, hidden: Tensor) -> Tensor:
        transformed = self.layer_norm(self.gelu(self.dense(hidden)))
        return functional.linear(transformed, self.embedding_weight, self.bias)


class NextSentenceHead(nn.Module):
    """Two logits [B,2] from the state of [CLS]: 0 = IsNext, 1 = NotNext, as in transformers. BERT
    §3.1."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(hidden_size, hidden_size)
        self.classifier = nn.Linear(hidden_size, 2)
        initialize(self)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.pooler(hidden[:, 0])))
