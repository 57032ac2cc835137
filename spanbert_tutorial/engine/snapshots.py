"""Snapshots of a run, from which a stopped run resumes bit for bit. Chapter:
`book/workshop/engine`.

A snapshot is written into its own folder, forced to the disk, and renamed as the last step, so that
a reader, or a run after a power cut, finds a whole snapshot or none. Only then is the previous one
removed. It holds tensors and JSON only (`states`), so resuming runs no code from a file.
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
    Stateful,
    random_states,
    read_states,
    set_random_states,
    write_states,
)
from spanbert_tutorial.errors import InputError, NoRoom, parse_json

EVERY = 120.0  # seconds between two snapshots
LIST = "snapshot.json"  # what the snapshot holds, with sizes and checksums
# what reading a file can raise when it holds something else
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
    """What the last bits of a run's sums may depend on, besides its facts."""
    if torch.cuda.is_available():
        device = torch.cuda.get_device_name()
    else:
        device = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__} on {device}, threads: {torch.get_num_threads()}"


def random_file() -> str:
    """Name of the file of this process's random states."""
    return f"random_{processes().process_index}.safetensors"


def unchanged(path: Path, sha256: str) -> bool:
    """Whether a file exists and has this checksum."""
    return path.is_file() and checksum(path) == sha256


class Snapshots:
    """The snapshots of one run in `folder`. facts: what must stay the same when it is resumed
    (settings, text). every: seconds between two snapshots; None means `EVERY`."""

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
        """Whether it is time for the next snapshot."""
        return time.monotonic() - self.written >= self.every

    def newest(self) -> Path | None:
        """The last whole snapshot, ignoring what a killed process left half written."""
        return max(self.folder.glob("step-*[0-9]"), default=None)

    def save(self, parts: Mapping[str, Stateful], step: int) -> None:
        """Writes a snapshot of the parts and of the random states of all processes. Raises NoRoom
        when that fails."""
        before = self.newest()
        target = self.folder / f"step-{step:09d}"
        if target != before:
            # the same folder for all processes: each writes its random states
            part = target.with_suffix(".part")
            try:
                for work in (self._empty, self._write, self._finish):
                    fail_together(partial(work, parts, part))
            except FAILURES as error:
                shutil.rmtree(part, ignore_errors=True)  # it takes up the missing room
                if before:
                    kept = f"the last whole snapshot is {before.name}"
                else:
                    kept = "there is no whole snapshot yet"
                raise NoRoom(
                    f"no snapshot of step {step} can be written to {self.folder} ({error}): make "
                    f"room, or allow writing there; {kept}."
                ) from error
        self.written = time.monotonic()

    def _empty(self, parts: Mapping[str, Stateful], folder: Path) -> None:
        """Makes an empty folder to write to."""
        if processes().is_main_process:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)

    def _write(self, parts: Mapping[str, Stateful], folder: Path) -> None:
        """Writes the states; each process writes its own random states."""
        if processes().is_main_process:
            write_states(folder, {name: part.state_dict() for name, part in parts.items()})
        save_file(random_states(), folder / random_file())

    def _finish(self, parts: Mapping[str, Stateful], folder: Path) -> None:
        """Lists the files with their checksums, and gives the folder its final name."""
        if not processes().is_main_process:
            return
        files = sorted(folder.iterdir())
        listed = {
            path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)} for path in files
        }
        content = {"facts": self.facts, "machine": machine(), "files": listed}
        (folder / LIST).write_text(json.dumps(content, indent=1), encoding="utf-8")
        target = folder.with_suffix("")
        put_in_place(folder, target)
        self._tidy(target)

    def _tidy(self, keep: Path) -> None:
        """Removes earlier snapshots and what killed processes left."""
        for path in self.folder.glob("step-*"):
            if path != keep:
                shutil.rmtree(path, ignore_errors=True)

    def check(self) -> None:
        """Raises InputError as `load` does, before text or weights are read."""
        newest = self.newest()
        if newest:
            self._check(newest)

    def load(self, parts: Mapping[str, Stateful]) -> bool:
        """Restores the parts and the random states from the newest snapshot; False if there is
        none.

        Raises InputError for a snapshot of other settings or another text, and for one that was
        changed or truncated.
        """
        newest = self.newest()
        if newest is None:
            return False
        before = self._check(newest)
        if processes().is_main_process:
            self._tidy(newest)
            if before != machine():
                print(
                    "Resuming, but not bit for bit: the earlier part ran with "
                    f"{before}, this one with {machine()}.",
                    flush=True,
                )
        try:
            states = read_states(newest)
            for name, part in parts.items():
                part.load_state_dict(states[name])
            set_random_states(load_file(newest / random_file()))
        except UNREADABLE as error:
            raise InputError(
                f"{newest} holds no state that loads here ({type(error).__name__}): resume with the "
                "version that wrote it, or remove the run's folder and start over."
            ) from error
        return True

    def _check(self, snapshot: Path) -> str:
        """Raises InputError if the snapshot is broken or of another run; returns its machine."""
        try:
            listed = parse_json((snapshot / LIST).read_text(encoding="utf-8"))
            earlier = dict(listed["facts"])
            files = {name: file["sha256"] for name, file in listed["files"].items()}
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            earlier = {}
            files = {LIST: ""}
        broken = [name for name, sha256 in files.items() if not unchanged(snapshot / name, sha256)]
        if broken:
            raise InputError(
                f"{snapshot} is not as it was written ({', '.join(broken)}): restore it from a "
                "copy, or remove the run's folder and start over."
            )
        unknown = [name for name in self.facts if name not in earlier]
        if unknown:
            raise InputError(
                f"the run in {self.folder} was started with another version of this package, which "
                f"did not keep {', '.join(unknown)}: finish it with that version, or start over."
            )
        changes = [
            change(name, earlier[name], value)
            for name, value in self.facts.items()
            if earlier[name] != value
        ]
        if changes:
            raise InputError(
                f"the run in {self.folder} was started differently ({', '.join(changes)}): give the "
                "same options, or another --output."
            )
        return listed.get("machine", "an unknown machine")


def change(name: str, earlier: object, now: object) -> str:
    """How a fact has changed, for a message. A name with a dot is a file, whose checksum is the
    fact."""
    return f"{name} was changed" if "." in name else f"{name} was {earlier} and is {now}"
