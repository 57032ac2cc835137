"""What each of two processes runs in `test_processes`: it trains, is told to stop, and goes on."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import torch
from toys import data_of, model_of

from spanbert_tutorial.engine import device
from spanbert_tutorial.engine.snapshots import Snapshots, long_run
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.pretraining.train import TrainingConfig, train

NAME = "span+sbo+nsp"


def trained(folder: Path):
    """Steps of two batches of blocks of like length, as the larger sizes train."""
    model = model_of(NAME)
    batches = data_of(Objective.named(NAME), by_length=True).batches(np.random.default_rng(1))
    with long_run(batches, Snapshots(folder / "snapshots")) as (stream, hooks):
        return model, train(model, stream, TrainingConfig(6, 1e-2, 2, accumulate=2), hooks)


def main(folder: Path) -> None:
    """Left alone; then stopped and gone on with. The second process alone finds a snapshot due at
    step 2, and is told to stop at step 4."""
    from accelerate import PartialState

    state = PartialState(cpu=True)
    device.precision = lambda: "no"
    Snapshots.due = lambda self: False
    model, history = trained(folder / "two")
    if state.is_main_process:
        result = {"losses": history.losses, "steps": history.steps}
        (folder / "result.json").write_text(json.dumps(result))
        torch.save(model.state_dict(), folder / "weights.pt")
    seen = []

    def due(self) -> bool:
        seen.append(1)
        if state.process_index == 1 and len(seen) == 4:
            os.kill(os.getpid(), signal.SIGINT)  # met at the end of the next step
        return state.process_index == 1 and len(seen) == 2

    Snapshots.due = due
    try:
        trained(folder / "stop")
    except KeyboardInterrupt as stopped:
        kept = [path.name for path in (folder / "stop" / "snapshots").iterdir()]
        # one write, so that the two processes cannot mix their lines
        print(f"process {state.process_index}: {stopped} {kept}\n", end="", flush=True)
    state.wait_for_everyone()
    again, _ = trained(folder / "stop")
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, model.state_dict()[name]), name
    ends = sum(weight.double().abs().sum().item() for weight in again.parameters())
    print(f"process {state.process_index} ends with {ends}\n", end="", flush=True)
