"""All span and sentence tasks on real text, from three starts. Page:
`book/evidence/paper_tables`.

No pre-training (new weights), `bert-mini` and `spanbert-mini`, each fine-tuned on each task with
several seeds. The seeds are fine-tuning seeds: there is one pre-training run of each kind, so an
interval over them says how far fine-tuning varies, not what another pre-training run would give.
Parts, settings and controls of a task stand in the module `span_tasks_TASK`; the settings were
chosen on validation parts.
"""

from collections.abc import Mapping
from pathlib import Path

from research.experiments.squad_real import start
from research.grid import fingerprint, rounded
from research.measurements import span_tasks_coreference as coreference
from research.measurements import span_tasks_relations as relations
from research.measurements import span_tasks_sentences as sentences

ARM = ("task", "start")
SEEDS = 3
FINE_TUNING = True
TASKS = ("coreference", "relations", *sentences.PLANS)
STARTS = "new weights", "bert-mini", "spanbert-mini"
ARMS = tuple((task, name) for task in TASKS for name in STARTS)
SETTINGS = {
    "coreference": coreference.SETTINGS,
    "relations": relations.FINE_TUNING,
    "sentences": sentences.PLANS,
}


def prepare(folder: Path, settings: Mapping, data: Path) -> tuple[dict, tuple]:
    """The parts of every task. data: a folder with litbank/, gap/, semeval2010-task8/ and the sets
    of GLUE."""
    parts = {
        "coreference": coreference.parts(data),
        "relations": relations.parts(data),
        **sentences.parts(data),
    }
    counts = {
        task: {name: len(examples) for name, examples in some.items()}
        for task, some in parts.items()
    }
    prints = {task: fingerprint(*some.values()) for task, some in parts.items()}
    return {"examples": counts, "fingerprints": prints}, (parts,)


def beside(settings: Mapping, parts: Mapping) -> dict:
    """What needs no encoder."""
    glue = {task: parts[task] for task in sentences.PLANS}
    found = {
        "coreference": coreference.controls(parts["coreference"]),
        "relations": relations.controls(parts["relations"]),
        "sentences": sentences.controls(glue),
    }
    return {"controls": rounded(found)}


def one(arm: tuple[str, str], seed: int, settings: Mapping, parts: Mapping) -> dict:
    """The scores of one start on one task, in percent where the task's score is a share."""
    (task, name), some = arm, parts[arm[0]]
    encoder, wordpiece = start(name, seed)
    if task in sentences.PLANS:
        return {"scores": rounded(sentences.measured(encoder, wordpiece, task, some, seed))}
    if task == "coreference":
        return {"scores": rounded(coreference.measured(encoder, wordpiece, some, seed))}
    return {"scores": rounded(relations.measured(encoder, wordpiece, some, seed))}


def place(path: tuple) -> tuple | None:
    """A control is a condition."""
    return (f"control: {path[2]}", (path[1], *path[3:])) if path[0] == "controls" else None
