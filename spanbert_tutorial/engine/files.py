"""Files: where the data of this project lie, and writing that leaves whole files or none.

What is written goes into a hidden file or folder beside its place, is forced to the disk and renamed as the last step:
a reader, or a run that comes after a power cut, meets what was there before or all of the new.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def data_path(*parts: str) -> Path:
    """Path of a file or folder under `data/` (beside the package in a clone, inside it in an installed wheel), e.g.
    `data_path("almanac", "documents.jsonl.xz")`.

    Raises FileNotFoundError when it exists in neither place.
    """
    places = [PACKAGE / "data", PACKAGE.parent / "data"]
    for place in places:
        if place.joinpath(*parts).exists():
            return place.joinpath(*parts)
    wanted = "/".join(parts)
    raise FileNotFoundError(f"{wanted} is neither in {places[0]} nor in {places[1]}: reinstall the package.")


def write_text(path: str | Path, text: str) -> None:
    """Writes a text file in UTF-8, whole or not at all. Raises OSError when that cannot be done."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, content: object) -> None:
    """Writes JSON, whole or not at all. Raises OSError when that cannot be done."""
    write_text(path, json.dumps(content, indent=1) + "\n")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """The place beside `path` to write to; the file there becomes `path` at the end, and goes when something fails."""
    path = Path(path)
    part = place_beside(path)
    try:
        yield part
        put_in_place(part, path)
        remove_left_parts(path)
    finally:
        remove(part)


@contextmanager
def whole_folder(folder: str | Path) -> Iterator[Path]:
    """A new folder beside `folder` to write into; it becomes `folder` at the end, and goes when something fails."""
    folder = Path(folder)
    part = place_beside(folder)
    remove(part)
    try:
        part.mkdir(parents=True)
        yield part
        put_in_place(part, folder)
        remove_left_parts(folder)
    finally:
        remove(part)


def put_in_place(part: Path, target: Path) -> None:
    """The file or folder `part` becomes `target`. All of it is on the disk before, the new name after this."""
    for path in [*part.rglob("*"), part]:
        force_to_disk(path)
    os.replace(part, target)
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
    """Where this process writes what becomes `path`."""
    return path.parent / f".{path.name}.{os.getpid()}.part"


def remove_left_parts(path: Path) -> None:
    """What killed processes have left of earlier tries goes."""
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        remove(part)


def remove(path: Path) -> None:
    """A file or a folder goes, if it is there and can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:  # such as a parent that is a file: what could not be written there has been said already
        pass
