"""What a run keeps next to its output until that is complete: the encoded text, and the state to
resume from. Chapter: `book/workshop/engine`.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from accelerate.utils import broadcast_object_list
from torch import nn

from spanbert_tutorial.engine.files import new_parents, whole_folder, writing
from spanbert_tutorial.engine.processes import precision, processes
from spanbert_tutorial.engine.snapshots import Snapshots, checksum, fingerprint
from spanbert_tutorial.errors import InputError, NoRoom, parse_json, require
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text, reopen_text
from spanbert_tutorial.text.corpora import Titles, corpus_files
from spanbert_tutorial.text.lines import lines_of, read_text, visible

Settings = TypeVar("Settings", bound=Any)
TEXT_FACTS = "asked.json"  # next to the encoded text: the options and files that it depends on


def with_options(settings: Settings, options: argparse.Namespace) -> Settings:
    """Settings, a data class, with those that the options give; --learning-rate is the peak."""
    given = vars(options) | {"peak_learning_rate": options.learning_rate}
    names = {field.name for field in fields(settings)}
    chosen = {name: v for name, v in given.items() if name in names and v is not None}
    return replace(settings, **chosen)


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
    """Whatever stops the code inside, a state with a snapshot is kept, and the message says how to
    resume; a state without a snapshot is removed, if it was made here."""
    earlier = state.exists()

    def has_snapshot() -> bool:
        return any(state.glob("snapshots/step-*[0-9]"))

    with new_parents(state):
        try:
            yield
        except KeyboardInterrupt as stop:  # `main` adds how to resume
            raise KeyboardInterrupt(str(stop) or ("Stopped" if has_snapshot() else "")) from None
        except NoRoom as error:
            kept = f" The training so far is saved in {state}: continue with --resume."
            raise NoRoom(f"{error}{kept if has_snapshot() else ''}") from None
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


def check_apart(output: Path, corpus: str) -> None:
    """Raises InputError for an output inside the corpus: the next run would read it as text."""
    inside = Path(corpus).is_dir() and output.resolve().is_relative_to(Path(corpus).resolve())
    told = f"the output {output} is inside the corpus {corpus}: give another --output."
    require(corpus == "almanac" or not inside, told)


def finished(output: Path, state: Path) -> bool:
    """Whether the run was killed at the very end, when its checkpoint was in place and its state
    was being removed; removes the rest. Metrics that differ belong to another run."""
    written, rest = output / "metrics.jsonl", state / "metrics.jsonl"
    if not (written.is_file() and state.is_dir()):
        return False
    same = rest.is_file() and rest.read_bytes() == written.read_bytes()
    if not same and any(state.iterdir()):
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
    """The encoded text of a run: that of its earlier part, or read now by the first process."""
    if processes().is_main_process:
        if folder.exists():
            check_same_text(folder, text_facts(options))
        else:
            encode_text(options, folder)
    processes().wait_for_everyone()
    return reopen_text(folder)


def encode_text(options: argparse.Namespace, folder: Path) -> None:
    """Reads and encodes the text of a run into a new `folder`, completely or not at all."""
    print(f"Reading and encoding {options.corpus} ...", flush=True)
    titles = read_titles(options.leave_out)
    vocabulary = options.vocabulary or options.init_from
    how = vocabulary, options.vocab_size, titles, options.held_out_every
    with writing(f"the encoded text {folder}"), whole_folder(folder) as part:
        open_text(options.corpus, part, *how)
        (part / TEXT_FACTS).write_text(json.dumps(text_facts(options)), encoding="utf-8")
    if titles:
        print(
            f"Left out: {len(titles.skipped):,} of the {len(titles):,} titles in "
            f"{options.leave_out} were found."
        )


def text_facts(options: argparse.Namespace) -> dict[str, str | int]:
    """What the encoded text depends on. content: checksums of the files of the corpus, "" if it has
    none or they can no longer be read."""
    try:
        files = [] if options.corpus == "almanac" else corpus_files(options.corpus)
        content = " ".join(f"{file.name} {checksum(file)}" for file in files)
    except (InputError, OSError):
        content = ""
    vocabulary = options.vocabulary or options.init_from or "its own"
    if Path(vocabulary).is_file():
        vocabulary = checksum(Path(vocabulary))
    return {
        "corpus": options.corpus,
        "vocabulary": vocabulary,
        "vocab-size": options.vocab_size,
        "held-out-every": options.held_out_every,
        "leave-out": " | ".join(sorted(read_titles(options.leave_out))),
        "content": content,
    }


def check_same_text(folder: Path, now: dict[str, str | int]) -> None:
    """Raises InputError if the options describe another text than the stopped run started with."""
    try:
        before = dict(parse_json((folder / TEXT_FACTS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        before = {}
    if "" in (before.get("content"), now["content"]):  # then or now it is unknown
        before["content"] = now["content"]
    elif before.get("content") == now["content"]:
        before["corpus"] = now["corpus"]  # the same text in another place
    changed = [name for name, value in now.items() if before.get(name) != value]
    require(
        not changed,
        f"the stopped run in {folder.parent} started with a different text (changed: "
        f"{', '.join(changed)}): give the same options and files, or remove that folder.",
    )


def read_titles(path: str | None) -> Titles:
    """The titles in a file, one per line; none without a file."""
    text = "" if path is None else read_text(path, "a text file with one title per line")
    return Titles(filter(visible, lines_of(text)))


def write_results(output: Path, contents: Mapping[str, object]) -> None:
    """Writes a new folder of JSON files by name, completely or not at all."""
    with writing(f"the results {output}"), whole_folder(output) as folder:
        for name, content in contents.items():
            text = json.dumps(content, ensure_ascii=False, indent=1)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
