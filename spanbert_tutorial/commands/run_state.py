"""What a run keeps beside its output until that is whole: the encoded text, and the state to go on
from. Chapter: `book/spanbert/pretraining_spanbert`.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spanbert_tutorial.errors import InputError, NoRoom, parse_json, regular_file

TEXT_FACTS = "asked.json"  # beside the encoded text: what was asked for


def open_state(output: str | Path, resume: bool) -> Path | None:
    """The folder beside `output` in which the run keeps its state until `output` is whole; None
    where a stopped run was at its end already. All processes go by what the first one finds.

    Raises InputError, in the first process, for an output that is there or cannot be made, for a
    stopped run that nobody asked to go on with, and for `resume` without one.
    """
    from accelerate.utils import broadcast_object_list

    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.pretraining.checkpoints import check_output

    state = Path(output).parent / f"{Path(output).name}.training"
    first = processes().is_main_process
    (whole,) = broadcast_object_list([first and resume and finished(Path(output), state)])
    if whole:
        return None
    if first:
        check_output(output)
        check_state(state, resume)
    return state


@contextmanager
def kept_when_stopped(state: Path) -> Iterator[None]:
    """Whatever stops what is inside, a state with a snapshot stays, and the message says how to go
    on; a state without one goes, if it was made here."""
    from spanbert_tutorial.engine.files import new_parents
    from spanbert_tutorial.engine.processes import processes

    earlier = state.exists()

    def snapshot() -> bool:
        return any(state.glob("snapshots/step-*[0-9]"))

    with new_parents(state):
        try:
            yield
        except KeyboardInterrupt as stop:
            if snapshot() and not str(stop):
                raise KeyboardInterrupt("Stopped") from None  # the command line adds how to go on
            raise
        except NoRoom as error:
            if snapshot():
                raise NoRoom(
                    f"{error} What is trained is kept in {state}: go on with --resume."
                ) from None
            raise
        finally:
            if processes().is_main_process and not earlier and not snapshot():
                shutil.rmtree(state, ignore_errors=True)  # nothing to go on with


def check_apart(output: Path, corpus: str) -> None:
    """Inside the corpus, the files of the run would be read as text by the next one."""
    folder = Path(corpus)
    if (
        folder.is_dir()
        and corpus != "almanac"
        and output.resolve().is_relative_to(folder.resolve())
    ):
        raise InputError(
            f"the output {output} lies inside the corpus {corpus}: give another --output."
        )


def finished(output: Path, state: Path) -> bool:
    """A run killed in its last act, when its checkpoint was in place and the state was being
    removed: removes the rest. Else they never stand side by side; figures of another run say that
    somebody put something else there."""
    written = output / "metrics.jsonl"
    rest = state / "metrics.jsonl"
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
    from spanbert_tutorial.pretraining.checkpoints import check_output

    if resume and not os.path.lexists(state):
        raise InputError(
            f"there is no stopped run in {state}: leave out --resume, or give the --output of then."
        )
    if not resume and os.path.lexists(state):
        raise InputError(
            f"{state} holds a stopped run: go on with --resume, or remove that folder to start "
            f"anew."
        )
    if not resume:
        check_output(state)


def encoded_text(options: argparse.Namespace, folder: Path):
    """The encoded text of a run: of its earlier part, or read anew by the first process."""
    from spanbert_tutorial.engine.processes import processes
    from spanbert_tutorial.pretraining.encoded_text import reopen_text

    if processes().is_main_process:
        if folder.exists():
            check_same_text(folder, text_facts(options))
        else:
            encode_text(options, folder)
    processes().wait_for_everyone()
    return reopen_text(folder)


def encode_text(options: argparse.Namespace, folder: Path) -> None:
    """Reads and encodes the text of a run into a new `folder`, which is there whole or not at
    all."""
    from spanbert_tutorial.engine.files import whole_folder
    from spanbert_tutorial.pretraining.encoded_text import open_text

    print(f"Reading and encoding {options.corpus} ...", flush=True)
    titles = read_titles(options.leave_out)
    try:
        with whole_folder(folder) as part:
            open_text(
                options.corpus,
                part,
                options.vocabulary or options.init_from,
                options.vocab_size,
                titles,
                options.held_out_every,
            )
            (part / TEXT_FACTS).write_text(json.dumps(text_facts(options)), encoding="utf-8")
    except OSError as error:
        told = f"the encoded text cannot be kept in {folder} ({error})"
        raise NoRoom(f"{told}: make room, or give another --output.") from error
    if titles:
        print(
            f"Left out: {len(titles.met):,} of the {len(titles):,} titles in {options.leave_out} "
            f"were met."
        )


def text_facts(options: argparse.Namespace) -> dict[str, str | int]:
    """What the encoded text depends on. content: of the files of the corpus, "" where they are
    none, gone, or cannot be read any more."""
    from spanbert_tutorial.engine.snapshots import checksum
    from spanbert_tutorial.text.corpora import corpus_files

    try:
        files = [] if options.corpus == "almanac" else corpus_files(options.corpus)
        content = " ".join(f"{file.name} {checksum(file)}" for file in files)
    except (InputError, OSError):
        content = ""
    vocabulary = options.vocabulary or options.init_from or "its own"
    if Path(vocabulary).is_file():
        vocabulary += f" {checksum(Path(vocabulary))}"
    facts = {"corpus": options.corpus, "vocabulary": vocabulary, "vocab-size": options.vocab_size}
    facts |= {"held-out-every": options.held_out_every}
    return {
        **facts,
        "leave-out": " | ".join(sorted(read_titles(options.leave_out))),
        "content": content,
    }


def check_same_text(folder: Path, now: dict[str, str | int]) -> None:
    """A stopped run goes on with the text that it began with, and says so when another is asked
    for."""
    try:
        before = dict(parse_json((folder / TEXT_FACTS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        before = {}
    if "" in (before.get("content"), now["content"]):  # of then or now it is not known
        before["content"] = now["content"]
    changed = [name for name, value in now.items() if before.get(name) != value]
    if changed:
        raise InputError(
            f"the stopped run in {folder.parent} began with another text (changed: "
            f"{', '.join(changed)}): "
            "give what was given then, or remove that folder to start anew."
        )


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
        return Titles(regular_file(path).read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        wrong = f"the titles in {path} cannot be read ({error})"
        raise InputError(f"{wrong}: give a text file, one title a line.") from None
