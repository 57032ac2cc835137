"""The twins on their way: do they draw apart? Held-out losses all along, and two tasks at three points of pre-training.
Chapter: `book/workshop/shipped_models`.

`--parts` is a folder with what the commands of the cards write: `short` and `mini-start`, and of each twin a folder for
each part, `bert-mini-1` to `bert-mini-4` and so on. The common start and the second parts are fine-tuned here. The last
parts are the shipped models: their scores stand in the files of `squad_real` and `span_tasks`.

What was expected stood here before the first run: `CLAIMS`. The seeds are fine-tuning seeds: there is one pre-training
run of each twin.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from spanbert_tutorial.bert import BertEncoder
from spanbert_tutorial.checkpoints import continue_from, read_vocabulary
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import span_tasks, span_tasks_relations, squad_real
from spanbert_tutorial.experiments.grid import fingerprint
from spanbert_tutorial.experiments.results import column, rounded
from spanbert_tutorial.tasks.real_questions import fine_tune_in_stages
from spanbert_tutorial.tasks.relation_files import Example
from spanbert_tutorial.tasks.squad import Question
from spanbert_tutorial.wordpiece import WordPiece

Given = tuple[dict[str, list[Question]], dict[str, list[Example]]]

TWINS, START, PARTS = ("bert-mini", "spanbert-mini"), "mini-start", 4
HALF = 2  # parts after which the tasks are asked, besides the start and the end
MEASURES = {"squad1": "f1", "relations": "f1"}
ARM, SEEDS = ("task", "model"), 3
ARMS = tuple((task, model) for model in (START, *(f"{twin}-{HALF}" for twin in TWINS)) for task in MEASURES)
STAGES = {name: squad_real.STAGES[name] for name in ("easy", "made", "squad1")}
CLAIMS = {"squad1": "SQuAD 1.1, F1: spanbert-mini further ahead of bert-mini after four parts than after two",
          "relations": "SemEval-2010 Task 8, F1: the same"}  # fmt: skip
SETTINGS = {"stages": STAGES, "relations": span_tasks_relations.FINE_TUNING, "claims": CLAIMS}


def prepare(
    folder: Path, settings: Mapping, data: Path, easy: Path, made: Path, parts: Path
) -> tuple[dict, tuple[Given, Path]]:
    """Questions and sentences to train on and to score, and the folder of models. data: a folder with squad/ and
    semeval2010-task8/."""
    squad = {"squad1 train": squad_real.read(data / "squad", squad_real.TRAIN),
             "squad1 test": squad_real.read(data / "squad", [squad_real.TEST])}  # fmt: skip
    questions, sentences = squad_real.with_made(squad, easy=easy, made=made), span_tasks_relations.parts(data)
    counts = {name: len(group) for name, group in (questions | sentences).items()}
    prints = {"questions": fingerprint(*squad.values()), "sentences": fingerprint(*sentences.values())}
    return {"examples": counts, "fingerprints": prints}, ((questions, sentences), parts)


def beside(settings: Mapping, given: Given, parts: Path) -> dict:
    """The losses of every part, as its `metrics.jsonl` has them."""
    names = ["short", START, *(f"{twin}-{part}" for twin in TWINS for part in range(1, PARTS + 1))]
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


def one(arm: tuple[str, str], seed: int, settings: Mapping, given: Given, parts: Path) -> dict:
    """The scores of one model on one task, fine-tuned with this seed."""
    (task, name), (questions, sentences) = arm, given
    encoder, wordpiece = continue_from(parts / name, "mlm")[0].encoder, read_vocabulary(parts / name)
    if task == "relations":
        return {"scores": rounded(span_tasks_relations.measured(encoder, wordpiece, sentences, seed))}
    return {"scores": rounded(answers(encoder, wordpiece, questions, seed, settings["stages"]))}


def answers(
    encoder: BertEncoder, wordpiece: WordPiece, questions: dict[str, list[Question]], seed: int, stages: Mapping
) -> dict[str, float]:
    """Scores on SQuAD 1.1 after the stages that `squad_real` has for it, with one head."""
    model = encoder
    for name, settings in stages.items():
        seeded = [replace(stage, seed=seed) for stage in settings]
        answerer, _ = fine_tune_in_stages(model, wordpiece, questions[f"{name} train"], seeded)
        model = answerer.model
    return squad_real.scored(answerer, questions["squad1 test"])


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


def scores(content: Mapping, squad: Mapping, tasks: Mapping, task: str) -> dict[int, dict[str, list[float]]]:
    """Parts of pre-training → twin → a score of each seed. content, squad, tasks: of the files of `twins`, `squad_real`
    and `span_tasks`."""

    def here(model: str) -> list[float]:
        return column(content, "scores", MEASURES[task], task=task, model=model)

    last = {twin: column(squad, "score", "f1", task=task, start=twin) if task == "squad1"
            else span_tasks.by_start(tasks, task, MEASURES[task])[twin] for twin in TWINS}  # fmt: skip
    return {0: {twin: here(START) for twin in TWINS}, HALF: {twin: here(f"{twin}-{HALF}") for twin in TWINS},
            PARTS: last}  # fmt: skip
