"""What a run keeps next to its output until that is complete: the encoded text, and the state to
resume from. Chapter: `book/workshop/engine`.
"""

import argparse
import filecmp
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list
from filelock import FileLock, Timeout
from torch import nn

from spanbert_tutorial.commands.options import changed
from spanbert_tutorial.engine.files import new_parents, whole_folder, writing
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots, checksum, fingerprint
from spanbert_tutorial.errors import NoRoom, require
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text, reopen_text
from spanbert_tutorial.text.corpora import Titles, corpus_files
from spanbert_tutorial.text.lines import lines_of, read_text, visible

TEXT_FACTS = "asked.json"  # in the folder of an encoded text


@contextmanager
def run_state(output: str, resume: bool) -> Iterator[Path | None]:
    """The folder next to `output` in which a run keeps its state until `output` is complete; None
    if a stopped run had already finished. All processes follow what the first one finds.

    Whatever stops the code inside, a state with a snapshot is kept, and Ctrl-C, a full disk and a
    divergence have a note on how to go on; a state without one is removed, if it was made here.
    Raises InputError, in the first process, for an output that exists or cannot be made, for a run
    that is still going, for a stopped one without `resume`, and for `resume` without a stopped one.
    """
    state = Path(output).parent / f"{Path(output).name}.training"
    earlier, first = os.path.lexists(state), processes().is_main_process
    lock = FileLock(state / "lock")  # the system releases that of a killed run
    if first and earlier:
        hold(lock)
    # A run killed at the very end left both; metrics that differ belong to another run.
    written, rest = Path(output, "metrics.jsonl"), state / "metrics.jsonl"
    complete = first and resume and written.is_file() and rest.is_file()
    complete = complete and filecmp.cmp(written, rest, shallow=False)
    if broadcast_object_list([complete])[0]:
        if first:
            lock.release()
            remove_state(state)
            print(f"The stopped run had already finished: {output} is complete.")
        yield None
        return

    if first:
        check_output(output)
        require(earlier or not resume, f"there is no stopped run in {state}: leave out --resume.")
        told = f"{state} holds a stopped run: continue it with --resume, or remove that folder."
        require(resume or not earlier, told)
        if not resume:
            check_output(state)

    def has_snapshot() -> bool:
        return any(state.glob("snapshots/step-*[0-9]"))

    with new_parents(state):
        if first and not earlier:
            state.mkdir(exist_ok=True)
            hold(lock)
        try:
            yield state
        except (KeyboardInterrupt, NoRoom, FloatingPointError) as stop:
            diverged = isinstance(stop, FloatingPointError)
            mend = "continue with the same command and --resume"
            if has_snapshot():  # `main` prints the note
                stop.add_note("start over with another --output" if diverged else mend)
            raise
        finally:
            lock.release()  # first, or Windows could not remove its file
            if first and not earlier and not has_snapshot():
                shutil.rmtree(state, ignore_errors=True)  # nothing to resume from
    if first:
        remove_state(state)


def hold(lock: FileLock) -> None:
    """Takes a lock, where the file system knows locks. Raises InputError if another run has it."""
    try:
        lock.acquire(timeout=0)
    except (OSError, NotImplementedError) as error:
        told = f"a run is still writing in {Path(lock.lock_file).parent}: wait for it"
        require(not isinstance(error, Timeout), f"{told}, or give another --output.")


def remove_state(state: Path) -> None:
    """Removes the large parts first and the metrics last: they tell whose state it is."""
    for part in ("snapshots", "text", "."):
        shutil.rmtree(state / part, ignore_errors=True)


def snapshots_of(state: Path, facts: Mapping[str, Any], start: nn.Module | None) -> Snapshots:
    """The snapshots of a run. facts: what must not change when it is resumed, beside the weights to
    start from, the arithmetic and the number of processes. Raises InputError if something did."""
    known = {
        "start": fingerprint(start) if start else "new weights",
        "arithmetic": precision(),
        "processes": processes().num_processes,
    }
    snapshots = Snapshots(state / "snapshots", {**facts, **known})
    snapshots.check()
    return snapshots


def encoded_text(options: argparse.Namespace, folder: Path) -> EncodedText:
    """The text of a run, read and encoded by the first process into a new `folder`, completely or
    not at all; of a run that goes on, what its earlier part encoded. Raises InputError if the
    options describe another text than that."""
    if processes().is_main_process:
        titles, corpus = read_titles(options.leave_out), options.corpus
        vocabulary = options.vocabulary or options.init_from
        learned = not vocabulary and corpus != "almanac"
        told = "--vocab-size is for learning a vocabulary, and here one is read: leave it out."
        require(learned or not changed(options, "vocab-size"), told)
        # what the encoded text depends on: of files their content, wherever they lie
        facts = [corpus, vocabulary, options.vocab_size, options.held_out_every, sorted(titles)]
        if corpus != "almanac" and Path(corpus).exists():
            facts[0] = {file.name: checksum(file) for file in corpus_files(corpus)}
        if vocabulary and Path(vocabulary).is_file():
            facts[1] = checksum(Path(vocabulary))
        asked = json.dumps(facts).encode()
        if folder.exists():
            require(
                (folder / TEXT_FACTS).read_bytes() == asked,
                f"the stopped run in {folder.parent} started with a different text: give the same "
                "options and files, or remove that folder.",
            )
        else:
            print(f"Reading and encoding {corpus} ...", flush=True)
            with writing(f"the encoded text {folder}"), whole_folder(folder) as part:
                how = vocabulary, options.vocab_size, titles, options.held_out_every
                open_text(corpus, part, *how)
                (part / TEXT_FACTS).write_bytes(asked)
            if titles:
                found = f"{len(titles.skipped):,} of the {len(titles):,} titles"
                print(f"Left out: {found} in {options.leave_out} were found.")
    processes().wait_for_everyone()
    return reopen_text(folder)


def read_titles(path: str | None) -> Titles:
    """The titles in a file, one per line; none without a file."""
    text = "" if path is None else read_text(path, "a text file with one title per line")
    return Titles(filter(visible, lines_of(text)))
