"""The processes of a run: which one this is, its precision, and how all of them decide and fail
together. Chapter: `book/workshop/engine`."""

import ctypes
import os
from collections.abc import Callable
from datetime import timedelta

import torch
from accelerate import PartialState
from accelerate.utils import reduce

from spanbert_tutorial.errors import InputError


def processes() -> PartialState:
    """This process among those of the run; without an accelerator they all run on the CPU, and on
    a Mac, too, where there are several."""
    if PartialState._shared_state:  # the first call decides
        return PartialState()
    # the first process may read a large corpus for hours before the others see it
    several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    cpu = not torch.accelerator.is_available() or (several and torch.backends.mps.is_available())
    return PartialState(cpu=cpu, timeout=timedelta(days=7))


def any_process(answer: bool) -> bool:
    """Whether `answer` is true in at least one process; also a barrier. All processes write a
    snapshot at the same step, although their clocks differ and a signal may reach only one."""
    state = processes()
    if state.num_processes == 1:
        return answer
    return reduce(torch.tensor(float(answer), device=state.device), "sum").item() > 0


def in_first_process(work: Callable[[], None]) -> None:
    """Does `work` in the first process, for which the others wait. If it fails, all raise, so that
    none waits for a process that has stopped: the first its own error, the others InputError."""
    error: Exception | None = None
    try:
        if processes().is_main_process:
            work()
    except Exception as caught:
        error = caught
    if any_process(error is not None):
        raise error or InputError("another process has failed; see its message above.")


def precision() -> str:
    """Accelerate's name of the precision: "bf16" where the hardware computes in it natively, "fp16"
    (with a loss scaler) on older GPUs such as a T4, else "no" (float32).

    Checks the compute capability itself, because `torch.cuda.is_bf16_supported()` is also true
    where bfloat16 is only emulated.
    """
    if torch.cuda.is_available():
        capability = torch.cuda.get_device_capability()
        return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "no"
    # not a public name: float32 is always right where a release of torch lacks it
    return "bf16" if getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)() else "no"


def keep_freed_memory() -> bool:
    """Lets a CPU process keep the memory of one step for the next; true where this can be set
    (glibc, that is, on Linux).

    By default C's `free` returns large blocks to the system, which fills every page with zeros
    again when the next step asks for it (`data/results/freed_memory.json`).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, TypeError):  # not glibc, or Windows
        return False
    mmap_threshold, trim_threshold = -3, -1  # the option numbers in malloc.h
    # older glibc allows 32 MiB at most for the first
    kept = any(mallopt(mmap_threshold, size) for size in (2**31 - 1, 2**25))
    return kept and bool(mallopt(trim_threshold, 2**31 - 1))
