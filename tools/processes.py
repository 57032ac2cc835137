"""Processes that a tool starts and may have to end."""

import os
import signal
import subprocess

PATIENCE = 5  # seconds for a process to end what it has begun


def stop(process: subprocess.Popen) -> None:
    """Ends a process; asked first, so that it takes along what it has started, such as a kernel."""
    process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
