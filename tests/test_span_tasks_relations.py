"""The parts of SemEval-2010 Task 8 share no phrase; its controls; one run on made sentences."""

import os
from pathlib import Path

import numpy as np
import pytest
from kept import kept

from research.measurements import span_tasks_relations as experiment
from spanbert_tutorial.tasks import relation_baselines
from spanbert_tutorial.tasks.relation_files import Argument, Example

REAL = Path(os.environ.get("SPANBERT_TUTORIAL_REAL_DATA", "unset"))
LABELS = ["Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Other"]
STATED = {"train": 6025, "validation": 780, "test": 1195}


def made(count: int, seed: int = 0) -> list[Example]:
    """Sentences of random words; every third repeats eight words of one before it, in other
    letters."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        words = [f"w{word}" for word in rng.integers(0, 400, rng.integers(4, 20))]
        if number % 3 == 2:
            words[1:3] = [word.upper() for word in examples[rng.integers(number)].words[:8]]
        label = LABELS[number % len(LABELS)]
        examples.append(Example(str(number), tuple(words), Argument(0, 0), Argument(2, 2), label))
    return examples


def shared_phrases(parts: dict[str, list[Example]]) -> set[tuple[str, ...]]:
    """Runs of six words, in small letters, that stand in two parts: written anew, without the
    module's groups."""

    def runs(examples):
        texts = [" ".join(example.words).lower().split(" ") for example in examples]
        return {tuple(text[start : start + 6]) for text in texts for start in range(len(text) - 5)}

    train, validation, test = (runs(parts[name]) for name in ("train", "validation", "test"))
    return (train & validation) | (train & test) | (validation & test)


def test_no_two_parts_share_a_phrase():
    examples = made(600)
    parts = experiment.split(examples)
    assert sorted(example.id for part in parts.values() for example in part) == sorted(
        e.id for e in examples
    )
    assert min(map(len, parts.values())) > 20 and not shared_phrases(parts)
    thirds = {"train": examples[:200], "validation": examples[200:400], "test": examples[400:]}
    assert shared_phrases(thirds)  # without groups there are many


def test_groups_worked_by_hand():
    texts = [
        "a b c d e f g",
        "x a B c d e f",
        "a b c",
        "A b c",
        "g f e d c b a",
        "q x a b c d e r",
        "n n n n n n n a",
    ]
    rows = [Example("", tuple(text.split()), Argument(0, 0), Argument(1, 1), "") for text in texts]
    # the sixth shares "x a b c d e" with the second
    assert experiment.groups(rows) == [0, 0, 2, 2, 4, 0, 6]


@pytest.mark.real_data
def test_the_parts_of_the_real_file():
    parts = experiment.parts(REAL)
    assert {name: len(examples) for name, examples in parts.items()} == STATED
    assert not shared_phrases(parts)
    assert {example.relation for part in parts.values() for example in part} == {
        *(
            f"{name}({order})"
            for name in (
                "Cause-Effect",
                "Component-Whole",
                "Content-Container",
                "Entity-Destination",
                "Entity-Origin",
                "Instrument-Agency",
                "Member-Collection",
                "Message-Topic",
                "Product-Producer",
            )
            for order in ("e1,e2", "e2,e1")
        ),
        "Other",
    }
    guess = relation_baselines.by_words(parts["train"], parts["test"], experiment.name_words)
    f1 = experiment.directed_score(experiment.labels(parts["test"]), guess)["f1"]
    kept_f1 = kept("span_tasks", "control: words of the names")["relations"]["f1"]
    assert f1 == pytest.approx(kept_f1, abs=0.3)
