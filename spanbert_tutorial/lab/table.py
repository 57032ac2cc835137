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
    "leaving_the_plateau": Row("what shortens the plateau of the loss?", 75),
    "easy_first": Row(
        "does easy text first help a model off the plateau?",
        220,
        {"corpus": "text file, .jsonl file, a folder of them, or a hub name"},
    ),
    "masking_mini": Row("80/10/10 against other rates: what changes?", 40),
    "directions": Row("what do one-way and two-way models predict and know?", 25),
    "boundary_probe": Row(
        "what do boundary states hold, with and without the boundary objective?", 30
    ),
    "spans_pilot": Row(
        "which learning rate for each arm of `spans_and_boundaries`?",
        40,
        {"models": "folder that keeps the trained models"},
    ),
    "spans_and_boundaries": Row(
        "what do spans and boundaries add after the plateau, from one checkpoint?",
        130,
        {"models": "folder that keeps the trained models"},
    ),
    "ways_of_hiding": Row(
        "after the plateau: mask words, entities, noun phrases or collocations?",
        160,
        {"models": "folder that keeps the trained models"},
    ),
    "span_settings": Row(
        "what do span lengths, masking rates and the weight of SBO change?",
        75,
        {"models": "folder that keeps the trained models"},
    ),
    "spans_on_wikipedia": Row(
        "the arms of `spans_and_boundaries` on real text",
        175,
        {
            "corpus": "text that the starting checkpoint was trained on, or a part of it",
            "valid": "another .jsonl file",
            "start": "the checkpoint from which all arms continue",
            "data": "folder with litbank/ and gap/",
            "models": "folder that keeps the trained models",
        },
    ),
    "pairs_vs_single": Row("one segment or pairs, with and without next sentence prediction", 50),
    "sentence_states": Row("what does the hidden state of [CLS] reveal about a sentence?", 40),
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
    "squad_negatives": Row("which unanswerable questions are easy to detect?", 10, SQUAD),
    "squad_real": Row(
        "how well do the shipped checkpoints do on SQuAD?",
        280,
        MADE | {"models": "folder that keeps the trained models"},
    ),
    "made_first": Row("does it help to train on generated questions first?", 70, MADE),
    "answer_errors": Row("where do the shipped models go wrong on real questions?", 15, SQUAD),
    "roberta_masks": Row("static masks, ten copies or dynamic masks?", 10),
    "roberta_formats": Row("four input formats, with equally many tokens", 30),
    "roberta_real": Row(
        "GPT-2's tokens against BERT's, and input formats on Wikipedia",
        2,
        {"data": "folder with vocab/ and wikipedia/"},
    ),
    "albert_sharing": Row("what does it cost to share weights across layers?", 30),
    "albert_sop": Row(
        "next sentence prediction and sentence order prediction, each tested on the other", 10
    ),
    "electra_mini": Row("ELECTRA against masked language modeling with equal compute", 30),
    "beyond_ways": Row("one small model trained in two ways", 45),
    "twins": Row(
        "do `bert-mini` and `spanbert-mini` diverge during training?",
        1,
        {"parts": "folder with the output of the commands on the model cards"},
    ),
    "copied_names": Row(
        "do the shipped models copy a name that occurs elsewhere in the block?",
        5,
        {"valid": "a .jsonl file that they were not trained on"},
    ),
    "copying_and_answers": Row(
        "does a model answer worse because it cannot copy?",
        400,
        {
            "corpus": "text that the finished models were trained on, or a part of it",
            "valid": "another .jsonl file",
            "arms": "folder with the finished models mlm, mlmnsp, spansbo and mix",
            "data": "folder of SQuAD files (.json.xz)",
            "models": "folder that keeps the trained models",
        },
    ),
    "whole_words": Row(
        "what does a model lose that never sees a part of a word?",
        600,
        {
            "corpus": "text that the starting checkpoint was trained on, or a part of it",
            "valid": "another .jsonl file",
            "start": "the checkpoint from which all arms continue",
            "models": "folder that keeps the trained models",
        },
    ),
    "whole_words_answers": Row(
        "do the models of `whole_words` answer differently?",
        240,
        {
            "data": "folder of SQuAD files (.json.xz)",
            "start": "the checkpoint from which all arms continue",
            "models": "folder that keeps the trained models",
        },
    ),
    "masking_and_answers": Row(
        "what does each objective cost in answers? (16 models; needs a graphics card)",
        10,
        {
            "text": "encoded text, as `pretrain` keeps it",
            "start": "the checkpoint from which all arms continue",
            "valid": "another .jsonl file",
            "data": "folder of SQuAD files (.json.xz)",
        },
    ),
    "one_segment": Row(
        "does an untrained second segment cost points on pairs of sentences?",
        40,
        {"data": "folder with stsb/ of GLUE"},
    ),
    "few_questions_here": Row(
        "how do the shipped models answer after few questions?",
        60,
        {"data": "folder of SQuAD files (.json.xz)"},
    ),
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
