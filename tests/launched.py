"""Programs in processes of their own: in one or in two, to their end or until somebody stops them.
They part from a process that has imported much and computed nothing: an import takes seconds."""

import json
import multiprocessing
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from spanbert_tutorial.engine import device, snapshots

PROCESSES = multiprocessing.get_context("spawn" if os.name == "nt" else "forkserver")
# torch imports the last with the first optimizer
MUCH = ["spanbert_tutorial.commands.pretrain", "spanbert_tutorial.commands.tasks", "torch._dynamo"]
PROCESSES.set_forkserver_preload([*MUCH, "accelerate.commands.launch"])
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}


def command(*words: str) -> int:
    """The command as it is, but in float32, and with a snapshot after every step."""
    from spanbert_tutorial.__main__ import main

    device.precision, snapshots.EVERY = lambda: "no", 0
    return main([*words])


def module(name: str, *words: str) -> None:
    """`python -m`."""
    sys.argv = [name, *words]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def inside(said: Path, environment: dict[str, str], call: Callable, words: tuple) -> None:
    """What the new process does; what it says is in a file."""
    os.environ |= ON_THE_CPU | environment
    with said.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if os.name != "nt":
        os.setsid()
    sys.exit(call(*words))


def metrics(folder: Path, *without: str) -> list[dict]:
    """The figures of a run, without its seconds and those named."""
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    apart = {"seconds", *without}
    return [
        {k: v for k, v in json.loads(line).items() if k not in apart} for line in text.splitlines()
    ]


def started(said: Path, call: Callable, *words: str, **environment: str):
    process = PROCESSES.Process(target=inside, args=(said, environment, call, words))
    process.start()
    return process


def done_by_two(said: Path, call: Callable, *words: str) -> str:
    """What two processes say that end well."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    both = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    processes = [
        started(said, call, *words, RANK=rank, LOCAL_RANK=rank, **both) for rank in ("0", "1")
    ]
    for process in processes:
        process.join(timeout=600)
    assert [process.exitcode for process in processes] == [0, 0], said.read_text()
    return said.read_text()


def until_step(step: int, state: Path, process) -> None:
    """Waits for a snapshot of this step or a later one, or for the end."""
    wanted, end = f"step-{step:09d}", time.monotonic() + 300
    while process.is_alive() and not any(
        path.name >= wanted for path in state.glob("snapshots/step-*[0-9]")
    ):
        assert time.monotonic() < end
        time.sleep(0.002)


def stopped(said: Path, state: Path, call: Callable, *words: str, after: int = 1):
    """Ctrl-C after a snapshot in the folder; the exit code and all that was said."""
    process = started(said, call, *words)
    try:
        until_step(after, state, process)
        os.kill(process.pid, signal.SIGINT)
        process.join(timeout=120)
    finally:
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
    return process.exitcode, said.read_text()
