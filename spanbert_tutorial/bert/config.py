"""Sizes of an encoder. Chapter: `book/bert/bert`."""

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from spanbert_tutorial.bert.weights import BERT, Layout
from spanbert_tutorial.errors import is_number, require, shown

# Layers, width, heads. BERT §3 gives base and large; the small ones keep 64 numbers per head, as
# BERT does.
PRESETS = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
PRESET_FIELDS = ("num_hidden_layers", "hidden_size", "num_attention_heads", "embedding_size")
LARGEST = 2**24  # far over any size known; a wild number would build layers for hours


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of an encoder, named as in transformers' `BertConfig`. Raises InputError when they do
    not fit."""

    # how transformers stores it, and the named sizes; relatives have their own
    layout: ClassVar[Layout] = BERT
    presets: ClassVar[Mapping[str, tuple[int, ...]]] = PRESETS

    vocab_size: int = 28_996  # BERT's cased vocabulary, which SpanBERT uses too
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3_072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    pad_token_id: int = 0

    @property
    def gelu(self) -> str:
        """How GELU is approximated, in PyTorch's words: not at all."""
        return "none"

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if field.type is int:
                least = int(name != "pad_token_id")
                most = 1_000 if name == "num_hidden_layers" else LARGEST
                told = f"give a whole number of at least {least}, at most {most:,}"
                known = type(value) is int and least <= value <= most
                require(known, f"{name} is {shown(value)}: {told}.")
            if field.type is float:
                known = is_number(value) and 0 <= value < 1
                told = "give a number from 0 up to, not including, 1"
                require(known, f"{name} is {shown(value)}: {told}.")
        require(
            self.pad_token_id < self.vocab_size,
            f"pad_token_id {self.pad_token_id} is no id of {self.vocab_size:,} tokens: give less.",
        )
        require(
            self.hidden_size % self.num_attention_heads == 0,
            f"hidden_size {self.hidden_size} cannot be shared evenly among "
            f"{self.num_attention_heads} heads: make num_attention_heads a divisor of it.",
        )

    @property
    def longest(self) -> int:
        """Tokens of the longest input. A relative may need some rows of the position table for
        something else."""
        return self.max_position_embeddings

    @classmethod
    def preset(cls, name: str, **changes: float) -> Self:
        """One of the named sizes of `presets` (feed-forward width 4H), with `changes` to any
        field."""
        known = f"choose one of {', '.join(cls.presets)}"
        require(name in cls.presets, f"there is no size {shown(name)}: {known}.")
        settings: Any = dict(zip(PRESET_FIELDS, cls.presets[name], strict=False)) | changes
        return cls(**{"intermediate_size": 4 * settings["hidden_size"]} | settings)

    tiny = functools.partialmethod(preset, "tiny")
    mini = functools.partialmethod(preset, "mini")
    small = functools.partialmethod(preset, "small")
    base = functools.partialmethod(preset, "base")
    large = functools.partialmethod(preset, "large")

    def to_dict(self) -> dict[str, Any]:
        """The settings of transformers' config of this kind."""
        return asdict(self)

    @classmethod
    def from_dict(cls, mapping: Mapping) -> Self:
        """Config from the content of a `config.json`. A setting that asks for another computation
        than this module's raises InputError; unknown keys are ignored, as by transformers."""
        for key, only in {"model_type": cls.layout.kind, **cls.layout.only_value}.items():
            require(
                mapping.get(key) in (only, None),
                f"{key} is {shown(mapping.get(key))}: this encoder computes only {key} = {only!r}.",
            )
        known = [field.name for field in fields(cls)]
        return cls(**{name: mapping[name] for name in known if name in mapping})
