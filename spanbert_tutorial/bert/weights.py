"""Checkpoints: the files of a folder, and the names of the weights here and in transformers.

Chapter: `book/bert/bert.ipynb`. One table of name pairs serves both directions; BERT's relatives
bring their own.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from spanbert_tutorial.errors import InputError, parse_json, require

# (here, in transformers); {} stands for the number of the layer.
NAME_PAIRS = (
    ("embeddings.word_embeddings", "embeddings.word_embeddings"),
    ("embeddings.position_embeddings", "embeddings.position_embeddings"),
    ("embeddings.token_type_embeddings", "embeddings.token_type_embeddings"),
    ("embeddings.layer_norm", "embeddings.LayerNorm"),
    ("layers.{}.attention.query", "encoder.layer.{}.attention.self.query"),
    ("layers.{}.attention.key", "encoder.layer.{}.attention.self.key"),
    ("layers.{}.attention.value", "encoder.layer.{}.attention.self.value"),
    ("layers.{}.attention.output", "encoder.layer.{}.attention.output.dense"),
    ("layers.{}.attention_norm", "encoder.layer.{}.attention.output.LayerNorm"),
    ("layers.{}.expand", "encoder.layer.{}.intermediate.dense"),
    ("layers.{}.contract", "encoder.layer.{}.output.dense"),
    ("layers.{}.feed_forward_norm", "encoder.layer.{}.output.LayerNorm"),
)
# Keys of a config.json that would change the numbers, unless they say this. Others are ignored, as
# by transformers.
ONLY_VALUE = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class Layout(NamedTuple):
    """How transformers stores one kind of encoder.

    kind: its `model_type`, and the prefix of the encoder's names beside heads. pairs: (name here,
    name there). only_value: keys of a config.json that may have one value only.
    """

    kind: str
    pairs: tuple[tuple[str, str], ...]
    only_value: Mapping[str, object] = ONLY_VALUE


BERT = Layout("bert", NAME_PAIRS)

# --- names --------------------------------------------------------------------------


def to_huggingface_names(
    state: Mapping[str, Tensor], prefix: str = "", layout: Layout = BERT
) -> dict[str, Tensor]:
    """The encoder's state dict under transformers' names, `prefix` in front of each ("bert." beside
    heads). Raises InputError for a name that is not in the table."""
    table = dict(layout.pairs)
    renamed = {}
    for name, tensor in state.items():
        there = _translate(name, table)
        require(there, f"{name!r} is not a weight of this encoder: take its own state_dict().")
        renamed[f"{prefix}{there}"] = tensor
    return renamed


def from_huggingface_names(
    state: Mapping[str, Tensor], layout: Layout = BERT
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Two dicts: the encoder's weights under this package's names; all others under the names they
    came with. The encoder's names may carry the layout's prefix, such as `bert.`. A LayerNorm's
    `gamma` and `beta`, as in the first released checkpoints, become `weight` and `bias`."""
    table = {there: here for here, there in layout.pairs}
    ours, others = {}, {}
    for old_name, tensor in state.items():
        name = re.sub(r"\.beta$", ".bias", re.sub(r"\.gamma$", ".weight", old_name))
        if here := _translate(name.removeprefix(f"{layout.kind}."), table):
            ours[here] = tensor
        else:
            others[name] = tensor
    return ours, others


def _translate(name: str, table: Mapping[str, str]) -> str | None:
    if name in table:  # a pair may also name one weight alone
        return table[name]
    module, _, parameter = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    pattern = table.get(re.sub(r"\.\d+\.", ".{}.", module, count=1))
    return pattern and f"{pattern.format(number and number[1])}.{parameter}"


def part_of(name: str, layout: Layout = BERT) -> str:
    """The head that a weight of a checkpoint belongs to, or the part of the encoder."""
    return name.removeprefix(f"{layout.kind}.").split(".")[0]


def load_weights(
    module: nn.Module, weights: Mapping[str, Tensor], source: str, layout: Layout = BERT
) -> None:
    """Gives a module copies of all its weights, in float32 at least. Raises InputError naming those
    that are missing, surplus or of another shape."""
    copies = {
        name: weight.to(torch.promote_types(weight.dtype, torch.float32), copy=True)
        for name, weight in weights.items()
    }
    try:
        module.load_state_dict(copies, assign=True)
    except RuntimeError as error:
        wrong = " ".join(str(error).split())
        mend = f"take a whole {layout.kind.upper()} checkpoint, with its config.json"
        raise InputError(f"{source} does not fit ({wrong}): {mend}.") from None


# --- files --------------------------------------------------------------------------

WEIGHT_FILES = ["model.safetensors", "model-*.safetensors"]
WEIGHT_FILES += ["pytorch_model.bin", "pytorch_model-*.bin"]
SMALL_FILES = ["config.json", "vocab.txt", "tokenizer.json"]
SMALL_FILES += ["tokenizer_config.json", "added_tokens.json"]
# what torch.compile, DataParallel, or a wrapper's attribute puts in front of names
WRAPPERS = re.compile(r"^((module|model|_orig_mod)\.)+|_orig_mod\.")


def checkpoint_folder(path_or_name: str | Path, weights: bool = True) -> Path:
    """The folder itself, or a download of the hub's model of that name, with or without its
    weights. Raises InputError without either."""
    path = Path(path_or_name)
    if os.path.isdir(path):
        return path
    require(not os.path.lexists(path), f"{path} is a file: give the folder of the checkpoint.")
    require(
        isinstance(path_or_name, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", path_or_name),
        f"there is no folder {path_or_name}: give a checkpoint's folder or a hub name.",
    )
    from huggingface_hub import snapshot_download  # here, because a folder does not need it

    try:
        for pattern in WEIGHT_FILES if weights else SMALL_FILES[:1]:
            wanted = [*SMALL_FILES, pattern]
            folder = Path(snapshot_download(str(path_or_name), allow_patterns=wanted))
            if weight_files(folder):
                break  # one kind is enough
        return folder
    except Exception as error:  # the hub's client raises many kinds: network, name, access
        raise InputError(
            f"{path_or_name} is no folder here and cannot be had from the hub {hub_trouble(error)}."
        ) from error


def hub_trouble(error: Exception) -> str:
    """What is wrong, from an error of the hub's client, and what to do."""
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        return "(HF_HUB_OFFLINE is set): unset it, or load the model once with a network"
    return f"({type(error).__name__}): check the name and the network, and try again"


def weight_files(folder: Path) -> list[Path]:
    """Where the weights of a folder are, also split over several files; safetensors first."""
    found = (sorted(folder.glob(pattern)) for pattern in WEIGHT_FILES)
    return next(filter(None, found), [])


def read_config(folder: Path, name: str = "config.json") -> dict:
    """Content of such a file of the folder. Raises InputError when it is missing or not a JSON
    object."""
    file = folder / name
    require(file.exists(), f"{file} is missing: put the model's {name} beside its weights.")
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        content = None
    require(isinstance(content, dict), f"{file} cannot be read as a JSON object: copy it again.")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Weights of `model.safetensors`, else of `pytorch_model.bin` (tensors only, never code), also
    split over several files, in float32 or a smaller float type. What torch put in front of names
    is dropped, and so are buffers of ids, which are only 0, 1, 2, …

    Raises InputError when there is no such file, it cannot be read, or a weight is complex,
    quantized, sparse or not finite.
    """
    from safetensors.torch import load_file

    files = weight_files(folder)
    told = "model.safetensors nor pytorch_model.bin: put one of them there."
    require(files, f"{folder} has neither {told}")
    state: dict[str, Tensor] = {}
    for file in files:
        try:
            safe = file.suffix == ".safetensors"
            part = load_file(file) if safe else torch.load(file, "cpu", weights_only=True)
            named = {WRAPPERS.sub("", name): weight.detach() for name, weight in part.items()}
        except Exception as error:  # damaged bytes, or no dict of tensors, fail in many ways
            raise InputError(
                f"{file} cannot be read as weights ({type(error).__name__}): download it again."
            ) from error
        for name, weight in named.items():
            if not name.endswith("_ids"):
                kind = torch.float32 if weight.dtype == torch.float64 else weight.dtype
                plain = weight.layout is torch.strided and kind in FLOATS
                require(
                    plain and weight.to(kind).isfinite().all(),
                    f"{file} has {name} as {weight.dtype}, {weight.layout}, or with numbers that "
                    "are not finite: save it dense, as float32.",
                )
                state[name] = weight.to(kind)
    return state
