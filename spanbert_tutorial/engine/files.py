"""Files: where the project's data are, and writing that leaves complete files or none. Chapter:
`book/workshop/engine`.

Everything is first written to a hidden folder next to its target, forced to the disk, and renamed
as the last step. A reader, or a run after a power cut, finds the old content or all of the new.
"""

import gzip
import hashlib
import json
import lzma
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO

from safetensors import SafetensorError

from spanbert_tutorial.errors import NoRoom

OPENERS: dict[str, Callable[..., IO]] = {"": open, ".xz": lzma.open, ".gz": gzip.open}
PACKAGE = Path(__file__).resolve().parents[1]


def data_path(*parts: str) -> Path:
    """Path of a file or folder under `data/`, e.g. `data_path("almanac", "documents.jsonl.xz")`.
    In a clone, `data/` is next to the package, in an installed wheel inside it. Raises
    FileNotFoundError if neither has it."""
    places = [Path(folder, "data", *parts) for folder in (PACKAGE, PACKAGE.parent)]
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"neither {places[0]} nor {places[1]} is there: reinstall the package.")


@contextmanager
def writing(what: object, mend: str = "make room, or give another --output") -> Iterator[None]:
    """A disk that is full or may not be written to becomes one sentence, a NoRoom."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise NoRoom(f"{what} cannot be written ({error}): {mend}.") from error


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file in UTF-8, also packed (.xz, .gz), whole or not at all. Raises OSError."""
    opener = OPENERS.get(Path(path).suffix.lower(), open)
    with whole_file(path) as part, opener(part, "wt", encoding="utf-8") as file:
        file.write(text)


def write_json(path: str | Path, content: object) -> None:
    """Writes JSON, completely or not at all. Raises OSError if that fails."""
    write_text(path, json.dumps(content, indent=1) + "\n")


@contextmanager
def whole_file(path: str | Path, folder: bool = False) -> Iterator[Path]:
    """An empty file (or `folder`) to write to. At the end it becomes `path`; if something fails it
    is removed, with the folders that were made for it."""
    path = Path(path)
    prefix = hidden_prefix(path)
    with new_parents(path):
        # those of killed processes: a path has one writer at a time
        for left in path.parent.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent) as beside:
            part = Path(beside, path.name)
            part.mkdir() if folder else part.touch()
            yield part
            for inside in [*part.rglob("*"), part]:
                force_to_disk(inside)
            os.replace(part, path)
        with suppress(OSError):  # it is complete, even if a power cut could still undo its name
            force_to_disk(path.parent)


def hidden_prefix(path: Path) -> str:
    """How the names of folders begin in which `path` is written. A hash, because its own name may
    have the maximum length."""
    return f".spanbert-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


def whole_folder(folder: str | Path) -> AbstractContextManager[Path]:
    """As `whole_file`, for a folder."""
    return whole_file(folder, folder=True)


@contextmanager
def new_parents(path: Path) -> Iterator[None]:
    """Makes the folders above `path`; if something fails, those that were made and are empty are
    removed again."""
    made = [folder for folder in path.parents if not os.path.lexists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


def force_to_disk(path: Path) -> None:
    """Forces a file or folder to the disk, so that it survives a power cut."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
