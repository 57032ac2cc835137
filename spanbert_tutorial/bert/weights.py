"""Checkpoints: the files of a folder, and the names of the weights here and in transformers.

Chapter: `book/bert/bert.ipynb`. One table of name pairs serves both directions; BERT's relatives
bring their own.
"""

import os
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from spanbert_tutorial.errors import InputError, parse_json, require, shown

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
# LayerNorm's parameters in the first released checkpoints
OLD_NAMES = {"gamma": "weight", "beta": "bias"}

# What stands beside the encoder in known checkpoints; `position_ids` are only 0, 1, 2, …
HEADS: tuple[str, ...] = ("pooler", "cls", "qa_outputs", "classifier", "sop_classifier", "boundary")
HEADS += ("head", "heads", "embeddings.position_ids")

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


@dataclass(frozen=True)
class Layout:
    """How transformers stores one kind of encoder.

    kind: its `model_type`, and the prefix of the encoder's names beside heads. pairs: (name here,
    name there). heads: first parts of names that may stand beside the encoder.
    only_value: keys of a config.json that may have one value only.
    """

    kind: str
    pairs: tuple[tuple[str, str], ...]
    heads: tuple[str, ...] = HEADS
    only_value: Mapping[str, object] = field(default_factory=lambda: ONLY_VALUE)


BERT = Layout("bert", NAME_PAIRS)

# the files that hold weights → those of weights that are split over several
WEIGHT_FILES = {
    "model.safetensors": "model-*.safetensors",
    "pytorch_model.bin": "pytorch_model-*.bin",
}
# what torch's DataParallel, or a wrapper's attribute, puts in front of all names
WRAPPERS = re.compile(r"^((module|model)\.)+")


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
    came with. The encoder's names may carry the layout's prefix, such as `bert.`, and any LayerNorm
    the old names `gamma` and `beta`, which the others lose, too."""
    table = {there: here for here, there in layout.pairs}
    ours, others = {}, {}
    for name, tensor in state.items():
        if renamed := _translate(name.removeprefix(f"{layout.kind}."), table):
            ours[renamed] = tensor
        else:
            others[re.sub(r"\.(gamma|beta)$", lambda old: f".{OLD_NAMES[old[1]]}", name)] = tensor
    return ours, others


def _translate(name: str, table: Mapping[str, str]) -> str | None:
    if name in table:  # a pair may also name one weight alone
        return table[name]
    module, _, parameter = name.rpartition(".")
    number = re.search(r"\.(\d+)\.", module)
    pattern = table.get(re.sub(r"\.\d+\.", ".{}.", module, count=1))
    if pattern is None:
        return None
    return f"{pattern.format(number[1] if number else '')}.{OLD_NAMES.get(parameter, parameter)}"


def check_weights(
    wanted: Mapping[str, Tensor],
    ours: Mapping[str, Tensor],
    others: Mapping[str, Tensor],
    source: str,
    layout: Layout = BERT,
) -> list[str]:
    """Compares the weights read with the `wanted` ones; returns the names of the known heads beside
    them. A missing, unknown or wrongly shaped weight raises InputError under transformers' name."""
    kind = layout.kind.upper()
    for (name, tensor), there in zip(
        wanted.items(), to_huggingface_names(wanted, layout=layout), strict=True
    ):
        require(name in ours, f"{source} lacks the weight {there}: take a whole {kind} checkpoint.")
        require(
            ours[name].shape == tensor.shape,
            f"{source} has {there} as {tuple(ours[name].shape)}, its config as "
            f"{tuple(tensor.shape)}: use the config.json that belongs to the weights.",
        )
    surplus = {name: weight for name, weight in ours.items() if name not in wanted}
    unknown = [*to_huggingface_names(surplus, layout=layout)]
    heads = set()
    for name in others:
        bare = name.removeprefix(f"{layout.kind}.")
        fitting = [one for one in layout.heads if f"{bare}.".startswith(f"{one}.")]
        heads.update(fitting[:1])
        unknown += [] if fitting else [name]
    require(
        not unknown,
        f"{source} has weights that this encoder lacks: {', '.join(unknown[:5])}"
        f"{' ...' if len(unknown) > 5 else ''}; take a {kind} checkpoint of this size.",
    )
    return sorted(heads)


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
        for file, parts in WEIGHT_FILES.items() if weights else ():  # one of the two is enough
            split = f"{file}.index.json"
            wanted = [*files, file, split, parts]
            folder = Path(snapshot_download(str(path_or_name), allow_patterns=wanted))
            if (folder / file).exists() or (folder / split).exists():
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


def encoder_settings(config: Mapping, layout: Layout = BERT) -> dict:
    """The config without the keys that may have one value only. Raises InputError for a
    setting that asks for another computation, such as relative positions."""
    only_value = {"model_type": layout.kind, **layout.only_value}
    for key, only in only_value.items():
        require(
            config.get(key) in (only, None),
            f"{key} is {shown(config.get(key))}: this encoder computes only {key} = {only!r}.",
        )
    return {key: value for key, value in config.items() if key not in only_value}


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


def weight_files(folder: Path) -> list[Path]:
    """The file of the weights, or all of them where an index says that they are split. Raises
    InputError when there is none."""
    for name in WEIGHT_FILES:
        index = f"{name}.index.json"
        if os.path.lexists(folder / name):
            return [folder / name]
        if (folder / index).is_file():
            parts = read_config(folder, index).get("weight_map")
            names = set(map(str, parts.values())) if isinstance(parts, dict) else set()
            told = f"{folder / index} names no files beside it: download it again."
            require(names and all(Path(part).name == part for part in names), told)
            return sorted(folder / part for part in names)
    raise InputError(f"{folder} has neither {' nor '.join(WEIGHT_FILES)}: put one of them there.")


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Weights of `model.safetensors`, else of `pytorch_model.bin` (tensors only, never code), also
    split over several files, in float32 or a smaller float type. What torch put in front of all
    names is dropped.

    Raises InputError when there is no such file, it cannot be read, or a weight is not what `plain`
    takes.
    """
    from safetensors.torch import load_file

    state: dict[str, Tensor] = {}
    for file in weight_files(folder):
        told = f"{file} is missing, which the index beside it names: download it again."
        require(os.path.lexists(file), told)
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
        state |= {
            str(k).replace("_orig_mod.", ""): plain(str(k), w, file) for k, w in part.items()
        }
    if all(map(WRAPPERS.match, state)):
        return {WRAPPERS.sub("", name): w for name, w in state.items()}
    return state


def plain(name: str, weight: Tensor, file: Path) -> Tensor:
    """A weight as everything here computes with it: dense, of finite numbers, float64 as float32.
    Buffers of ids may hold whole numbers. Raises InputError for other kinds, such as complex,
    quantized, 8-bit or sparse ones."""
    ids = name.endswith("_ids") and not weight.is_floating_point()
    require(
        weight.layout is torch.strided and (ids or weight.dtype in FLOATS),
        f"{file} has {name} as {weight.dtype} ({weight.layout}): save it dense, as float32.",
    )
    if weight.dtype == torch.float64:
        weight = weight.float()
    told = f"{file} has numbers in {name} that are not finite in float32: take the file of before."
    require(weight.isfinite().all(), told)
    return weight.detach()
