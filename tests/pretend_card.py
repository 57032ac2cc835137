"""A graphics card that is not there: the CPU computes, and every tensor knows where it would be.

Inside `pretend_card()` a tensor moved "to the card" says that its device is `cuda`; what an
operation makes of it is there, too; and an operation on tensors of both places is refused as
PyTorch refuses it, and so is `.numpy()`. The package trains "on the card", and whatever asks
whether there is one hears that there is. It finds what fails on a card because something was left
behind, and says nothing of its arithmetic. Random draws, lists of devices and memory are those of
the CPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from accelerate import PartialState
from accelerate.state import AcceleratorState
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from spanbert_tutorial.engine.processes import processes

CARD, CPU = torch.device("cuda"), torch.device("cpu")
aten = torch.ops.aten
COPIES = {aten.copy_.default, aten._to_copy.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
INDEXED |= {aten._index_put_impl_.default}


def on_card(tensor: torch.Tensor) -> bool:
    """Whether the tensor would be on the card: its storage knows, and so all views of it."""
    return getattr(tensor.untyped_storage(), "on_card", False)


def put(tensor: torch.Tensor, there: bool) -> torch.Tensor:
    """The tensor, which is now on the card, or no more."""
    tensor.untyped_storage().on_card = there
    return tensor


def tensors_of(values: object) -> list[torch.Tensor]:
    """Those among the arguments, or the results, of an operation."""
    leaves = tree_leaves(values)
    return [one for one in leaves if isinstance(one, torch.Tensor) and one.layout == torch.strided]


def same_place(operation: object, args: tuple, given: list[torch.Tensor]) -> None:
    """Raises RuntimeError, as PyTorch does, where tensors of both places meet. A single number may
    be anywhere, a copy has two places, and a tensor of the card takes indices of the CPU."""
    if operation in COPIES or (operation in INDEXED and on_card(args[0])):
        return
    places = {on_card(one) for one in given if one.dim()}
    if len(places) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"cuda:0 and cpu! ({operation})"
        )


class Operations(TorchDispatchMode):
    """Each operation: its arguments are in one place, and its results are there."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        given = tensors_of((args, kwargs))
        same_place(operation, args, given)
        made = operation(*args, **(kwargs or {}))
        before = {one.untyped_storage()._cdata for one in given}
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        there = on_card(first) if operation in INDEXED else any(map(on_card, given))
        for one in tensors_of(made):
            if one.untyped_storage()._cdata not in before:
                put(one, there)
        return made


class Places(TorchFunctionMode):
    """What Python code asks of devices."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if owner is torch.Tensor.device:
            return CARD if on_card(args[0]) else function(*args)
        if owner is torch.Tensor.is_cuda:
            return on_card(args[0])
        if name in ("numpy", "__array__") and on_card(args[0]):
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if name == "pin_memory":
            return args[0]
        if name in ("cpu", "cuda"):
            return moved(args[0], name == "cuda")
        wanted, args, kwargs = without_device(name, args, kwargs)
        made = function(*args, **kwargs)
        if wanted is None:
            return made
        return moved(made, wanted) if name == "to" else put(made, wanted)


def without_device(name: str, args: tuple, kwargs: dict) -> tuple[bool | None, tuple, dict]:
    """Whether a call asks for the card (None: for no place), and its arguments without that."""
    if name == "to":
        other = next((one for one in args[1:] if isinstance(one, torch.Tensor)), None)
        if other is not None:
            return on_card(other), args, kwargs
        at = next((i for i, one in enumerate(args) if isinstance(one, torch.device | str)), None)
        if at is not None:
            kwargs["device"] = args[at]
            if len(args) == at + 1:
                args = args[:at]
            else:  # what follows it counts by its place
                asked = torch.device(kwargs.pop("device")).type
                return asked == "cuda", (*args[:at], CPU, *args[at + 1 :]), kwargs
    asked = kwargs.get("device")
    if asked is None:
        return None, args, kwargs
    kind = torch.device(asked).type
    if kind == "meta":  # where no numbers are
        return None, args, kwargs
    kwargs["device"] = CPU
    return kind == "cuda", args, kwargs


def moved(tensor: torch.Tensor, there: bool) -> torch.Tensor:
    """The tensor in that place: itself, or a copy through which gradients go."""
    return tensor if on_card(tensor) == there else put(tensor.clone(), there)


@contextmanager
def pretend_card() -> Iterator[None]:
    """While this is open there seems to be a card."""
    state = processes()
    real = state.device
    AcceleratorState._reset_state()
    PartialState._shared_state["device"] = CARD
    single = mock.patch("spanbert_tutorial.engine.device.precision", lambda: "no")
    seems = mock.patch("torch.cuda.is_available", lambda: True)
    try:
        with single, seems, Operations(), Places():
            yield
    finally:
        PartialState._shared_state["device"] = real
        AcceleratorState._reset_state()
