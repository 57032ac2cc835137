"""Files: where the data of this project lie, and writing that leaves whole files or none.

What is written goes into a hidden file or folder beside its place, is forced to the disk and
renamed as the last step: a reader, or a run that comes after a power cut, meets what was there
before or all of the new.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

PACKAGE = Path(__file__).resolve().parents[1]


def data_path(*parts: str) -> Path:
    """Path of a file or folder under `data/` (beside the package in a clone, inside it in an
    installed wheel), e.g. `data_path("almanac", "documents.jsonl.xz")`.

    Raises FileNotFoundError when it exists in neither place.
    """
    places = [PACKAGE / "data", PACKAGE.parent / "data"]
    for place in places:
        if place.joinpath(*parts).exists():
            return place.joinpath(*parts)
    wanted = "/".join(parts)
    raise FileNotFoundError(
        f"{wanted} is neither in {places[0]} nor in {places[1]}: reinstall the package."
    )


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file in UTF-8, whole or not at all. Raises OSError when that cannot be done."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: object) -> None:
    """Writes JSON, whole or not at all. Raises OSError when that cannot be done."""
    write_text(path, json.dumps(content, indent=1) + "\n")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """An empty file beside `path` to write to; it becomes `path` at the end, and goes when
    something fails."""
    with becoming(Path(path)) as part:
        part.open("xb").close()
        yield part


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A new folder beside `folder` to write into; it becomes `folder` at the end, and goes when
    something fails."""
    with becoming(Path(folder)) as part:
        part.mkdir()
        yield part


@contextmanager
def becoming(path: Path) -> Iterator[Path]:
    """A place beside `path`, for a file or folder that becomes `path` at the end. When something
    fails it goes, and so do the folders that were made for it."""
    with new_parents(path):
        part = place_beside(path)
        try:
            yield part
            put_in_place(part, path)
            remove_left_parts(path)
        finally:
            remove(part)


@contextmanager
def new_parents(path: Path) -> Iterator[None]:
    """The folders above `path` are there; when something fails those that were made, and are empty,
    go again."""
    made = [folder for folder in path.parents if not os.path.lexists(folder)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        remove_empty(made)
        raise


def remove_empty(folders: list[Path]) -> None:
    """Removes the folders, the innermost first, as far as they are there and empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def try_place(path: Path) -> None:
    """Raises OSError where nothing called `path` could be made: no right, no room, a name that is
    too long. Leaves nothing."""
    parents = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    with tempfile.TemporaryDirectory(dir=(parents or [path])[-1].parent) as trial:
        Path(trial, *(folder.name for folder in reversed(parents))).mkdir(
            parents=True, exist_ok=True
        )


def put_in_place(part: Path, target: Path) -> None:
    """The file or folder `part` becomes `target`. All of it is on the disk before, the new name
    after this."""
    for path in [*part.rglob("*"), part]:
        force_to_disk(path)
    os.replace(part, target)
    with suppress(
        OSError
    ):  # it is in place, whatever becomes of the name in a power cut: no reason to say otherwise
        force_to_disk(target.parent)


def force_to_disk(path: Path) -> None:
    """A file or folder survives a power cut after this."""
    if os.name == "nt" and path.is_dir():
        return  # Windows opens no folders
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def place_beside(path: Path) -> Path:
    """Where something that becomes `path` is written. Nobody else has such a name, and it fits
    beside any other."""
    return path.parent / f"{own_names(path)}{uuid4().hex}.part"


def own_names(path: Path) -> str:
    """What the names of the parts of `path` begin with."""
    return f".spanbert-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}-"


def remove_left_parts(path: Path) -> None:
    """What killed processes have left of earlier tries goes."""
    for part in path.parent.glob(f"{own_names(path)}*.part"):
        remove(part)


def remove(path: Path) -> None:
    """A file or a folder goes, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except (
        OSError
    ):  # such as a parent that is a file: what could not be written there has been said already
        pass
