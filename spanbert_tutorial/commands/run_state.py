"""What a run keeps next to its output until that is complete: the encoded text, and the state to
resume from. Chapter: `book/workshop/engine`.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list
from torch import nn

from spanbert_tutorial.engine.files import new_parents, whole_folder, writing
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots, checksum, fingerprint
from spanbert_tutorial.errors import NoRoom, require
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text, reopen_text
from spanbert_tutorial.text.corpora import Titles, corpus_files
from spanbert_tutorial.text.lines import lines_of, read_text, visible

TEXT_FACTS = "asked.json"  # in the folder of an encoded text


def open_state(output: str | Path, resume: bool) -> Path | None:
    """The folder next to `output` in which the run keeps its state until `output` is complete; None
    if a stopped run had already finished. All processes follow what the first one finds.

    Raises InputError, in the first process, for an output that exists or cannot be made, for a
    stopped run without `resume`, and for `resume` without a stopped run.
    """
    state = Path(output).parent / f"{Path(output).name}.training"
    first = processes().is_main_process
    (complete,) = broadcast_object_list([first and resume and finished(Path(output), state)])
    if complete:
        return None
    if first:
        check_output(output)
        stopped = os.path.lexists(state)
        require(stopped or not resume, f"there is no stopped run in {state}: leave out --resume.")
        told = f"{state} holds a stopped run: continue it with --resume, or remove that folder."
        require(resume or not stopped, told)
        if not resume:
            check_output(state)
    return state


@contextmanager
def kept_when_stopped(state: Path) -> Iterator[None]:
    """Whatever stops the code inside, a state with a snapshot is kept, and Ctrl-C and a full disk
    have a note on how to resume; a state without one is removed, if it was made here."""
    earlier = state.exists()

    def has_snapshot() -> bool:
        return any(state.glob("snapshots/step-*[0-9]"))

    with new_parents(state):
        try:
            yield
        except (KeyboardInterrupt, NoRoom) as stop:
            if has_snapshot():
                stop.add_note("continue with the same command and --resume")  # `main` prints it
            raise
        finally:
            if processes().is_main_process and not earlier and not has_snapshot():
                shutil.rmtree(state, ignore_errors=True)  # nothing to resume from


def snapshots_of(state: Path, facts: Mapping[str, Any], start: nn.Module | None) -> Snapshots:
    """The snapshots of a run. facts: what must not change when it is resumed, beside the weights to
    start from, the arithmetic and the number of processes."""
    known = {
        "start": fingerprint(start) if start else "new weights",
        "arithmetic": precision(),
        "processes": processes().num_processes,
    }
    return Snapshots(state / "snapshots", {**facts, **known})


def finished(output: Path, state: Path) -> bool:
    """Whether the run was killed at the very end, when its checkpoint was in place; removes the
    rest. Metrics that differ belong to another run."""
    written, rest = output / "metrics.jsonl", state / "metrics.jsonl"
    known = written.is_file() and rest.is_file()
    if not known or rest.read_bytes() != written.read_bytes():
        return False
    remove_state(state)
    print(f"The stopped run had already finished: {output} is complete.")
    return True


def remove_state(state: Path) -> None:
    """Removes the large parts first and the metrics last: they tell `finished` whose state it
    is."""
    for part in ("snapshots", "text", "."):
        shutil.rmtree(state / part, ignore_errors=True)


def encoded_text(options: argparse.Namespace, folder: Path) -> EncodedText:
    """The text of a run, read and encoded by the first process into a new `folder`, completely or
    not at all; of a run that goes on, what its earlier part encoded. Raises InputError if the
    options describe another text than that."""
    if processes().is_main_process:
        asked = text_facts(options)
        if folder.exists():
            require(
                (folder / TEXT_FACTS).read_bytes() == asked,
                f"the stopped run in {folder.parent} started with a different text: give the same "
                "options and files, or remove that folder.",
            )
        else:
            print(f"Reading and encoding {options.corpus} ...", flush=True)
            titles = read_titles(options.leave_out)
            how = vocabulary_of(options), options.vocab_size, titles, options.held_out_every
            with writing(f"the encoded text {folder}"), whole_folder(folder) as part:
                open_text(options.corpus, part, *how)
                (part / TEXT_FACTS).write_bytes(asked)
            if titles:
                print(
                    f"Left out: {len(titles.skipped):,} of the {len(titles):,} titles in "
                    f"{options.leave_out} were found."
                )
    processes().wait_for_everyone()
    return reopen_text(folder)


def vocabulary_of(options: argparse.Namespace) -> str | None:
    return options.vocabulary or options.init_from


def text_facts(options: argparse.Namespace) -> bytes:
    """What the encoded text depends on, in JSON: of files their content, wherever they lie."""
    corpus, vocabulary = options.corpus, vocabulary_of(options)
    if corpus != "almanac" and Path(corpus).exists():
        corpus = {file.name: checksum(file) for file in corpus_files(corpus)}
    if vocabulary and Path(vocabulary).is_file():
        vocabulary = checksum(Path(vocabulary))
    titles = sorted(read_titles(options.leave_out))
    facts = corpus, vocabulary, options.vocab_size, options.held_out_every, titles
    return json.dumps(facts).encode()


def read_titles(path: str | None) -> Titles:
    """The titles in a file, one per line; none without a file."""
    text = "" if path is None else read_text(path, "a text file with one title per line")
    return Titles(filter(visible, lines_of(text)))
