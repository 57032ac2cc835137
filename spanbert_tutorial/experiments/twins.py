"""The twins on their way: do they draw apart? Held-out losses all along, and two tasks at three points of pre-training.
Chapter: `book/workshop/shipped_models`.

`--parts` is a folder with what the commands of the cards write: `mini-start`, and of each twin a folder for each part,
`bert-mini-1`, `bert-mini-2` and so on. The common start and the first parts are fine-tuned here. The last parts are the
shipped models: their scores stand in the file of `span_tasks`. (SQuAD is asked of the last parts only, by `squad_real`:
a run there takes as long as all runs here.)

What was expected stood here before the first run: `CLAIMS`. The seeds are fine-tuning seeds: there is one pre-training
run of each twin.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from spanbert_tutorial.checkpoints import continue_from, read_vocabulary
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import span_tasks, span_tasks_coreference, span_tasks_relations
from spanbert_tutorial.experiments.grid import fingerprint
from spanbert_tutorial.experiments.results import column, rounded

TWINS, START, PARTS = ("bert-mini", "spanbert-mini"), "mini-start", 2
TASKS = {"coreference": span_tasks_coreference, "relations": span_tasks_relations}
ARM, SEEDS = ("task", "model"), 3
ARMS = tuple((task, model) for model in (START, *(f"{twin}-1" for twin in TWINS)) for task in TASKS)
CLAIMS = {"coreference": "LitBank, average F1: spanbert-mini further ahead of bert-mini after two parts than after one",
          "relations": "SemEval-2010 Task 8, F1: the same"}  # fmt: skip
SETTINGS = {"coreference": span_tasks_coreference.SETTINGS, "relations": span_tasks_relations.FINE_TUNING,
            "claims": CLAIMS}  # fmt: skip


def prepare(folder: Path, settings: Mapping, data: Path, parts: Path) -> tuple[dict, tuple[dict, Path]]:
    """Texts and sentences to train on and to score, and the folder of models. data: a folder with litbank/, gap/ and
    semeval2010-task8/."""
    groups = {task: module.parts(data) for task, module in TASKS.items()}
    counts = {task: {name: len(group) for name, group in some.items()} for task, some in groups.items()}
    prints = {task: fingerprint(*some.values()) for task, some in groups.items()}
    return {"examples": counts, "fingerprints": prints}, (groups, parts)


def beside(settings: Mapping, groups: Mapping, parts: Path) -> dict:
    """The losses of every part, as its `metrics.jsonl` has them."""
    names = [START, *(f"{twin}-{part}" for twin in TWINS for part in range(1, PARTS + 1))]
    return {"losses": {name: measured_losses(parts / name / "metrics.jsonl") for name in names}}


def measured_losses(file: Path) -> dict:
    """How long one run was, and its held-out losses: lists of as many values as there are places (`tokens`)."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is not the record of a part ({error}): the cards have the commands.") from error
    seen, last = [line for line in lines if "held_out_token" in line], lines[-1]
    ways = [name for name in seen[-1] if name == "tokens" or name.startswith("held_out_")]
    held_out = {name.removeprefix("held_out_"): [line[name] for line in seen] for name in ways}
    return {"steps": last["step"], "hours": round(last["seconds"] / 3600, 2), "held_out": held_out}


def one(arm: tuple[str, str], seed: int, settings: Mapping, groups: Mapping, parts: Path) -> dict:
    """The scores of one model on one task, fine-tuned with this seed."""
    task, name = arm
    encoder, wordpiece = continue_from(parts / name, "mlm")[0].encoder, read_vocabulary(parts / name)
    return {"scores": rounded(TASKS[task].measured(encoder, wordpiece, groups[task], seed))}


# --- what the chapter draws from it -----------------------------------------------------------------------------


def path(content: Mapping, twin: str, loss: str) -> tuple[list[float], list[float]]:
    """Millions of tokens after the common start, which stands at 0, and held-out losses. content: of the file."""
    before = content["losses"][START]["held_out"].get(loss)
    places, losses = ([0.0], [before[-1]]) if before else ([], [])
    done = 0.0
    for part in range(1, PARTS + 1):
        held_out = content["losses"][f"{twin}-{part}"]["held_out"]
        places += [done + tokens / 1e6 for tokens in held_out["tokens"]]
        losses += held_out[loss]
        done = places[-1]
    return places, losses


def scores(content: Mapping, tasks: Mapping, task: str) -> dict[int, dict[str, list[float]]]:
    """Parts of pre-training → twin → the main score of each seed. content, tasks: of the files of `twins` and
    `span_tasks`."""
    measure = span_tasks.MAIN[task]

    def here(model: str) -> list[float]:
        return column(content, "scores", measure, task=task, model=model)

    last = span_tasks.by_start(tasks, task, measure)
    return {0: {twin: here(START) for twin in TWINS}, 1: {twin: here(f"{twin}-1") for twin in TWINS},
            PARTS: {twin: last[twin] for twin in TWINS}}  # fmt: skip
