"""Checkpoints: the files of a folder, and the names of the weights here and in transformers.

Chapter: `book/bert/bert.ipynb`. One table of name pairs serves both directions; BERT's relatives
bring their own.
"""

import os
import re
import traceback
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
# Keys of a config.json that would change the numbers, unless they say this; transformers ignores
# what it does not know, and so does this module.
ONLY_VALUE = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Layout(NamedTuple):
    """How transformers stores one kind of encoder.

    kind: its `model_type`, and the prefix of the encoder's names beside heads. pairs: (name here,
    name there). only_value: keys of a config.json that may have one value only.
    """

    kind: str
    pairs: tuple[tuple[str, str], ...]
    only_value: Mapping[str, object] = ONLY_VALUE


BERT = Layout("bert", NAME_PAIRS)

# the file of the weights, and those of weights that are split over several
WEIGHT_FILES = (
    ("model.safetensors", "model-*.safetensors"),
    ("pytorch_model.bin", "pytorch_model-*.bin"),
)
# what torch.compile, DataParallel, or a wrapper's attribute puts in front of names
WRAPPERS = re.compile(r"^((module|model|_orig_mod)\.)+|_orig_mod\.")


def to_huggingface_names(
    state: Mapping[str, Tensor], prefix: str = "", layout: Layout = BERT
) -> dict[str, Tensor]:
    """The encoder's state dict under transformers' names, `prefix` in front of each ("bert." beside
    heads). Raises InputError for a name that is not in the table."""
    table = dict(layout.pairs)
    renamed = {name: _translate(name, table) for name in state}
    for name, other in renamed.items():
        require(other, f"{name!r} is not a weight of this encoder: take its own state_dict().")
    return {f"{prefix}{renamed[name]}": tensor for name, tensor in state.items()}


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
        if renamed := _translate(name.removeprefix(f"{layout.kind}."), table):
            ours[renamed] = tensor
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

    files = ["config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json"]
    files.append("added_tokens.json")
    try:
        for patterns in WEIGHT_FILES if weights else ():  # one of the two is enough
            folder = Path(snapshot_download(str(path_or_name), allow_patterns=[*files, *patterns]))
            if any(file for pattern in patterns for file in folder.glob(pattern)):
                return folder
        return Path(snapshot_download(str(path_or_name), allow_patterns=files))
    except Exception as error:  # the hub's client raises many kinds: network, name, access
        raise InputError(
            f"{path_or_name} is no folder here and cannot be had from the hub {hub_trouble(error)}."
        ) from error


# what an error of the hub's client says → "(what is wrong): what to do"
HUB_TROUBLES = {
    "429 (Client|Too)": "(HTTP 429, too many requests from this address): wait some minutes and "
    "try again",
    "IncompleteSnapshot|RemoteProtocolError|ReadError|XetDownload|Consistency check failed": "(the "
    "download broke off): try again with a network",
    "OfflineModeIsEnabled": "(HF_HUB_OFFLINE is set): unset it, or load the model once with a "
    "network",
    "RepositoryNotFoundError": "(no public model has this name): check the spelling",
}


def hub_trouble(error: BaseException) -> str:
    """What an error of the hub's client, or one that caused it, means for the reader."""
    said = "".join(traceback.format_exception(error, limit=0))  # of all that caused it
    known = [told for sign, told in HUB_TROUBLES.items() if re.search(sign, said)]
    return known[0] if known else f"({type(error).__name__}): check the name and the network"


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

    Raises InputError when there is no such file, it cannot be read, or a weight is not what `plain`
    takes.
    """
    from safetensors.torch import load_file

    found = [sorted(folder.glob(pattern)) for patterns in WEIGHT_FILES for pattern in patterns]
    files = next(filter(None, found), [])
    told = " nor ".join(file for file, _ in WEIGHT_FILES)
    require(files, f"{folder} has neither {told}: put one of them there.")
    state: dict[str, Tensor] = {}
    for file in files:
        try:
            safe = file.suffix == ".safetensors"
            part = load_file(file) if safe else torch.load(file, "cpu", weights_only=True)
        except Exception as error:  # damaged bytes fail in many ways
            raise InputError(
                f"{file} cannot be read as weights ({type(error).__name__}): download it again."
            ) from error
        require(
            part and isinstance(part, dict) and all(isinstance(w, Tensor) for w in part.values()),
            f"{file} does not hold a dict of tensors: save the model's state_dict() there.",
        )
        named = {WRAPPERS.sub("", str(name)): weight for name, weight in part.items()}
        state |= {k: plain(k, w, file) for k, w in named.items() if not k.endswith("_ids")}
    return state


def plain(name: str, weight: Tensor, file: Path) -> Tensor:
    """A weight as everything here computes with it: dense, of finite numbers, float64 as float32.
    Raises InputError for other kinds, such as complex, quantized, 8-bit or sparse ones."""
    require(
        weight.layout is torch.strided and weight.dtype in FLOATS,
        f"{file} has {name} as {weight.dtype} ({weight.layout}): save it dense, as float32.",
    )
    weight = weight.detach().to(torch.float32 if weight.dtype == torch.float64 else weight.dtype)
    told = f"{file} has numbers in {name} that are not finite in float32: take the file of before."
    require(weight.isfinite().all(), told)
    return weight
