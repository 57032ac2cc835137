"""All span and sentence tasks on real text, from three starts. Page:
`book/evidence/paper_tables`.

No pre-training (new weights), `bert-mini` and `spanbert-mini`, each fine-tuned on each task with
several seeds. The seeds are fine-tuning seeds: there is one pre-training run of each kind, so an
interval over them says how far fine-tuning varies, not what another pre-training run would give.
Parts, settings and controls of a task stand in the module `span_tasks_TASK`; the settings were
chosen on validation parts.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from research.experiments.squad_real import start
from research.grid import fingerprint
from research.measurements import span_tasks_coreference as coreference
from research.measurements import span_tasks_relations as relations
from research.measurements import span_tasks_sentences as sentences
from research.results import Difference, column, family, rounded
from spanbert_tutorial.figures.table import Table

ARM = ("task", "start")
SEEDS = 3
# what is asked → the figure that counts: of the sentence tasks those that the chapter's plan names
MAIN = {
    "coreference": "average",
    "clusters": "average_two_or_more",
    "gap": "gap_f1",
    "relations": "f1",
    "sst2": "sst2 accuracy",
    "cola": "cola matthews",
    "rte": "rte accuracy",
    "mrpc": "mrpc accuracy",
    "stsb": "stsb pearson",
}
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
        return {"scores": rounded(sentences.one_task(encoder, wordpiece, task, some, seed))}
    if task == "coreference":
        return {"scores": rounded(coreference.measured(encoder, wordpiece, some, seed))}
    return {"scores": rounded(relations.measured(encoder, wordpiece, some, seed))}


# --- what the chapters draw from it -------------------------------------------------


def by_start(content: Mapping, task: str, measure: str) -> dict[str, list[float]]:
    """Start → one score of each seed. content: of the file of results."""
    return {start: column(content, "scores", measure, task=task, start=start) for start in STARTS}


def mean_of_sentences(content: Mapping) -> dict[str, list[float]]:
    """Start → of each seed the mean over the five sentence tasks."""
    each = [by_start(content, task, MAIN[task]) for task in sentences.PLANS]
    return {start: np.mean([scores[start] for scores in each], axis=0).tolist() for start in STARTS}


def gains(scores: Mapping[str, Sequence[float]]) -> dict[str, Difference]:
    """The family of three differences between the starts, paired by fine-tuning seed."""
    new, bert, spanbert = STARTS
    pairs = ((bert, new), (spanbert, new), (spanbert, bert))
    return family({f"{one} − {other}": (scores[one], scores[other]) for one, other in pairs})


def table(
    content: Mapping, head: str, columns: Mapping[str, tuple[str, str]], controls: Mapping[str, str]
) -> Table:
    """Each start with the mean over its seeds, then controls, of which some have no figure in a
    column. columns: title → task and measure; controls: title → name in the file."""
    trained = [
        [
            start,
            *(f"{np.mean(by_start(content, *column)[start]):.1f}" for column in columns.values()),
        ]
        for start in STARTS
    ]
    found = {
        title: {
            measure: figure
            for group in content["controls"].values()
            for measure, figure in group.get(name, {}).items()
        }
        for title, name in controls.items()
    }
    fixed = [
        [
            title,
            *(
                f"{figures[measure]:.1f}" if measure in figures else ""
                for _, measure in columns.values()
            ),
        ]
        for title, figures in found.items()
    ]
    return Table([head, *columns], trained + fixed)
