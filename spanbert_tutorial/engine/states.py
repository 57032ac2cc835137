"""The state of a run as tensors and JSON: nothing that is read back can hold code.

`apart` takes a state (dicts, lists and tuples of tensors, numbers and words) apart into JSON and
named tensors; `joined` puts it together again.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

SHOWN = (str, int, float, bool, type(None))


def apart(state: object, name: str, tensors: dict[str, Tensor]) -> object:
    """What JSON holds of a state; its tensors go to `tensors`, under names that begin with `name`.
    A tensor that stands in two places, such as the weights that heads share with the embeddings,
    goes there once. Raises TypeError for anything else."""
    if isinstance(state, Tensor):
        name = next((key for key, tensor in tensors.items() if same_memory(tensor, state)), name)
        tensors[name] = state.detach()
        return {"tensor": name}
    if isinstance(state, Mapping):
        return {
            "pairs": [[key, apart(value, f"{name}.{key}", tensors)] for key, value in state.items()]
        }
    if isinstance(state, list | tuple):
        parts = [apart(value, f"{name}.{place}", tensors) for place, value in enumerate(state)]
        return parts if isinstance(state, list) else {"tuple": parts}
    if type(state) not in SHOWN:
        raise TypeError(f"{name} is a {type(state).__name__}, neither a tensor nor JSON.")
    return state


def same_memory(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same place; empty ones are in none."""
    alike = one.shape == other.shape and one.dtype == other.dtype and one.stride() == other.stride()
    return alike and one.numel() > 0 and one.data_ptr() == other.data_ptr()


def joined(content: object, tensors: Mapping[str, Tensor]) -> object:
    """The state that `apart` took apart. Raises KeyError for a tensor that is missing, TypeError or
    ValueError for other content."""
    if isinstance(content, dict):
        ((kind, value),) = content.items()
        if kind == "tensor":
            return tensors[value]
        if kind == "pairs":
            return {key: joined(part, tensors) for key, part in value}
        if kind == "tuple":
            return tuple(joined(part, tensors) for part in value)
        raise ValueError(f"{kind} is no part of a state.")
    return [joined(part, tensors) for part in content] if isinstance(content, list) else content


def write_states(folder: Path, states: Mapping[str, object]) -> None:
    """Each state's tensors as `NAME.safetensors`, and what else is in all of them as
    `state.json`."""
    contents = {}
    for name, state in states.items():
        tensors: dict[str, Tensor] = {}
        contents[name] = apart(state, name, tensors)
        if tensors:
            here = {key: tensor.cpu().contiguous() for key, tensor in tensors.items()}
            save_file(here, folder / f"{name}.safetensors")
    (folder / "state.json").write_text(json.dumps(contents), encoding="utf-8")


def read_states(folder: Path) -> dict[str, object]:
    """What `write_states` wrote. Raises OSError, SafetensorError, ValueError, KeyError, TypeError
    or RecursionError."""
    contents = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    states = {}
    for name, content in contents.items():
        file = folder / f"{name}.safetensors"
        states[name] = joined(content, load_file(file) if file.exists() else {})
    return states


def random_states() -> dict[str, Tensor]:
    """Of torch's generators of this process: that of the processor and those of its graphics
    cards."""
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "processor": torch.get_rng_state(),
        **{f"card{number}": state for number, state in enumerate(cards)},
    }


def set_random_states(states: Mapping[str, Tensor]) -> None:
    """Back to `random_states`. Raises KeyError, RuntimeError or TypeError for states of another
    kind."""
    torch.set_rng_state(states["processor"])
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        torch.cuda.set_rng_state(states[f"card{number}"], number)
