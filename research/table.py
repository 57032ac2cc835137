"""The experiments that `python -m research` runs, one row each. Chapters: those
that the modules name, such as `book/spanbert/pretraining_spanbert`.

A row is a module of this room (see `grid`), what it asks, about how many minutes all of it takes on
two cores, and the files that it needs and this project does not ship.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from spanbert_tutorial.errors import InputError

SQUAD = {"data": "folder of SQuAD files (.json.xz)"}
TRAINED_ALIKE = SQUAD | {"arms": "folder of two models, mlm and mix"}
MADE = SQUAD | {
    "easy": "SQuAD file of `make-questions --easy`",
    "made": "SQuAD file of `make-questions`",
}
MODELS = {"models": "folder that keeps the trained models"}
ON_WIKIPEDIA = MODELS | {
    "corpus": "text that the starting checkpoint was trained on, or a part of it",
    "valid": "another .jsonl file",
    "start": "the checkpoint from which all arms continue",
}


class Row(NamedTuple):
    """inputs: option → what path it wants."""

    asks: str
    minutes: int
    inputs: Mapping[str, str] = {}


EXPERIMENTS = {
    "token_vs_span": Row("does span masking help, and the span boundary objective?", 45),
    "inside_a_run": Row("what changes inside a model when its loss leaves the plateau?", 1),
    "leaving_the_plateau": Row("what shortens the plateau of the loss?", 75),
    "easy_first": Row(
        "does easy text first help a model off the plateau?",
        220,
        {"corpus": "text file, .jsonl file, a folder of them, or a hub name"},
    ),
    "boundary_probe": Row(
        "what do boundary states hold, with and without the boundary objective?", 30
    ),
    "spans_and_boundaries": Row(
        "what do spans and boundaries add after the plateau, from one checkpoint?", 130, MODELS
    ),
    "span_settings": Row(
        "what do span lengths, masking rates and the weight of SBO change?", 75, MODELS
    ),
    "words_of_the_question": Row(
        "which models see, before any fine-tuning, what words a question repeats?", 4, TRAINED_ALIKE
    ),
    "copying_heads": Row(
        "which words does a model copy, which heads do it, and do they answer?",
        12,
        {"valid": "a .jsonl file that was not trained on"} | SQUAD,
    ),
    "riddle_of_mix": Row(
        "why does the model of both masks, with good losses, answer worst?", 50, TRAINED_ALIKE
    ),
    "spans_on_wikipedia": Row(
        "the arms of `spans_and_boundaries` on real text",
        175,
        ON_WIKIPEDIA | {"data": "folder with litbank/ and gap/"},
    ),
    "whole_words": Row(
        "what does a model lose that never sees a part of a word?", 400, ON_WIKIPEDIA
    ),
    "whole_words_answers": Row(
        "does a task miss what a model loses that never sees a part of a word?",
        400,
        ON_WIKIPEDIA | SQUAD,
    ),
    "pointing": Row(
        "what is pre-training worth that points at words said again, with few questions?",
        700,
        ON_WIKIPEDIA | SQUAD,
    ),
    "domain_text": Row(
        "does it help a task to train further on its own kind of text first?", 150, ON_WIKIPEDIA
    ),
    "pairs_vs_single": Row("one segment or pairs, with and without next sentence prediction", 50),
    "almanac_answers": Row(
        "how much does pre-training help question answering on the almanac?", 20
    ),
    "tagging_names": Row("can a model tag names that no training label contains?", 3),
    "almanac_coreference": Row("how much does pre-training help coreference on the almanac?", 6),
    "relation_markers": Row("how should relation extraction mark and read the two names?", 6),
    "span_tasks": Row(
        "all span and sentence tasks on real text, from three checkpoints",
        200,
        {"data": "folder with litbank/, gap/, semeval2010-task8/ and the GLUE data sets"},
    ),
    "squad_real": Row("how well do the shipped checkpoints do on SQuAD?", 280, MADE | MODELS),
    "one_segment": Row(
        "does an untrained second segment cost points on pairs of sentences?",
        40,
        {"data": "folder with stsb/ of GLUE"},
    ),
    "few_questions_here": Row("how do the shipped models answer after few questions?", 60, SQUAD),
    "shipped_losses": Row(
        "losses of the shipped models, against two frequency baselines",
        20,
        {
            "corpus": "folder of the .jsonl files that they were trained on",
            "valid": "another .jsonl file",
        },
    ),
}


def row_of(name: str) -> Row:
    """Raises InputError for an unknown name, with the nearest ones."""
    if name not in EXPERIMENTS:
        some = [*sorted(EXPERIMENTS)[:3], "… (without a name all are listed)"]
        near = get_close_matches(name, EXPERIMENTS, n=3) or some
        raise InputError(f'the experiment "{name}" is unknown: use one of {", ".join(near)}.')
    return EXPERIMENTS[name]


def module_of(name: str) -> ModuleType:
    """The module of an experiment."""
    return import_module(f"{__package__}.experiments.{name}")
