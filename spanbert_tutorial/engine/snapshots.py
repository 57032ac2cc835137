"""Snapshots of a run, from which a stopped run resumes bit for bit. Chapter:
`book/workshop/engine`.

A snapshot is a folder of tensors (safetensors) and JSON, so that reading one runs no code. The
previous one is removed when the new one is whole.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spanbert_tutorial.engine.device import check_weights
from spanbert_tutorial.engine.files import whole_folder, writing
from spanbert_tutorial.engine.hooks import Hook, ProgressBar, finishing_the_step
from spanbert_tutorial.engine.metrics import Metrics
from spanbert_tutorial.engine.processes import any_process, in_first_process, processes
from spanbert_tutorial.engine.stream import Stream
from spanbert_tutorial.errors import InputError, parse_json, require

EVERY = 120.0  # seconds between two snapshots
STATE, TENSORS = "state.json", "tensors.safetensors"


@contextmanager
def long_run(
    batches: Any,
    snapshots: "Snapshots | None" = None,
    reference: float | None = None,
    held_out: Callable[[], dict[str, float]] | None = None,
) -> Iterator[tuple[Stream, list[Hook]]]:
    """What a long run has around its loop: yields its batches, counted and for a card drawn ahead,
    and its hooks, a progress bar and, with `snapshots`, the file of its metrics next to them.
    Ctrl-C then finishes the step and keeps it. reference, held_out: see `ProgressBar`, `Metrics`.
    """
    stopping = finishing_the_step() if snapshots else nullcontext(lambda: False)
    bar = ProgressBar(reference)
    with closing(Stream(batches)) as stream, closing(bar), stopping as asked_to_stop:
        hooks: list[Hook] = [bar]
        if snapshots:
            metrics = Metrics(snapshots.folder.parent / "metrics.jsonl", held_out)
            snapshots.asked_to_stop, snapshots.metrics = asked_to_stop, metrics
            hooks = [metrics, snapshots, bar]
        yield stream, hooks


class Snapshots(Hook):
    """The snapshots of one run in `folder`. facts: what must stay the same when it is resumed
    (settings, text). every: seconds between two snapshots; None means `EVERY`."""

    def __init__(
        self,
        folder: str | Path,
        facts: Mapping[str, str | int | float | bool] | None = None,
        every: float | None = None,
    ):
        self.folder = Path(folder)
        self.facts = dict(facts or {})
        self.every = EVERY if every is None else every
        self.written = time.monotonic()
        self.asked_to_stop: Callable[[], bool] = lambda: False
        self.metrics: Metrics | None = None

    def due(self) -> bool:
        """Whether it is time for the next snapshot."""
        return time.monotonic() - self.written >= self.every

    def parts(self, state: Any) -> dict[str, Any]:
        """What a snapshot keeps of a run, by name."""
        names = ("model", "optimizer", "schedule", "batches", "history")
        parts = {name: getattr(state, name) for name in names}
        # the scaler is that of the loss, in fp16
        parts |= {"metrics": self.metrics, "scaler": state.optimizer.scaler}
        return {name: part for name, part in parts.items() if part is not None}

    def newest(self) -> Path | None:
        """The last whole snapshot, ignoring what a killed process left half written."""
        return max(self.folder.glob("step-*[0-9]"), default=None)

    def check(self) -> dict[str, Any]:
        """The content of the newest snapshot, {} if there is none. Raises InputError for one of
        other settings or another text, and for one that cannot be read."""
        newest = self.newest()
        if newest is None:
            return {}
        with loading(newest):
            content = read(newest)
            earlier = dict(content["facts"])
        facts = [(name, earlier.get(name), now) for name, now in self.facts.items()]
        changes = [f"{name} was {then} and is {now}" for name, then, now in facts if then != now]
        wrong = f"the run in {self.folder} was started differently ({', '.join(changes)})"
        require(not changes, f"{wrong}: give the same options, or another --output.")
        return content

    def on_start(self, state: Any) -> None:
        """Restores the run from its newest snapshot, if there is one. Raises InputError as `check`
        does, and where the snapshot does not fit the run."""
        content = self.check()
        if not content:
            return
        with loading(self.newest()):
            for name, part in self.parts(state).items():
                part.load_state_dict(content[name])
            states = content["random"][processes().process_index]
            torch.set_rng_state(states["processor"])
            if torch.cuda.is_available() and "card" in states:  # else it began on a CPU
                torch.cuda.set_rng_state(states["card"])
        earlier, now = content["machine"], machine()
        if earlier != now and processes().is_main_process:
            told = "Resuming, but not bit for bit: the earlier part ran with"
            print(f"{told} {earlier}, this one with {now}.", flush=True)

    def on_log(self, state: Any) -> None:
        """Writes a snapshot when it is due in one of the processes, and at the end. Raises
        KeyboardInterrupt after that, if one of the processes was asked to stop."""
        step, steps = state.history.done, state.config.steps
        asked = self.asked_to_stop()
        if not (any_process(asked or self.due()) or step == steps):
            return
        check_weights(state.model, step)
        content = {name: part.state_dict() for name, part in self.parts(state).items()}
        states = {"processor": torch.get_rng_state()}
        if torch.cuda.is_available():
            states["card"] = torch.cuda.get_rng_state()
        content |= {"random": gather_object([states]), "facts": self.facts, "machine": machine()}
        in_first_process(partial(self.write, content, self.folder / f"step-{step:09d}"))
        self.written = time.monotonic()
        if any_process(asked):
            raise KeyboardInterrupt(f"Stopped after step {step} of {steps}")

    def write(self, content: dict[str, Any], target: Path) -> None:
        """Writes a snapshot and removes all others. Raises NoRoom when that fails."""
        mend = "make room, or allow writing there"
        with writing(f"a snapshot in {self.folder}", mend), whole_folder(target) as part:
            save(content, part)
        for path in self.folder.iterdir():  # earlier ones, and what killed processes left
            if path != target:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def loading(snapshot: Path | None) -> Iterator[None]:
    """Whatever goes wrong inside becomes an InputError: no fresh start."""
    try:
        yield
    except Exception as error:
        what = f"{type(error).__name__}: {str(error)[:80]}"
        raise InputError(
            f"{snapshot} holds no state that loads here ({what}): restore it from a copy, resume "
            "with the version that wrote it, or remove the run's folder and start over."
        ) from error


def save(content: dict[str, Any], folder: Path) -> None:
    """Writes tensors and JSON, in which {"tensor": n} stands for the n-th. A tensor that occurs
    twice, such as the weights that heads share with the embeddings, is stored once."""
    tensors: dict[object, tuple[int, Tensor]] = {}

    def placeholder(value: object) -> dict[str, int]:
        if not isinstance(value, Tensor):
            raise TypeError(f"a {type(value).__name__} is neither a tensor nor JSON.")
        where = (value.data_ptr(), value.shape, value.stride()) if value.numel() else len(tensors)
        number, _ = tensors.setdefault(where, (len(tensors), value))
        return {"tensor": number}

    plain = json.loads(json.dumps(content, default=placeholder))
    copies = {str(n): value.detach().cpu().contiguous() for n, value in tensors.values()}
    save_file(copies, folder / TENSORS)
    plain["sha256"] = checksum(folder / TENSORS)
    (folder / STATE).write_text(json.dumps(plain), encoding="utf-8")


def read(folder: Path) -> dict[str, Any]:
    """What `save` wrote. Raises many kinds of errors where it is damaged."""
    tensors = load_file(folder / TENSORS)

    def placed(entry: dict[str, Any]) -> Any:
        if entry.keys() == {"tensor"}:
            return tensors[str(entry["tensor"])]
        # JSON has only strings for names; an optimizer numbers its weights
        return {int(k) if k.isdecimal() else k: value for k, value in entry.items()}

    content = parse_json((folder / STATE).read_text(encoding="utf-8"), object_hook=placed)
    if content["sha256"] != checksum(folder / TENSORS):
        raise ValueError(f"{TENSORS} was changed")
    return content


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
