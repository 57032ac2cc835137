"""Checkpoints: the files of a folder, and the names of the weights here and in transformers.

Chapter: `book/bert/bert.ipynb`. One table of name pairs serves both directions; BERT's relatives
bring their own.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from spanbert_tutorial.errors import (
    InputError,
    parse_json,
    regular_file,
    require,
    shown,
)

# (here, in transformers); {} stands for the number of the layer.
NAME_PAIRS = (
    ("embeddings.words", "embeddings.word_embeddings"),
    ("embeddings.positions", "embeddings.position_embeddings"),
    ("embeddings.segments", "embeddings.token_type_embeddings"),
    ("embeddings.layer_norm", "embeddings.LayerNorm"),
    (
        "layers.{}.attention.query",
        "encoder.layer.{}.attention.self.query",
    ),
    ("layers.{}.attention.key", "encoder.layer.{}.attention.self.key"),
    (
        "layers.{}.attention.value",
        "encoder.layer.{}.attention.self.value",
    ),
    (
        "layers.{}.attention.output",
        "encoder.layer.{}.attention.output.dense",
    ),
    (
        "layers.{}.attention_norm",
        "encoder.layer.{}.attention.output.LayerNorm",
    ),
    ("layers.{}.expand", "encoder.layer.{}.intermediate.dense"),
    ("layers.{}.contract", "encoder.layer.{}.output.dense"),
    (
        "layers.{}.feed_forward_norm",
        "encoder.layer.{}.output.LayerNorm",
    ),
)
OLD_NAMES = {
    "gamma": "weight",
    "beta": "bias",
}  # LayerNorm's parameters in the first released checkpoints

# What stands beside the encoder in known checkpoints. `position_ids` are only the numbers 0, 1, 2,
# ...
HEADS = (
    "pooler",
    "cls",
    "qa_outputs",
    "classifier",
    "sop_classifier",
    "boundary",
    "head",
    "heads",
    "embeddings.position_ids",
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
    only_value: Mapping[str, object] = field(
        default_factory=lambda: ONLY_VALUE
    )


BERT = Layout("bert", NAME_PAIRS)

# Kinds of numbers that weights may come in, and what they become here.
FLOATS = {
    torch.float16: torch.float16,
    torch.bfloat16: torch.bfloat16,
    torch.float32: torch.float32,
    torch.float64: torch.float32,
}

# the files that hold weights → those of weights that are split over several
WEIGHT_FILES = {
    "model.safetensors": "model-*.safetensors",
    "pytorch_model.bin": "pytorch_model-*.bin",
}
# what torch puts in front of names: DataParallel, torch.compile; and a wrapper's attribute
WRAPPERS = re.compile(r"^((module|model)\.)+")

HUB_MODEL = re.compile(r"[\w.-]+(/[\w.-]+)?")


def to_huggingface_names(
    state: Mapping[str, Tensor], prefix: str = "", layout: Layout = BERT
) -> dict[str, Tensor]:
    """The encoder's state dict under transformers' names, `prefix` in front of each ("bert." beside
    heads).

    Raises InputError for a name that is not in the table.
    """
    table = dict(layout.pairs)
    renamed = {}
    for name, tensor in state.items():
        other = _translate(name, table)
        if other is None:
            raise InputError(
                f"{name!r} is not a weight of this encoder: take the encoder's own state_dict()."
            )
        renamed[prefix + other] = tensor
    return renamed


def from_huggingface_names(
    state: Mapping[str, Tensor], layout: Layout = BERT
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Two dicts: the encoder's weights under this package's names; all others under the names they
    came with.

    The encoder's names may carry the layout's prefix, such as `bert.`, and any LayerNorm the old
    names `gamma` and `beta`, which the others lose, too. Raises InputError for a weight of the
    encoder under two of these names.
    """
    table = {there: here for here, there in layout.pairs}
    ours = {}
    others = {}
    for name, tensor in state.items():
        renamed = _translate(
            name.removeprefix(f"{layout.kind}."), table
        )
        if renamed is None:
            module, dot, parameter = name.rpartition(".")
            others[
                f"{module}{dot}{OLD_NAMES.get(parameter, parameter)}"
            ] = tensor
        elif renamed in ours:
            raise InputError(
                f"{name!r} is there under two names: take the weights of one model."
            )
        else:
            ours[renamed] = tensor
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
    ours: Mapping,
    others: Mapping,
    source: str,
    layout: Layout = BERT,
) -> list[str]:
    """Compares the weights read with the `wanted` ones; returns the names of the known heads beside
    them. A missing, unknown or wrongly shaped weight raises InputError under transformers' name."""
    for name, tensor in wanted.items():
        there = next(
            iter(to_huggingface_names({name: tensor}, layout=layout))
        )
        if name not in ours:
            raise InputError(
                f"{source} lacks the weight {there}: take a complete {layout.kind.upper()} "
                f"checkpoint."
            )
        if ours[name].shape != tensor.shape:
            raise InputError(
                f"{source} has {there} as {tuple(ours[name].shape)}, its config asks "
                f"for {tuple(tensor.shape)}: use the config.json that belongs to the weights."
            )
    surplus = [
        *to_huggingface_names(
            {name: ours[name] for name in ours if name not in wanted},
            layout=layout,
        )
    ]
    heads = set()
    for name in others:
        bare = name.removeprefix(f"{layout.kind}.")
        head = next(
            (
                head
                for head in layout.heads
                if bare == head or bare.startswith(head + ".")
            ),
            None,
        )
        if head is None:
            surplus.append(name)
        else:
            heads.add(head)
    if surplus:
        raise InputError(
            f"{source} has weights that this encoder lacks: {', '.join(surplus[:5])}"
            f"{' ...' if len(surplus) > 5 else ''}; take a {layout.kind.upper()} checkpoint of "
            f"this size."
        )
    return sorted(heads)


def checkpoint_folder(
    path_or_name: str | Path, weights: bool = True
) -> Path:
    """The folder itself, or a download of the hub's model of that name, with or without its
    weights. Raises InputError without either."""
    path = Path(path_or_name)
    if os.path.isdir(path):
        return path
    if os.path.lexists(path):
        raise InputError(
            f"{path} is a file: give the folder that holds config.json and the weights."
        )
    if isinstance(path_or_name, Path) or not HUB_MODEL.fullmatch(
        path_or_name
    ):
        raise InputError(
            f"there is no folder {path_or_name}: give a checkpoint's folder or a hub name."
        )
    from huggingface_hub import (
        snapshot_download,
    )  # here, because a folder does not need it

    small = [
        "config.json",
        "vocab.txt",
        "tokenizer.json",
        "tokenizer_config.json",
        "added_tokens.json",
    ]
    try:
        for file, parts in (
            WEIGHT_FILES.items() if weights else ()
        ):  # one of the two is enough
            split = f"{file}.index.json"
            folder = Path(
                snapshot_download(
                    path_or_name,
                    allow_patterns=[*small, file, split, parts],
                )
            )
            if (folder / file).exists() or (folder / split).exists():
                return folder
        return Path(
            snapshot_download(path_or_name, allow_patterns=small)
        )
    except Exception as error:  # the hub's client raises many kinds: network, name, access
        raise InputError(
            f"{path_or_name} is no folder here and cannot be had from the hub {hub_trouble(error)}."
        ) from error


BROKEN_OFF = frozenset(
    {
        "IncompleteSnapshotError",
        "RemoteProtocolError",
        "ReadError",
        "XetDownloadError",
    }
)


def hub_trouble(error: BaseException) -> str:
    """What an error of the hub's client, or one that caused it, means for the reader: "(what is
    wrong): what to do"."""
    chain: list[BaseException | None] = [error]
    while chain[-1] is not None:
        chain.append(chain[-1].__cause__ or chain[-1].__context__)
    # by name, because not every release of the client has all of them
    kinds = {
        kind.__name__ for one in chain for kind in type(one).__mro__
    }
    status = {
        getattr(getattr(one, "response", None), "status_code", None)
        for one in chain
    }
    if 429 in status:
        return "(HTTP 429, too many requests from this address): wait some minutes and try again"
    if kinds & BROKEN_OFF or "Consistency check failed" in str(error):
        return "(the download broke off): try again with a network"
    if "OfflineModeIsEnabled" in kinds:
        return "(HF_HUB_OFFLINE is set): unset it, or load the model once with a network"
    if "RepositoryNotFoundError" in kinds:
        return "(no public model has this name): check the spelling"
    return f"({type(error).__name__}): check the name and the network"


def encoder_settings(config: Mapping, layout: Layout = BERT) -> dict:
    """The config without the keys that may have one value only. Raises InputError for a
    setting that asks for another computation, such as relative positions."""
    only_value = {"model_type": layout.kind, **layout.only_value}
    for key, only in only_value.items():
        if config.get(key) not in (only, None):
            raise InputError(
                f"{key} is {shown(config[key])}: this encoder computes only {key} = {only!r}."
            )
    return {
        key: value
        for key, value in config.items()
        if key not in only_value
    }


def read_config(folder: Path, name: str = "config.json") -> dict:
    """Content of such a file of the folder. Raises InputError when it is missing or not a JSON
    object."""
    file = folder / name
    try:
        content = parse_json(
            regular_file(file).read_text(encoding="utf-8")
        )
    except FileNotFoundError as error:
        raise InputError(
            f"{file} is missing: put the model's {name} beside its weights."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read as JSON: take the file of the original model."
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{file} does not hold a JSON object: take the file of the original model."
        )
    return content


def weight_files(folder: Path) -> list[Path]:
    """The file of the weights, or all of them where an index says that they are split. Raises
    InputError when there is none."""
    for name in WEIGHT_FILES:
        if os.path.lexists(folder / name):
            return [folder / name]
        if (folder / f"{name}.index.json").is_file():
            index = read_config(folder, f"{name}.index.json")
            parts = index.get("weight_map")
            parts = parts if isinstance(parts, dict) else {}
            require(
                parts
                and all(Path(str(p)).name == p for p in parts.values()),
                f"{folder / name}.index.json names no files beside it: download it again.",
            )
            return sorted(folder / part for part in set(parts.values()))
    raise InputError(
        f"{folder} has neither {' nor '.join(WEIGHT_FILES)}: put one of them there."
    )


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
        try:
            regular_file(file)
            part = (
                load_file(file)
                if file.suffix == ".safetensors"
                else torch.load(
                    file, map_location="cpu", weights_only=True
                )
            )
        except FileNotFoundError as error:
            raise InputError(
                f"{file} is missing, which the index beside it names: download it again."
            ) from error
        except Exception as error:  # damaged bytes fail in many ways: KeyError, UnicodeDecodeError, struct.error, …
            raise InputError(
                f"{file} cannot be read as weights ({type(error).__name__}): download it again."
            ) from error
        whole = isinstance(part, dict) and all(
            isinstance(name, str) and isinstance(tensor, Tensor)
            for name, tensor in part.items()
        )
        require(
            whole and part,
            f"{file} does not hold a dict of tensors: save the model's state_dict() there.",
        )
        state |= {
            name.replace("_orig_mod.", ""): plain(name, tensor, file)
            for name, tensor in part.items()
        }
    if all(map(WRAPPERS.match, state)):
        return {WRAPPERS.sub("", name): w for name, w in state.items()}
    return state


def plain(name: str, tensor: Tensor, file: Path) -> Tensor:
    """A weight as everything here computes with it: dense, of finite numbers, float64 as float32.
    Buffers of ids may hold whole numbers. Raises InputError for other kinds, such as complex,
    quantized, 8-bit or sparse ones."""
    dense = (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not tensor.is_nested
    )
    if not dense or tensor.is_quantized or repeats(tensor):
        raise InputError(
            f"{file} has {name} not as a plain dense tensor ({tensor.layout}): save it as one of "
            f"float32."
        )
    if name.endswith("_ids") and not tensor.is_floating_point():
        return tensor
    if tensor.dtype not in FLOATS:
        raise InputError(
            f"{file} has {name} as {tensor.dtype}: save it as float32."
        )
    tensor = tensor.detach().to(FLOATS[tensor.dtype])
    if not tensor.isfinite().all():
        raise InputError(
            f"{file} has numbers in {name} that are not finite in float32: take the file of before."
        )
    return tensor


def repeats(tensor: Tensor) -> bool:
    """Whether a tensor has fewer numbers in memory than places, as an expanded one: a small file
    may claim any size."""
    return (
        tensor.untyped_storage().nbytes()
        < tensor.numel() * tensor.element_size()
    )


def check_widths(
    widths: Mapping[str, int],
    state: Mapping[str, Tensor],
    source: str | Path,
) -> None:
    """Raises InputError for a size of a config that is larger than any side of any weight, before
    anything of that size is built. Names and exact shapes: `check_weights`."""
    largest = max(
        (
            max(weight.shape, default=0)
            for weight in state.values()
            if weight.numel()
        ),
        default=0,
    )
    for name, width in widths.items():
        if width > largest:
            raise InputError(
                f"{source} has no weights of {name} {shown(width)}: use the config.json that "
                f"belongs to "
                "the weights."
            )
