"""What an encoder has beside its computation: checkpoints, attention to look at, checks.

Chapter: `book/bert/bert`. Files and names: `weights`.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.weights import (
    checkpoint_folder,
    from_huggingface_names,
    load_weights,
    part_of,
    read_config,
    read_weights,
    to_huggingface_names,
)
from spanbert_tutorial.errors import require, shown


class PretrainedEncoder(nn.Module):
    """Base of the encoders, which have `config`, `embeddings` and `layers`."""

    config_class: ClassVar[type[EncoderConfig]] = EncoderConfig  # relatives have their own
    config: Any
    embeddings: Any
    layers: Any

    @classmethod
    def from_huggingface(cls, model_or_path: nn.Module | str | Path) -> Self:
        """An encoder with the weights of a transformers model of this kind, of a folder
        (`config.json` beside `model.safetensors` or `pytorch_model.bin`) or of a hub name, in
        float32 (a model of float64 keeps that), in `.eval()`. A warning names the heads left out. A
        weight of the encoder that is missing, surplus or wrongly shaped raises InputError."""
        encoder, others, source = cls.read(model_or_path)
        if heads := sorted({part_of(name, cls.config_class.layout) for name in others}):
            told = f"Only the encoder was loaded; left out of {source}: {', '.join(heads)}."
            warnings.warn(told, stacklevel=2)
        return encoder

    @classmethod
    def read(cls, model_or_path: nn.Module | str | Path) -> tuple[Self, dict[str, Tensor], str]:
        """What `from_huggingface` returns, the weights beside the encoder under the names they came
        with, and where they came from."""
        if isinstance(model_or_path, nn.Module):
            model: Any = model_or_path
            config, state, source = model.config.to_dict(), model.state_dict(), "the model"
        else:
            folder = checkpoint_folder(model_or_path)
            config, state, source = read_config(folder), read_weights(folder), str(folder)
        with torch.device("meta"):  # no memory, no random numbers: the weights take these places
            encoder = cls(cls.config_class.from_dict(config))
        layout = cls.config_class.layout
        ours, others = from_huggingface_names(state, layout)
        parts = {part_of(there) for _, there in layout.pairs}
        # a further weight inside the encoder, such as an adapter, would change the numbers
        ours |= {name: w for name, w in others.items() if part_of(name, layout) in parts}
        load_weights(encoder, ours, source, layout)
        return encoder.eval(), others, source

    def of(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Hidden states [B,n,H] of a batch by the names of `transformers`."""
        names = ("token_type_ids", "attention_mask")
        return self(batch["input_ids"], **{name: batch.get(name) for name in names})

    def to_huggingface(self) -> nn.Module:
        """The same model in `transformers`, without pooler: same numbers, same float type, in
        `.eval()` mode."""
        from transformers import AutoConfig, AutoModel  # here, because importing it takes seconds

        settings = self.config.to_dict()
        config = AutoConfig.for_model(self.config.layout.kind, **settings)
        model = AutoModel.from_config(config)
        model.pooler = None  # not every kind has the option to leave it out
        # of its device and float type
        model = model.to(self.embeddings.word_embeddings.weight)
        model.load_state_dict(to_huggingface_names(self.state_dict(), layout=self.config.layout))
        return model.eval()

    @torch.no_grad()
    def attention_maps(
        self,
        input_ids: Tensor,
        *,
        token_type_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> list[Tensor]:
        """The attention probabilities of each layer, [B,A,n,n] (call `.eval()` first). They are for
        looking at, so the inputs may be on another device than the encoder; the maps return to that
        of `input_ids`."""
        mask = check_inputs(self.config, input_ids, token_type_ids, attention_mask)
        given: Any = (input_ids, token_type_ids, mask)
        here = self.embeddings.word_embeddings.weight.device
        ids, segments, mask = (x if x is None else x.to(here) for x in given)
        hidden_states = self.embeddings(ids, segments)
        maps = []
        for layer in self.layers:
            attention = layer.attention.attention_probs(hidden_states, mask)
            maps.append(attention.to(input_ids.device))
            hidden_states = layer(hidden_states, mask)
        return maps


def check_inputs(
    config: EncoderConfig,
    input_ids: Tensor,
    token_type_ids: Tensor | None,
    attention_mask: Tensor | None,
) -> Tensor | None:
    """The attention mask as true/false [B,1,1 or n,n], None if all may look at all, once all fits
    together. Raises InputError where it does not."""
    shape = shape_of(input_ids)
    told = f"input_ids: shape {shape}: give a batch [B,n], a tensor with a row a sequence."
    require(len(shape) == 2 and 0 not in shape, told)
    B, n = shape
    check_values("input_ids", input_ids, (B, n), config.vocab_size)
    told = f"a sequence of {n} tokens is longer than {config.longest}: cut it, or split it."
    require(n <= config.longest, told)
    if token_type_ids is not None:
        check_values("token_type_ids", token_type_ids, (B, n), config.type_vocab_size)
    if attention_mask is None:
        return None
    square = len(shape_of(attention_mask)) > 2
    check_values("attention_mask", attention_mask, (B, n, n) if square else (B, n), 2)
    mask = attention_mask.bool()
    if may_look(mask):
        told = "a row of attention_mask is all 0: every row needs a token to look at."
        require(mask.any(dim=-1).all(), told)
        if mask.all():
            return None  # nothing is hidden, and no mask is faster
    return mask[:, None] if square else mask[:, None, None, :]


def shape_of(given: object) -> tuple:
    """Of a tensor; of anything else its kind, for messages."""
    return tuple(given.shape) if isinstance(given, Tensor) else (type(given).__name__,)


def may_look(tensor: Tensor) -> bool:
    """Looking at values would stall a GPU (the host waits for it) and break a compiled graph: so
    CPU only."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def check_values(name: str, tensor: Tensor, shape: tuple[int, ...], size: int) -> None:
    """Raises InputError unless the tensor has that shape and holds whole numbers below `size`; a
    mask may have any type."""
    found = shape_of(tensor)
    require(found == shape, f"{name}: shape {found}: give a tensor of the wanted {shape}.")
    told = f"{name} have the type {tensor.dtype}: give torch.long (a mask is the attention_mask)."
    require(name == "attention_mask" or tensor.dtype in (torch.int64, torch.int32), told)
    if may_look(tensor):
        low, high = tensor.min().item(), tensor.max().item()
        wrong = f"{name}: the value {shown(low if low < 0 else high)} is outside 0 to {size - 1}"
        require(0 <= low <= high < size, f"{wrong}; take those of this model only.")
