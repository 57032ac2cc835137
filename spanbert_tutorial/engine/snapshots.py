"""Snapshots of a run, so that a stopped one goes on bit for bit. Chapter:
`book/spanbert/pretraining_spanbert`.

A snapshot is written into a folder of its own, forced to the disk, and renamed as the last step: a
reader, or a run that comes after a power cut, meets a whole snapshot or none. Only then is the one
before it removed. It holds tensors and JSON only (`states`): going on runs no code of a file.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from spanbert_tutorial.engine.files import put_in_place
from spanbert_tutorial.engine.processes import FAILURES, fail_together, processes
from spanbert_tutorial.engine.states import (
    random_states,
    read_states,
    set_random_states,
    write_states,
)
from spanbert_tutorial.errors import InputError, NoRoom, parse_json

EVERY = 120.0  # seconds between two snapshots
LIST = "snapshot.json"  # what the snapshot holds, with sizes and checksums
# How a file tells that it holds something else.
UNREADABLE = (
    OSError,
    SafetensorError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RuntimeError,
    IndexError,
)


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(model: nn.Module) -> str:
    """SHA-256 of all weights of a model in float32, in hexadecimal."""
    digest = hashlib.sha256()
    for weight in model.state_dict().values():
        digest.update(weight.detach().cpu().float().contiguous().numpy())
    return digest.hexdigest()


def machine() -> str:
    """On what the last bits of a run's sums may depend beside its facts."""
    device = (
        torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else torch.backends.cpu.get_cpu_capability()
    )
    return f"torch {torch.__version__} on {device}, threads: {torch.get_num_threads()}"


def random_file() -> str:
    """Name of the file of this process's random states."""
    return f"random_{processes().process_index}.safetensors"


def whole(path: Path, wanted: str) -> bool:
    """Whether a file is there with the checksum of then."""
    return path.is_file() and checksum(path) == wanted


class Snapshots:
    """The snapshots of one run in `folder`. facts: what must not change between parts of a run
    (settings, text).

    every: seconds between two snapshots; None means `EVERY`.
    """

    def __init__(
        self,
        folder: str | Path,
        facts: Mapping[str, str | int | float | bool],
        every: float | None = None,
    ):
        self.folder = Path(folder)
        self.facts = dict(facts)
        self.every = EVERY if every is None else every
        self.written = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self.written >= self.every

    def newest(self) -> Path | None:
        """The last whole snapshot; what a stopped writer left is passed over."""
        return max(self.folder.glob("step-*[0-9]"), default=None)

    def save(self, parts: Mapping[str, object], step: int) -> None:
        """Writes a snapshot of the parts, each with a `state_dict`, and of the random states of all
        processes. Raises NoRoom when that cannot be done."""
        before = self.newest()
        target = self.folder / f"step-{step:09d}"
        if target != before:
            part = target.with_suffix(
                ".part"
            )  # the same in all processes: each writes its random states
            try:
                for work in (self._empty, self._write, self._finish):
                    fail_together(partial(work, parts, part))
            except FAILURES as error:
                shutil.rmtree(part, ignore_errors=True)  # it takes the room that is lacking
                kept = (
                    f"the last whole snapshot is {before.name}"
                    if before
                    else "there is no whole snapshot yet"
                )
                raise NoRoom(
                    f"no snapshot of step {step} can be written to {self.folder} ({error}): make "
                    f"room, or "
                    f"allow writing there; {kept}."
                ) from error
        self.written = time.monotonic()

    def _empty(self, parts: Mapping[str, object], part: Path) -> None:
        if processes().is_main_process:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)

    def _write(self, parts: Mapping[str, object], part: Path) -> None:
        if processes().is_main_process:
            write_states(part, {name: one.state_dict() for name, one in parts.items()})
        save_file(random_states(), part / random_file())

    def _finish(self, parts: Mapping[str, object], part: Path) -> None:
        if not processes().is_main_process:
            return
        files = sorted(path for path in part.iterdir())
        listed = {
            path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)} for path in files
        }
        content = {"facts": self.facts, "machine": machine(), "files": listed}
        (part / LIST).write_text(json.dumps(content, indent=1), encoding="utf-8")
        target = part.with_suffix("")
        put_in_place(part, target)
        self._tidy(target)

    def _tidy(self, keep: Path) -> None:
        """Removes earlier snapshots, and what killed writers left."""
        for path in self.folder.glob("step-*"):
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)

    def check(self) -> None:
        """Raises InputError as `load` does, before anything is made of text or weights."""
        if newest := self.newest():
            self._check(newest)

    def load(self, parts: Mapping[str, object]) -> bool:
        """Brings the parts, each with a `load_state_dict`, and the random states to the newest
        snapshot; False when there is none.

        Raises InputError for a snapshot of other settings or another text, and for one that was
        changed or cut off.
        """
        newest = self.newest()
        if newest is None:
            return False
        before = self._check(newest)
        if processes().is_main_process:
            self._tidy(newest)
            if before != machine():
                told = f"the part before ran with {before}, this one with {machine()}"
                print(f"Goes on, but not bit for bit: {told}.", flush=True)
        try:
            states = read_states(newest)
            for name, one in parts.items():
                one.load_state_dict(states[name])
            set_random_states(load_file(newest / random_file()))
        except UNREADABLE as error:
            raise InputError(
                f"{newest} holds no state that loads here ({type(error).__name__}): go on with the "
                "version of then, or remove the run's folder and start anew."
            ) from error
        return True

    def _check(self, snapshot: Path) -> str:
        """Raises InputError when the snapshot is broken or of another run; returns its machine."""
        try:
            listed = parse_json((snapshot / LIST).read_text(encoding="utf-8"))
            was = dict(listed["facts"])
            files = {name: file["sha256"] for name, file in listed["files"].items()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            was = {}
            files = {LIST: ""}
        broken = [name for name, wanted in files.items() if not whole(snapshot / name, wanted)]
        if broken:
            raise InputError(
                f"{snapshot} is not as it was written ({', '.join(broken)}): restore it from a "
                f"copy, or "
                "remove the run's folder and start anew."
            )
        if unknown := [name for name in self.facts if name not in was]:
            raise InputError(
                f"the run in {self.folder} was begun with another version of this package, which "
                f"did not "
                f"keep {', '.join(unknown)}: finish it with that one, or start anew."
            )
        changed = [name for name, value in self.facts.items() if was[name] != value]
        if changed:
            how = ", ".join(
                f"{name} holds something else"
                if "." in name
                else f"{name} was {was[name]} and is {self.facts[name]}"
                for name in changed
            )
            raise InputError(
                f"the run in {self.folder} began otherwise ({how}): give the same, or another "
                f"--output."
            )
        return listed.get("machine", "an unknown machine")
