"""The harness of all experiments: conditions × seeds, kept in a table that survives a stop.

An experiment is a module of `research.experiments`, named like its results, with

- `ARMS`, the conditions, in order (a tuple of texts, or a mapping that says what each is; a condition
  of several values is a tuple); `SEEDS`, how many seeds unless told; `ONCE`, conditions that are run
  with the first seed only;
- `ARM`, where one value of a condition is a task, which goes into the measure: the values' names;
- `SETTINGS`, what else a row depends on, by name; all of it is compared before a file goes on;
- `one(condition, seed, settings, *given)`, which trains and measures, and returns its figures, nested
  by name; without `ARMS` it is `one(seed, settings, *given)`;
- `FINE_TUNING = True` where the seed is that of a fine-tuning, of one and the same pre-training;
- if its text is not the almanac: `prepare(folder, settings, **inputs)`, which returns facts about the
  data, compared as the settings are, and what `one` is given;
- `beside(settings, *given)`, what has no seed, such as baselines;
- `place(path)`, where a figure's names hold a condition: (condition, the other names), or None.

Where nothing is repeated there is only `content(folder, **inputs)`, which returns all figures.

`NAME.csv` has one row a measured value (`COLUMNS`; what does not apply is empty), `NAME.settings.json`
beside it the command, versions, settings, and which runs are done. Seeds are paired: with the same
seed all conditions start from the same weights and read the same text, as far as they can.
"""

import csv
import hashlib
import io
import json
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import torch

from spanbert_tutorial.engine.files import whole_file, write_json
from spanbert_tutorial.engine.history import History
from spanbert_tutorial.engine.processes import precision
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.encoded_text import EncodedText, open_text
from spanbert_tutorial.pretraining.presets import Run

COLUMNS = ("condition", "run", "fine_tuning", "questions", "step", "measure", "value")
CURVE_EVERY = 25  # steps averaged into one point of a stored loss curve
CURVES = {"curve_every": CURVE_EVERY}  # for the settings of an experiment that stores curves


# --- running ------------------------------------------------------------------------


def run(
    experiment: ModuleType,
    output: Path,
    seeds: int | None = None,
    steps: int | None = None,
    settings: Mapping | None = None,
    **inputs: Path,
) -> None:
    """Runs what `output`, a .csv file, does not hold yet. Both files are written after each run.

    steps: at most so many in each pre-training run, for a trial. Raises InputError for an output that
    holds rows of other settings or data.
    """
    name = experiment.__name__.split(".")[-1]
    for option, number in {"seeds": seeds, "steps": steps}.items():
        if number is not None and (number < 1 or not hasattr(experiment, "one")):
            raise InputError(f"--{option} {number} does not fit {name}: leave it out.")
    output = Path(output)
    if output.suffix != ".csv" or output.is_dir():
        raise InputError(f"{output} is no .csv file: give one by --output.")
    beside = output.with_suffix(".settings.json")
    kept = json.loads(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    if kept.get("experiment", name) != name or output.exists() and not kept:
        raise InputError(f"{output} holds other rows than those of {name}: give another --output.")
    head = {"experiment": name, "surroundings": surroundings()}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if not hasattr(experiment, "one"):
            rows = rows_of(experiment, experiment.content(Path(folder), **inputs), {})
            write(output, rows, head)
            return
        settings = shortened(settings or experiment.SETTINGS, steps)
        facts, given = getattr(experiment, "prepare", almanac_text)(
            Path(folder), settings, **inputs
        )
        arms = getattr(experiment, "ARMS", None)
        by_name = {named(arm): arm for arm in arms or ()}
        what = {named(arm): arms[arm] for arm in arms} if isinstance(arms, Mapping) else arms
        compared = as_json(dict(settings) | facts | {"arms": what})
        for key, value in compared.items():
            if kept and kept.get(key) != value:
                raise InputError(f"{output} has rows of another {key}: give another --output.")
        rows = read(output) if kept else {}
        if not kept and hasattr(experiment, "beside"):
            rows |= rows_of(experiment, experiment.beside(settings, *given), {})
        done = kept.get("done", [])
        for condition, seed in places(experiment, experiment.SEEDS if seeds is None else seeds):
            if [condition, seed] in done:
                continue
            began = time.monotonic()
            arm = () if condition is None else (by_name[condition],)
            column = "fine_tuning" if getattr(experiment, "FINE_TUNING", False) else "run"
            results = experiment.one(*arm, seed, settings, *given)
            for found in results if isinstance(results, list) else [results]:
                rows |= rows_of(experiment, found, keys_of(experiment, arm) | {column: seed})
            done = [*done, [condition, seed]]
            write(output, rows, head | compared | {"done": done})
            print(f"{condition or name}, seed {seed}: {time.monotonic() - began:.0f} s", flush=True)


def places(experiment: ModuleType, seeds: int) -> Iterator[tuple[str | None, int]]:
    """Condition and seed of each run, seed after seed."""
    once = [named(arm) for arm in getattr(experiment, "ONCE", ())]
    arms = [named(arm) for arm in getattr(experiment, "ARMS", ())] or [None]
    for seed in range(seeds):
        yield from ((arm, seed) for arm in arms if seed == 0 or arm not in once)


def named(arm: Any) -> str:
    """A condition as the table calls it."""
    return ", ".join(map(str, arm)) if isinstance(arm, tuple) else str(arm)


def keys_of(experiment: ModuleType, arm: tuple) -> dict[str, str]:
    """Condition and task of an arm: of several values, `ARM` names the one that is the task."""
    values = arm[0] if arm and isinstance(arm[0], tuple) else arm
    names = getattr(experiment, "ARM", [""] * len(values))
    task = "".join(value for name, value in zip(names, values, strict=True) if name == "task")
    others = tuple(value for name, value in zip(names, values, strict=True) if name != "task")
    return {"condition": named(others), "task": task}


def shortened(settings: Mapping, steps: int | None) -> dict:
    """The settings with at most so many steps in each run among them. Raises InputError where there
    is none."""
    if steps is None:
        return dict(settings)
    if not any(isinstance(value, Run) for value in settings.values()):
        raise InputError("--steps is given, but this experiment trains no model: leave it out.")
    return {
        name: replace(value, steps=min(steps, value.steps)) if isinstance(value, Run) else value
        for name, value in settings.items()
    }


# --- rows ---------------------------------------------------------------------------


def rows_of(experiment: ModuleType, figures: Mapping, keys: Mapping) -> dict[tuple, object]:
    """The rows of nested figures: the first six columns → value. A figure's names make its measure;
    texts beside the figures belong to the condition, a `task` to the measure."""
    rows: dict[tuple, object] = {}
    keys = dict(keys) | {k: figures[k] for k in ("task", "fine_tuning") if k in figures}
    task = keys.get("task")
    texts = [
        v for k, v in figures.items() if isinstance(v, str) and k not in ("task", "fine_tuning")
    ]
    condition = ", ".join(filter(None, [keys.get("condition", ""), *texts]))
    for path, step, value in leaves(as_json(figures)):
        if isinstance(value, str) or "settings" in path or path[:1] == ("run",):
            continue
        own, path = getattr(experiment, "place", lambda path: None)(path) or ("", path)
        if path[0] in ("live", "start"):  # one more run, beside the rows
            own, *path = path
        path = [part for part in path if part not in ("score", "scores")]
        asked = [part.split(", ")[1] for part in path if re.fullmatch(r"questions, \d+", part)]
        path = [part.split(", ")[0] if re.fullmatch(r"questions, \d+", part) else part for part in path]  # fmt: skip
        measure = "/".join([*filter(None, [task]), *path])
        name = ", ".join(filter(None, [condition, own]))
        run, fine_tuning = keys.get("run", ""), keys.get("fine_tuning", "")
        rows[name, str(run), str(fine_tuning), "".join(asked), str(step), measure] = value
    return rows


def leaves(figures: Any, path: tuple = ()) -> Iterator[tuple[tuple, int | str, Any]]:
    """(names, step, value) of each figure. A list is a curve, of which each point is the mean of
    `CURVE_EVERY` steps where it is called so; "step 50" names a step; an interval has a low and a
    high end."""
    if isinstance(figures, Mapping):
        for name, value in figures.items():
            if name.startswith("step "):
                number = int(name.removeprefix("step "))
                yield from ((names, number, one) for names, _, one in leaves(value, path))
            else:
                yield from leaves(value, (*path, str(name)))
    elif isinstance(figures, list) and path[-1:] == ("interval",):
        yield from ((path + (end,), "", v) for end, v in zip(("low", "high"), figures, strict=True))
    elif isinstance(figures, list) and any(isinstance(value, list | dict) for value in figures):
        for number, value in enumerate(figures):
            yield from leaves(value, (*path, str(number)))
    elif isinstance(figures, list):
        every = CURVE_EVERY if any("curve" in name for name in path) else 1
        yield from ((path, (number + 1) * every, value) for number, value in enumerate(figures))
    else:
        yield path, "", figures


def read(output: Path) -> dict[tuple, object]:
    """The rows of a table."""
    with output.open(encoding="utf-8", newline="") as lines:
        return {tuple(row[:-1]): row[-1] for row in list(csv.reader(lines))[1:]}


def write(output: Path, rows: Mapping[tuple, object], settings: Mapping) -> None:
    """Writes both files, each whole or not at all."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows([*key, "" if value is None else value] for key, value in rows.items())
    with whole_file(output) as part:
        part.write_text(text.getvalue(), encoding="utf-8")
    write_json(output.with_suffix(".settings.json"), dict(settings))


# --- what experiments share ---------------------------------------------------------


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


def as_json(value: object) -> Any:
    """The value as it comes back from a file: dataclasses as dicts, tuples as lists."""
    return json.loads(json.dumps(value, default=asdict))


def curve(losses: list[float]) -> list[float]:
    """Means over every `CURVE_EVERY` steps."""
    starts = range(0, len(losses), CURVE_EVERY)
    return [round(float(np.mean(losses[start : start + CURVE_EVERY])), 4) for start in starts]


def curves(history: History) -> dict[str, list[float]]:
    """`curve` of each loss of a run, by its name."""
    return {name: curve(losses) for name, losses in history.losses.items()}


def rounded(values: Any) -> Any:
    """The same numbers, lists and dicts with four decimals; more would differ between machines."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 4) if isinstance(values, float) else values


def surroundings() -> dict[str, str | int]:
    """Versions and device."""
    packages = {name: version(name) for name in ("torch", "transformers", "numpy", "tokenizers")}
    return {
        "python": platform.python_version(),
        **packages,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
        "arithmetic": precision(),
    }
