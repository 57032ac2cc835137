"""The processes of a run: which one this is, what it computes in, and how all of them decide and
fail as one."""

import ctypes
from collections.abc import Callable
from datetime import timedelta

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from safetensors import SafetensorError

from spanbert_tutorial.errors import InputError

# how a full disk is told, among others
FAILURES = (OSError, RuntimeError, SafetensorError, InputError, FloatingPointError)


def processes() -> PartialState:
    """This process among those of the run; on a machine without accelerator they are processes of
    the CPU."""
    if PartialState._shared_state:  # the first call decides
        return PartialState()
    accelerator = (
        torch.accelerator.is_available()
        if hasattr(torch, "accelerator")
        else torch.cuda.is_available()
    )
    # the first process may read a large corpus for hours before the others see it
    return PartialState(cpu=not accelerator, timeout=timedelta(days=7))


def any_process(yes: bool) -> bool:
    """Whether one of the processes says yes. A snapshot needs all of them at the same step, but
    their clocks differ and a signal reaches each at another moment. It is also a barrier."""
    state = processes()
    if state.num_processes == 1:
        return yes
    return reduce(torch.tensor(float(yes), device=state.device), "sum").item() > 0


def fail_together(work: Callable[[], None]) -> None:
    """Does `work`, and waits until all processes have done theirs. When one of them fails all
    raise, so that none waits for another that has stopped: its own error (one of `FAILURES`), or
    InputError where only another one failed."""
    error: Exception | None = None
    try:
        work()
    except FAILURES as caught:
        error = caught
    if any_process(error is not None):
        raise error or InputError("another process has failed; its message stands above.")


def precision() -> str:
    """Accelerate's name of the arithmetic: "bf16" where the machine computes in it natively, "fp16"
    (with a loss scaler) on older graphics cards that have it, such as a T4, else "no" (float32).

    Asks for the capability itself: `torch.cuda.is_bf16_supported()` is also true where bfloat16 is
    only emulated.
    """
    if torch.cuda.is_available():
        capability = torch.cuda.get_device_capability()
        return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "no"
    # not a public name: where a release of torch lacks it, float32 is always right
    return "bf16" if getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)() else "no"


def keep_freed_memory() -> bool:
    """Lets a CPU process keep the memory of one step for the next; true where this can be set
    (glibc, so on Linux).

    By default C's `free` hands large blocks back to the system, which fills every page anew with
    zeros when the next step asks for it (`benchmarks/freed_memory.py`).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, TypeError):  # not glibc; Windows cannot even ask
        return False
    # M_MMAP_THRESHOLD, above which blocks are apart (older glibc: 32 MiB at most); M_TRIM_THRESHOLD
    # of the heap's end
    return any(mallopt(-3, most) for most in (2**31 - 1, 2**25)) and bool(mallopt(-1, 2**31 - 1))
