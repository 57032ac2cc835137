"""What a run keeps beside its output until that is whole: the encoded text, and the state to go on from. Chapter:
`book/spanbert/pretraining_spanbert`.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spanbert_tutorial.errors import InputError, NoRoom


@contextmanager
def kept(state: Path, main: bool) -> Iterator[None]:
    """Whatever stops what is inside, a state with a snapshot stays, and the message says how to go on; a state without
    one goes, if it was made here."""
    earlier = state.exists()

    def snapshot() -> bool:
        return any(state.glob("snapshots/step-*[0-9]"))

    try:
        yield
    except KeyboardInterrupt as stop:
        if snapshot() and not str(stop):
            raise KeyboardInterrupt("Stopped") from None  # the command line adds how to go on
        raise
    except NoRoom as error:
        if snapshot():
            raise NoRoom(f"{error} What is trained is kept in {state}: go on with --resume.") from None
        raise
    finally:
        if main and not earlier and not snapshot():
            shutil.rmtree(state, ignore_errors=True)  # nothing to go on with


def check_apart(output: Path, corpus: str) -> None:
    """Inside the corpus, the files of the run would be read as text by the next one."""
    folder = Path(corpus)
    if folder.is_dir() and corpus != "almanac" and output.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"the output {output} lies inside the corpus {corpus}: give another --output.")


def finished(output: Path, state: Path) -> bool:
    """A run killed in its last act, when its checkpoint was in place and the state was being removed: removes the rest.
    Else they never stand side by side; figures of another run say that somebody put something else there."""
    written, rest = output / "metrics.jsonl", state / "metrics.jsonl"
    same = rest.is_file() and written.is_file() and rest.read_bytes() == written.read_bytes()
    empty = written.is_file() and state.is_dir() and not any(state.iterdir())
    if not (same or empty):
        return False
    remove_state(state)
    print(f"The stopped run was at its end: {output} is whole.")
    return True


def remove_state(state: Path) -> None:
    """What is large goes first, the figures last: they tell `finished` whose state it is."""
    for part in ("snapshots", "text", "."):
        shutil.rmtree(state / part, ignore_errors=True)


def check_state(state: Path, resume: bool) -> None:
    """A stopped run is neither overwritten nor silently continued, and --resume needs one."""
    if resume and not state.exists():
        raise InputError(f"there is no stopped run in {state}: leave out --resume, or give the --output of then.")
    if not resume and state.exists():
        raise InputError(f"{state} holds a stopped run: go on with --resume, or remove that folder to start anew.")


def options_text(options: argparse.Namespace, folder: Path):
    """The encoded text of a run: of its earlier part, or read anew by the first process."""
    from spanbert_tutorial import runs
    from spanbert_tutorial.engine.loop import processes

    if processes().is_main_process and folder.exists():
        check_asked(folder, asked(options))
    elif processes().is_main_process:
        print(f"Reading and encoding {options.corpus} ...", flush=True)
        part, titles = folder.with_suffix(".part"), read_titles(options.leave_out)
        runs.open_text(options.corpus, part, options.vocabulary or options.init_from, options.vocab_size, titles)
        settle(part, folder, asked(options))
        if titles:
            print(f"Left out: {len(titles.met):,} of the {len(titles):,} titles in {options.leave_out} were met.")
    processes().wait_for_everyone()
    return runs.reopen_text(folder)


def settle(part: Path, folder: Path, facts: dict[str, str | int]) -> None:
    """The encoded text in `part` moves to `folder`: whole from here on, or not there, also after a power cut."""
    from spanbert_tutorial.engine.snapshots import force_to_disk

    try:
        (part / "asked.json").write_text(json.dumps(facts), encoding="utf-8")
        for path in [*part.rglob("*"), part]:
            force_to_disk(path)
        os.replace(part, folder)
        force_to_disk(folder.parent)
    except OSError as error:
        told = f"the encoded text cannot be kept in {folder} ({error})"
        raise NoRoom(f"{told}: make room, or give another --output.") from error


def asked(options: argparse.Namespace) -> dict[str, str | int]:
    """What the encoded text depends on. content: of the files of the corpus, "" where they are none, gone, or cannot
    be read any more."""
    from spanbert_tutorial.corpora import corpus_files
    from spanbert_tutorial.engine.snapshots import checksum

    try:
        files = [] if options.corpus == "almanac" else corpus_files(options.corpus)
        content = " ".join(f"{file.name} {checksum(file)}" for file in files)
    except (InputError, OSError):
        content = ""
    vocabulary = options.vocabulary or options.init_from or "its own"
    if Path(vocabulary).is_file():
        vocabulary += f" {checksum(Path(vocabulary))}"
    facts = {"corpus": options.corpus, "vocabulary": vocabulary, "vocab-size": options.vocab_size}
    return {**facts, "leave-out": " | ".join(sorted(read_titles(options.leave_out))), "content": content}


def check_asked(folder: Path, now: dict[str, str | int]) -> None:
    """A stopped run goes on with the text that it began with, and says so when another is asked for."""
    try:
        before = json.loads((folder / "asked.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    if "" in (before.get("content"), now["content"]):  # of then or now it is not known
        before["content"] = now["content"]
    changed = [name for name, value in now.items() if before.get(name) != value]
    if changed:
        raise InputError(f"the stopped run in {folder.parent} began with another text (changed: {', '.join(changed)}): "
                         "give what was given then, or remove that folder to start anew.")


class Titles(frozenset):
    """Titles of documents, and `met`: those that were asked for and are among them."""

    def __init__(self, *_: object):
        self.met: set[str] = set()

    def __contains__(self, title: object) -> bool:
        found = super().__contains__(title)
        self.met |= {title} if found else set()
        return found


def read_titles(path: str | None) -> Titles:
    """The titles in a file, one a line."""
    if path is None:
        return Titles()
    try:
        return Titles(Path(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"the titles in {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a text file, one title a line.") from None
