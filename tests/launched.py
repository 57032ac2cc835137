"""Programs in processes of their own: in one or in two, to their end or until somebody stops them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ONE = [sys.executable]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
ENVIRONMENT = {
    **os.environ,
    "SPANBERT_TUTORIAL_STATIC": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "ACCELERATE_USE_CPU": "true",
    "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]),
}


def done(command: list[str]) -> str:
    """What a command prints that ends well."""
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def stopped(command: list[str], state: Path) -> tuple[int, str]:
    """Ctrl-C after the first snapshot in the folder; the exit code and all that was said."""
    said = state.with_suffix(".said")
    with said.open("w") as file:
        process = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=file, stderr=file, start_new_session=True
        )
        try:
            until = time.monotonic() + 300
            while not list(state.glob("snapshots/step-*[0-9]")) and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said.read_text()
