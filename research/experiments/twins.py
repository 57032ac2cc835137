"""The first pair of mini models on its way: do they draw apart? Held-out losses of every part of
their pre-training. Chapter: `book/evidence/masking_and_copying`.

`--parts` is a folder with what the commands of that chapter write: `short` and `mini-start`, the
common start, and of each twin a folder for each part, `bert-mini-1`, `bert-mini-2` and so on. There
is one pre-training run of each twin. The last parts are the mini models that the book shipped
first; `first_pair_answers`, `_copying`, `_tasks` and `_made` are about them.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from spanbert_tutorial.errors import InputError

TWINS = ("bert-mini", "spanbert-mini")
START = ("short", "mini-start")
PARTS = 2


def content(folder: Path, parts: Path) -> dict:
    """The losses of every part, as its `metrics.jsonl` has them."""
    names = [*START, *(f"{twin}-{part}" for twin in TWINS for part in range(1, PARTS + 1))]
    return {"losses": {name: measured_losses(parts / name / "metrics.jsonl") for name in names}}


def measured_losses(file: Path) -> dict:
    """How long one run was, and its held-out losses: lists of as many values as there are places
    (`tokens`)."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} is not the record of a part ({error}): the commands that write it are in "
            "book/evidence/masking_and_copying."
        ) from error
    seen = [line for line in lines if "held_out_token" in line]
    last = lines[-1]
    ways = [name for name in seen[-1] if name == "tokens" or name.startswith("held_out_")]
    held_out = {name.removeprefix("held_out_"): [line[name] for line in seen] for name in ways}
    return {"steps": last["step"], "hours": round(last["seconds"] / 3600, 2), "held_out": held_out}


# --- what the chapter draws from it -------------------------------------------------


def joined(content: Mapping, names: list[str], loss: str) -> tuple[list[float], list[float]]:
    """Millions of tokens since the first of these parts began, and held-out losses. content: of the
    file."""
    places: list[float] = []
    losses: list[float] = []
    for name in names:
        held_out = content["losses"][name]["held_out"]
        before = places[-1] if places else 0.0
        places += [before + tokens / 1e6 for tokens in held_out["tokens"]]
        losses += held_out[loss]
    return places, losses


def path(content: Mapping, twin: str, loss: str) -> tuple[list[float], list[float]]:
    """Millions of tokens after the common start, which stands at 0, and held-out losses. The start
    has no loss of a second task."""
    places, losses = joined(content, [f"{twin}-{part}" for part in range(1, PARTS + 1)], loss)
    before = content["losses"][START[-1]]["held_out"].get(loss)
    return ([0.0, *places], [before[-1], *losses]) if before else (places, losses)


def lead(content: Mapping, loss: str) -> list[float]:
    """By how many nats spanbert-mini is below bert-mini at the end of each part; below 0 it is
    above."""
    bert, spanbert = (
        [content["losses"][f"{twin}-{part}"]["held_out"][loss][-1] for part in range(1, PARTS + 1)]
        for twin in TWINS
    )
    return [one - other for one, other in zip(bert, spanbert, strict=True)]
