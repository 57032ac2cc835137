"""The state of a run as tensors and JSON, so that nothing read back can run code. Chapter:
`book/workshop/engine`.

`apart` splits a state (dicts, lists and tuples of tensors, numbers and strings) into JSON and named
tensors; `joined` puts it back together. `torch.load(weights_only=True)` would be shorter, but it
is pickle behind a filter, and files that got past the filter are known for torch before 2.10
(CVE-2025-32434, CVE-2026-24747); this package runs on older versions too.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

JSON_TYPES = (str, int, float, bool, type(None))


class Stateful(Protocol):
    """Anything a snapshot can keep: a model, an optimizer, a schedule, a stream of batches."""

    def state_dict(self) -> Any: ...

    def load_state_dict(self, state_dict: Any, /) -> Any: ...


def apart(state: object, name: str, tensors: dict[str, Tensor]) -> object:
    """The part of a state that JSON can hold; its tensors are added to `tensors`, under names that
    begin with `name`. A tensor that occurs twice, such as the weights that heads share with the
    embeddings, is stored once. Raises TypeError for anything else."""
    if isinstance(state, Tensor):
        name = next((key for key, tensor in tensors.items() if same_memory(tensor, state)), name)
        tensors[name] = state.detach()
        return {"tensor": name}
    if isinstance(state, Mapping):
        return {
            "pairs": [[key, apart(value, f"{name}.{key}", tensors)] for key, value in state.items()]
        }
    if isinstance(state, list | tuple):
        parts = [
            apart(value, f"{name}.{position}", tensors) for position, value in enumerate(state)
        ]
        return parts if isinstance(state, list) else {"tuple": parts}
    if type(state) not in JSON_TYPES:
        raise TypeError(f"{name} is a {type(state).__name__}, neither a tensor nor JSON.")
    return state


def same_memory(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors show the same memory in the same way; empty tensors have none."""
    same_view = (
        first.shape == second.shape
        and first.dtype == second.dtype
        and first.stride() == second.stride()
    )
    return same_view and first.numel() > 0 and first.data_ptr() == second.data_ptr()


def joined(content: object, tensors: Mapping[str, Tensor]) -> Any:
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
    if isinstance(content, list):
        return [joined(part, tensors) for part in content]
    return content


def write_states(folder: Path, states: Mapping[str, object]) -> None:
    """Writes the tensors of each state to `NAME.safetensors`, and the rest of all states to
    `state.json`."""
    contents = {}
    for name, state in states.items():
        tensors: dict[str, Tensor] = {}
        contents[name] = apart(state, name, tensors)
        if tensors:
            on_cpu = {key: tensor.cpu().contiguous() for key, tensor in tensors.items()}
            save_file(on_cpu, folder / f"{name}.safetensors")
    (folder / "state.json").write_text(json.dumps(contents), encoding="utf-8")


def read_states(folder: Path) -> dict[str, Any]:
    """Reads what `write_states` wrote. Raises OSError, SafetensorError, ValueError, KeyError, TypeError
    or RecursionError."""
    contents = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    states = {}
    for name, content in contents.items():
        file = folder / f"{name}.safetensors"
        states[name] = joined(content, load_file(file) if file.exists() else {})
    return states


def random_states() -> dict[str, Tensor]:
    """The states of torch's random generators in this process, for the CPU and for each GPU."""
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "processor": torch.get_rng_state(),
        **{f"card{number}": state for number, state in enumerate(cards)},
    }


def set_random_states(states: Mapping[str, Tensor]) -> None:
    """Restores `random_states`. Raises KeyError, RuntimeError or TypeError for anything else."""
    torch.set_rng_state(states["processor"])
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        torch.cuda.set_rng_state(states[f"card{number}"], number)
