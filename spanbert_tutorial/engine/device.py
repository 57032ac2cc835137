"""What the training loop asks of the device, in few words. Chapter: `book/workshop/engine`."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spanbert_tutorial.engine.processes import keep_freed_memory, precision, processes
from spanbert_tutorial.errors import InputError

# bf16's range needs no scaling; fp16's loss is scaled by a factor, from 2**16, that each overflow
# halves: below this, halving has not helped
SMALLEST_SCALE = 2.0**-30


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """While this is open, torch draws from `seed`; afterwards it goes on where it was."""
    with torch.random.fork_rng(range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def new_accelerator() -> Accelerator:
    processes()  # before the accelerator, which would choose the device by itself
    keep_freed_memory()
    return Accelerator(mixed_precision=precision())


def steps_between_readings() -> int:
    """After how many steps a run reads its losses: each where nothing waits for that, as on a CPU,
    else as many as a line of metrics has."""
    return 1 if processes().device.type == "cpu" else 10


def send(batch: dict[str, Tensor] | None, device: torch.device) -> dict[str, Tensor]:
    """The batch on the device. To a graphics card it goes from pinned memory, which needs no
    waiting. Raises InputError where there is none."""
    if batch is None:
        raise InputError("the batches ended before the last step: give more text or fewer steps.")
    if device.type == "cuda":
        batch = {name: v if v.is_cuda else v.pin_memory() for name, v in batch.items()}
    return {name: value.to(device, non_blocking=True) for name, value in batch.items()}


def detached(losses: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies, because a CUDA graph writes its next losses to the same memory."""
    return {name: loss.detach().clone() for name, loss in losses.items()}


def skips_overflows(accelerator: Accelerator) -> bool:
    """Whether a gradient that overflows is nothing to worry about: in fp16 its step is skipped and
    the scale of the loss halved, as long as that can help."""
    scaler = accelerator.scaler
    return scaler is not None and scaler.get_scale() > SMALLEST_SCALE


def check_weights(model: nn.Module, step: int) -> None:
    """Raises FloatingPointError when this step left weights that are not finite: its loss was
    finite, but the step itself can be too long."""
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            wrong = f"after step {step} the weights are not finite (first {name})"
            raise FloatingPointError(f"{wrong}: lower the peak learning rate.")


@contextmanager
def restored(model: nn.Module, accelerator: Accelerator) -> Iterator[None]:
    """While this is open the model is in training mode. Afterwards, whatever happens, it is in
    evaluation mode, in float32, without gradients, and on the device that it came from."""
    home = next(model.parameters()).device
    model.train()
    try:
        yield
    finally:
        accelerator.unwrap_model(model, keep_fp32_wrapper=False)
        vars(model).pop("_is_accelerate_prepared", None)  # or a second training has float32 only
        model.zero_grad()  # what an interrupted step has left
        model.eval().to(home)
