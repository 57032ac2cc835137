"""The experiments that `python -m spanbert_tutorial experiment` runs, one row each. Chapters: those
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
MADE = SQUAD | {
    "easy": "SQuAD file of `make-questions --easy`",
    "made": "SQuAD file of `make-questions`",
}


class Row(NamedTuple):
    """inputs: option → what path it wants."""

    asks: str
    minutes: int
    inputs: Mapping[str, str] = {}


EXPERIMENTS = {
    "token_vs_span": Row("does span masking help, and the span boundary objective?", 45),
    "live_run": Row("what the live run of a chapter gives", 3),
    "leaving_the_plateau": Row("what shortens the time in which the loss stands still?", 75),
    "easy_first": Row(
        "does easy text first help a model off the plateau?",
        220,
        {"corpus": "text file, .jsonl file, a folder of them, or a hub name"},
    ),
    "masking_mini": Row("what do 80/10/10 and other shares do?", 40),
    "directions": Row("what do models that look one way, or both ways, predict and know?", 25),
    "boundary_probe": Row(
        "what do boundary states hold, with and without the boundary objective?", 30
    ),
    "spans_pilot": Row(
        "which learning rate does each arm of `spans_and_boundaries` get?",
        40,
        {"models": "folder that keeps the trained models"},
    ),
    "spans_and_boundaries": Row(
        "what are spans and their boundaries good for, from one start past the plateau?",
        130,
        {"models": "folder that keeps the trained models"},
    ),
    "ways_of_hiding": Row(
        "words, entities, noun phrases, collocations: which way of hiding, past the plateau?",
        160,
        {"models": "folder that keeps the trained models"},
    ),
    "span_settings": Row(
        "what do lengths, shares and the weight of SBO change?",
        75,
        {"models": "folder that keeps the trained models"},
    ),
    "spans_on_wikipedia": Row(
        "the arms of `spans_and_boundaries` on real text",
        175,
        {
            "corpus": "text that the start was trained on, or a part of it",
            "valid": "another .jsonl file",
            "start": "the checkpoint that all arms go on from",
            "data": "folder with litbank/ and gap/",
            "models": "folder that keeps the trained models",
        },
    ),
    "pairs_vs_single": Row(
        "one segment against pairs, with and without next sentence prediction", 50
    ),
    "sentence_states": Row("what does the state of [CLS] say about a sentence?", 40),
    "almanac_answers": Row(
        "what does pre-training bring to question answering on the almanac?", 20
    ),
    "tagging_names": Row("can names be tagged that no label has shown?", 3),
    "almanac_coreference": Row("what does pre-training bring to coreference on the almanac?", 6),
    "relation_markers": Row("how are names marked and read for relation extraction?", 6),
    "span_tasks": Row(
        "all span and sentence tasks on real text, from three starts",
        200,
        {"data": "folder with litbank/, gap/, semeval2010-task8/ and the sets of GLUE"},
    ),
    "squad_negatives": Row("which questions without an answer are easy to find?", 10, SQUAD),
    "squad_real": Row(
        "what do the shipped starts bring on SQuAD?",
        660,
        MADE | {"models": "folder that keeps the trained models"},
    ),
    "made_first": Row("do made questions before real ones help?", 70, MADE),
    "answer_errors": Row("where do the shipped models err on real questions?", 15, SQUAD),
    "roberta_masks": Row("static masks, ten copies, dynamic masks", 10),
    "roberta_formats": Row("four input formats with the same number of tokens", 30),
    "roberta_real": Row(
        "GPT-2's tokens beside BERT's, and formats over Wikipedia",
        2,
        {"data": "folder with vocab/ and wikipedia/"},
    ),
    "albert_sharing": Row("what does sharing the layers' weights cost?", 30),
    "albert_sop": Row("next sentence against sentence order, each asked the other's question", 10),
    "electra_mini": Row("ELECTRA against masked language modeling at equal computation", 30),
    "beyond_ways": Row("one small model trained in two ways", 45),
    "twins": Row(
        "do the twins draw apart on their way?",
        1,
        {"parts": "folder of what the cards' commands write"},
    ),
    "copied_names": Row(
        "do the shipped models give back a name that stands elsewhere in the block?",
        5,
        {"valid": "a .jsonl file that they were not trained on"},
    ),
    "shipped_losses": Row(
        "losses of the shipped models, beside two tables without context",
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
