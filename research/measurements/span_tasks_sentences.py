"""Five sets of GLUE, of which only training files are at hand: fixed parts without leaks, controls,
one measured run. Chapters: `book/evidence/questions`, `book/evidence/paper_tables`.

The parts are the same for everybody: a fixed order of the examples, each text once. The first of
them are the test part, the next the development part, as far as they share nothing with the test
part; all others that share nothing with either are to be trained on. Two examples share something
when they have a run of `run` words in common, or when a sentence of fewer words stands in the
other: so no phrase of a tested review is trained on (SST-2), and no sentence of a tested pair. Of
SST-2, whose phrases overlap, only those that stand in no longer one are tested on.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from research.measurements import sentence_baselines
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.tasks.classification import fine_tune, score
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.sentence_files import Example, read

PARTS = "train", "development", "test"
Parts = dict[str, list[Example]]  # by the names of PARTS


class Plan(NamedTuple):
    """One set: its file, how many examples to test on, to develop with and at most to train on, how
    many words in a row two parts may not share, and the settings of a run."""

    file: str
    test: int
    development: int
    train: int
    run: int
    settings: FineTuning


def settings(epochs: float, peak_learning_rate: float = 3e-4) -> FineTuning:
    """Of a run: batches of about 8 × 128 positions."""
    return FineTuning(
        epochs=epochs, batch_size=8, peak_learning_rate=peak_learning_rate, max_length=128
    )


PLANS = {
    "sst2": Plan("sst2/train.tsv.xz", 1_000, 500, 12_000, 4, settings(3)),
    "cola": Plan("cola/in_domain_train.tsv.xz", 1_000, 500, 10_000, 5, settings(5)),
    "rte": Plan("rte/train.tsv.xz", 400, 200, 10_000, 8, settings(5)),
    "mrpc": Plan("mrpc/train.tsv.xz", 600, 300, 10_000, 8, settings(4)),
    "stsb": Plan("stsb/train.tsv.xz", 800, 400, 10_000, 8, settings(5)),
}


# --- parts without leaks ------------------------------------------------------------


def parts(folder: str | Path) -> dict[str, Parts]:
    """The parts of each set, from the training files of GLUE in this folder."""
    return {
        task: parted(read(Path(folder, plan.file), subtask=task), plan)
        for task, plan in PLANS.items()
    }


def parted(examples: Sequence[Example], plan: Plan) -> Parts:
    """Test, development and training examples, drawn in a fixed order."""
    once = {
        tuple(map(words_of, texts(one))): one for one in examples if all(map(words_of, texts(one)))
    }
    all_ones = list(once.values())
    rest = [all_ones[i] for i in np.random.default_rng(0).permutation(len(all_ones))]
    whole = whole_ones(rest, plan.run)
    found: Parts = {}
    # of all that is held out
    marks: set = set()
    runs: set = set()
    for name, most in (
        ("test", plan.test),
        ("development", plan.development),
        ("train", plan.train),
    ):
        found[name], left = [], []
        for one in rest:
            if len(found[name]) == most or (name != "train" and one not in whole):
                left.append(one)
            elif not (marks_of(one, plan.run) & runs or runs_of(one, plan.run) & marks):
                found[name].append(one)
        for one in found[name]:
            marks |= marks_of(one, plan.run)
            runs |= runs_of(one, plan.run)
        rest = left
    return found


def texts(example: Example) -> list[str]:
    """The sentence, or both."""
    return [text for text in example[0] if text is not None]


@cache
def words_of(text: str) -> tuple[str, ...]:
    """Words in small letters, without punctuation."""
    return tuple(re.findall(r"\w+", text.lower()))


def runs_of(example: Example, run: int) -> set[tuple[str, ...]]:
    """All runs of up to `run` words in its sentences."""
    return {
        words[start : start + length]
        for words in map(words_of, texts(example))
        for length in range(1, run + 1)
        for start in range(len(words) - length + 1)
    }


def marks_of(example: Example, run: int) -> set[tuple[str, ...]]:
    """What tells its sentences: their runs of `run` words, or a whole sentence that is shorter."""
    return {
        words[start : start + run]
        for words in map(words_of, texts(example))
        for start in range(max(1, len(words) - run + 1))
    }


def whole_ones(examples: Sequence[Example], run: int) -> set[Example]:
    """Of pairs all; of single sentences those with at least `run` words that stand in no longer
    one."""
    if examples[0][0][1] is not None:
        return set(examples)
    lines = {one: " ".join(["", *words_of(one[0][0]), ""]) for one in examples}
    having = defaultdict(list)  # a run of words → the sentences that have it
    for one, line in lines.items():
        for mark in marks_of(one, run):
            having[mark].append(line)

    def stands_alone(one: Example) -> bool:
        first = words_of(one[0][0])[:run]
        return len(first) == run and not any(
            lines[one] in other for other in having[first] if other != lines[one]
        )

    return set(filter(stands_alone, examples))


# --- what is measured ---------------------------------------------------------------


def measured(
    encoder: BertEncoder, wordpiece: WordPiece, task: str, parts: Parts, seed: int
) -> dict[str, float]:
    """ "task measure" → score on the test part of one set, of an encoder fine-tuned in a copy. seed:
    of the new head, of the order and of dropout."""
    chosen = replace(PLANS[task].settings, seed=seed)
    predictor, _ = fine_tune(deepcopy(encoder), wordpiece, parts["train"], chosen)
    return scores(task, parts["test"], predictor.predict(parts["test"]))


def scores(
    task: str, examples: Sequence[Example], predicted: Sequence[str | float]
) -> dict[str, float]:
    """ "task measure" → score."""
    found = score(task, [label for _, label in examples], predicted)
    return {f"{task} {name}": value for name, value in found.items()}


def controls(parts: Mapping[str, Parts]) -> dict[str, dict[str, float]]:
    """Control → "task measure" → score on the test part; none of them reads with an encoder."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for task, some in parts.items():
        for name, predicted in sentence_baselines.controls(some["train"], some["test"]).items():
            found[name] |= scores(task, some["test"], predicted)
    return dict(found)
