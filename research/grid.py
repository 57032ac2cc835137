"""The harness of all experiments: arms × seeds, kept in one file that survives a stop. Chapter:
`book/spanbert/pretraining_spanbert`; how to add an experiment: README.md.

An experiment is a module of this room, named like its file of results, with

- `ARMS`, what is compared, in order; `ARM`, what a row calls it; `SEEDS`, how many seeds unless
  told; `ONCE`, arms that are run with the first seed only, controls far from all others;
- `SETTINGS`, what else a row depends on, by name: runs, numbers, lists; all of it is compared
  before a file goes on;
- `one(arm, seed, settings, *given)`, which trains and measures, and returns the figures of a row,
  ready for JSON;
- if its text is not the almanac: `prepare(folder, settings, **inputs)`, which returns facts about
  the data, ready for JSON and compared as the settings are, and what `one` is given;
- if the file says more than rows: `beside(settings, *given)`, computed once.

Without `ARMS` a row holds all arms of a seed, and it is `one(seed, settings, *given)`. Where
nothing is repeated with seeds there is only `content(folder, **inputs)`, which returns the content
of the file.

Seeds are paired: with the same seed all arms start from the same weights and read the same text, as
far as they can.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np

from research.results import row_value, surroundings
from spanbert_tutorial.engine.files import write_json
from spanbert_tutorial.errors import InputError, NoRoom, regular_file
from spanbert_tutorial.pretraining.checkpoints import check_output
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.presets import Run

NOT_COMPARED = ("command", "surroundings", "rows")  # of a file's content


# --- running ------------------------------------------------------------------------


def run(
    experiment: ModuleType,
    output: str | Path,
    seeds: int | None = None,
    steps: int | None = None,
    settings: Mapping | None = None,
    **inputs: Path,
) -> None:
    """Runs what `output` does not hold yet; it is written whole after each arm of each seed, so a
    stopped command goes on where it was.

    steps: at most so many in each pre-training run, for a trial. settings: others than the
    experiment's own. inputs: as its row in `table` names them. Raises InputError for an output that
    cannot be written, or that holds anything but rows of this experiment with the same settings and
    data.
    """
    check_numbers(experiment, seeds, steps)
    output = Path(output)
    command = command_line(experiment, seeds, steps, inputs)
    head = {"command": command, "surroundings": surroundings()}
    with TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as folder:  # an encoded text may still be open, on Windows
        if measures_once(experiment):
            check_output(output)
            keep(output, head | as_json(experiment.content(Path(folder), **inputs)))
        else:
            settings = shortened(settings or experiment.SETTINGS, steps)
            seeds = experiment.SEEDS if seeds is None else seeds
            fill(experiment, output, head, seeds, settings, Path(folder), inputs)


def fill(
    experiment: ModuleType,
    output: Path,
    head: dict,
    seeds: int,
    settings: Mapping,
    folder: Path,
    inputs: Mapping,
) -> None:
    """Adds the rows that `output` lacks. head: what the content begins with. folder: for scratch
    files."""
    kept = read_kept(output, name_of(experiment))
    prepare = getattr(experiment, "prepare", almanac_text)
    facts, given = prepare(folder, settings, **inputs)
    compared = as_json(definitions(experiment) | dict(settings) | facts)
    refuse_others(output, kept, compared)
    more = {name: kept[name] for name in kept if name not in compared and name not in NOT_COMPARED}
    if not kept and hasattr(experiment, "beside"):
        more = as_json(experiment.beside(settings, *given))
    rows = kept.get("rows", [])
    for place in missing(experiment, rows, seeds):
        rows += new_rows(experiment, place, settings, given)
        rows.sort(key=lambda row: order(experiment, row))
        keep(output, head | compared | more | {"rows": rows})


def new_rows(experiment: ModuleType, place: Mapping, settings: Mapping, given: tuple) -> list[dict]:
    """The rows of a place, mostly one."""
    began = time.monotonic()
    keys = keys_of(experiment, place)
    result = experiment.one(*place.values(), settings, *given)
    condition = ", ".join(f"{name} {value}" for name, value in keys.items())
    print(f"{condition}: {time.monotonic() - began:.0f} s", flush=True)
    rows = result if isinstance(result, list) else [result]
    return [as_json(keys | row) for row in rows]


def check_numbers(experiment: ModuleType, seeds: int | None, steps: int | None) -> None:
    """Raises InputError for numbers that are too small, or that this experiment has no use for."""
    for name, number in {"seeds": seeds, "steps": steps}.items():
        if number is not None and number < 1:
            raise InputError(f"--{name} is {number}: give a number above 0.")
        if number is not None and measures_once(experiment):
            raise InputError(
                f"--{name} is given, but {name_of(experiment)} measures only once: leave it out."
            )


def almanac_text(folder: Path, settings: Mapping) -> tuple[dict, tuple]:
    """The usual data of an experiment: facts about the almanac's text, and the text."""
    text = open_text("almanac", folder)
    return text_facts(text), (text,)


def text_facts(text: EncodedText) -> dict:
    """What tells one text, cut into tokens, from another."""
    parts = [
        part
        for corpus in (text.train, text.held_out)
        for part in (corpus.ids, corpus.sentence_ends, corpus.document_ends)
    ]
    return {
        "tokens": len(text.train.ids),
        "vocabulary": len(text.wordpiece),
        "unigram_entropy": round(text.unigram_entropy, 4),
        "fingerprint": fingerprint(text.wordpiece.vocabulary, *parts),
    }


def fingerprint(*parts: object) -> str:
    """Twelve hexadecimal digits that differ when the parts do. parts: arrays of numbers, or what
    prints itself fully, such as questions."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()[:12]


def shortened(settings: Mapping, steps: int | None) -> dict:
    """The settings with at most so many steps in each run among them. Raises InputError where there
    is none."""
    if steps is None:
        return dict(settings)
    if not any(isinstance(value, Run) for value in settings.values()):
        raise InputError(
            "--steps is given, but this experiment does no pre-training: leave it out."
        )
    return {
        name: replace(value, steps=min(steps, value.steps)) if isinstance(value, Run) else value
        for name, value in settings.items()
    }


def as_json(value: object) -> dict:
    """The value as it comes back from a file: dataclasses as dicts, tuples as lists."""
    return json.loads(json.dumps(value, default=asdict))


# --- rows and their places ----------------------------------------------------------


def name_of(experiment: ModuleType) -> str:
    """As the command and the file of results call it."""
    return experiment.__name__.split(".")[-1]


def measures_once(experiment: ModuleType) -> bool:
    """Whether it has no arms and no seeds."""
    return not hasattr(experiment, "one")


def definitions(experiment: ModuleType) -> dict:
    """What the arms are, where `ARMS` says more than their names."""
    arms = getattr(experiment, "ARMS", ())
    return {"arms": arms} if isinstance(arms, Mapping) else {}


def places(experiment: ModuleType, seeds: int) -> list[dict]:
    """What `one` is called with, seed after seed."""
    if not hasattr(experiment, "ARMS"):
        return [{"seed": seed} for seed in range(seeds)]
    once = getattr(experiment, "ONCE", ())
    return [
        {"arm": arm, "seed": seed}
        for seed in range(seeds)
        for arm in experiment.ARMS
        if seed == 0 or arm not in once
    ]


def keys_of(experiment: ModuleType, place: Mapping) -> dict:
    """How a row says its place. An arm may be a tuple of several values; `ARM` then has a name for
    each."""
    if "arm" not in place:
        return dict(place)
    names = experiment.ARM
    values = place["arm"]
    if isinstance(names, str):
        names = (names,)
        values = (values,)
    return dict(zip(names, values, strict=True)) | {"seed": place["seed"]}


def missing(experiment: ModuleType, rows: Iterable[dict], seeds: int) -> list[dict]:
    """The places that no row has."""
    done = [
        {name: row_value(row, name) for name in keys_of(experiment, places(experiment, 1)[0])}
        for row in rows
    ]
    return [place for place in places(experiment, seeds) if keys_of(experiment, place) not in done]


def order(experiment: ModuleType, row: Mapping) -> tuple[int, int]:
    """Rows stand in the order of the seeds, then of the arms, whenever they were run."""
    seed = row_value(row, "seed")
    arms = [keys_of(experiment, place) for place in places(experiment, 1)]
    own = {name: row_value(row, name) for name in arms[0]} | {"seed": 0}
    return seed, arms.index(own) if own in arms else len(arms)


# --- the file -----------------------------------------------------------------------


def command_line(
    experiment: ModuleType, seeds: int | None, steps: int | None, inputs: Mapping
) -> str:
    """The command as the file tells it, without anybody's paths."""
    words = [f"python -m research {name_of(experiment)}"]
    words += [f"--{name} {name.upper()}" for name in inputs] + ["--output FILE"]
    if not measures_once(experiment):
        words.append(f"--seeds {experiment.SEEDS if seeds is None else seeds}")
    return " ".join([*words, *([] if steps is None else [f"--steps {steps}"])])


def read_kept(output: Path, name: str) -> dict:
    """The content of an earlier, stopped command; empty where there is none. Raises InputError for
    anything else."""
    if os.path.isdir(output):
        raise InputError(f"the output {output} is a folder: give a file by --output.")
    if not os.path.lexists(output):
        check_output(output)
        return {}
    try:
        content = json.loads(regular_file(output).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or f" {name} " not in f"{content.get('command')} ":
        raise InputError(
            f"the output {output} exists and holds no rows of {name}: give another --output."
        )
    return content


def refuse_others(output: Path, kept: Mapping, compared: Mapping) -> None:
    """Raises InputError when the rows of a file have other settings or other data, naming the first
    of them."""
    for name, value in compared.items():
        if kept and kept.get(name) != value:
            reason = f"it does not say its {name}"
            if name in kept:
                reason = difference(name, kept[name], value)
            raise InputError(
                f"{output} holds rows of other settings ({reason}): give another --output."
            )


def keep(output: Path, content: dict) -> None:
    """Writes the file. Raises NoRoom, after which it still holds what was kept before."""
    try:
        write_json(output, content)
    except OSError as error:
        problem = f"the results cannot be written to {output} ({error})"
        raise NoRoom(
            f"{problem}: make room and give the same command again, or another --output."
        ) from error


def difference(name: str, there: object, here: object) -> str:
    """Where two values differ, in few words."""
    if isinstance(there, dict) and isinstance(here, dict):
        key = next(key for key in [*here, *there] if there.get(key) != here.get(key))
        return difference(f"{name}, {key}", there.get(key), here.get(key))
    texts = [json.dumps(value) for value in (there, here)]
    old, new = (text if len(text) <= 40 else "other values" for text in texts)
    return f"{name}: {old} there, {new} now"
