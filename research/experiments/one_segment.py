"""Does a model fall behind on pairs of sentences because it has never seen a second segment?
Chapter: `book/evidence/questions`.

STS-B gives two sentences, and BERT's input marks the second one by another segment.
`spanbert-mini` was pre-trained on one segment, so its row for the second never had a gradient.
Both mini models are fine-tuned with two segments, and with one for everything. A seed draws the new
head, the order and dropout, the same for all four. Parts and settings are those of `span_tasks`,
and so are its seeds: the arms with two segments repeat its rows.

Fixed before the first run: if the untrained segment is the cause, `spanbert-mini` scores higher
with one segment, and gains more by it than `bert-mini`, which was pre-trained on two.
"""

from collections.abc import Mapping
from pathlib import Path

from research.experiments.squad_real import start
from research.grid import fingerprint, rounded
from research.measurements import span_tasks_sentences as sentences
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.tasks.sentence_files import read

TASK = "stsb"
ARMS = tuple(
    (name, segments) for segments in ("two", "one") for name in ("bert-mini", "spanbert-mini")
)
SEEDS = 5
FINE_TUNING = True
SETTINGS = {"plan": sentences.PLANS[TASK]}


def in_one_segment(encoder: BertEncoder) -> BertEncoder:
    """The encoder, which from now on puts every token into segment 0."""
    encoder.register_forward_pre_hook(
        lambda _, inputs, options: (inputs, options | {"token_type_ids": None}), with_kwargs=True
    )
    return encoder


def prepare(folder: Path, settings: Mapping, data: Path) -> tuple[dict, tuple]:
    """The parts of STS-B. data: a folder with stsb/."""
    plan = sentences.PLANS[TASK]
    parts = sentences.parted(read(data / plan.file, subtask=TASK), plan)
    counts = {name: len(examples) for name, examples in parts.items()}
    return {"examples": counts, "fingerprint": fingerprint(*parts.values())}, (parts,)


def one(arm: tuple[str, str], seed: int, settings: Mapping, parts: sentences.Parts) -> dict:
    """The scores of one model, Pearson's and Spearman's correlation × 100."""
    name, segments = arm
    encoder, wordpiece = start(name, seed)
    if segments == "one":
        encoder = in_one_segment(encoder)
    return {"scores": rounded(sentences.measured(encoder, wordpiece, TASK, parts, seed))}
