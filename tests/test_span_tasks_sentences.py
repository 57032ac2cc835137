"""The parts of the real sentence tasks share nothing; what a measured run and its controls give."""

import os
from pathlib import Path

import pytest

from research.measurements import span_tasks_sentences as sentences
from research.measurements.span_tasks_sentences import PLANS, Plan, parted
from spanbert_tutorial.tasks.fine_tuning import FineTuning

PLAN = Plan("", 4, 3, 100, 4, FineTuning(epochs=2, batch_size=4, max_length=32))


def shares(parts: dict, one: str, other: str) -> list[str]:
    """Sentences of a part that stand in a sentence of another; by plain text, not as the parts are
    made."""

    def line(text: str) -> str:
        return f" {' '.join(sentences.words_of(text))} "

    lines = {
        name: {line(text) for example in parts[name] for text in sentences.texts(example)}
        for name in (one, other)
    }
    whole = "\n".join(lines[other])
    return [text for text in lines[one] if text in whole]


def nothing_is_shared(parts: dict) -> bool:
    """Whether no sentence or phrase of a part stands in another part, in either direction."""
    names = list(parts)
    return not any(shares(parts, one, other) for one in names for other in names if one != other)


def phrases() -> list:
    """Reviews with all their phrases of three and more words, as SST-2 has them."""
    found = []
    for number in range(30):
        words = [
            f"{word}{number}"
            for word in ("a", "plain", "story", "told", "with", "care", "and", "wit")
        ]
        found += [
            ((" ".join(words[a:b]), None), str(number % 2))
            for a in range(8)
            for b in range(a + 3, 9)
        ]
    return found


def test_phrases_of_one_sentence_stay_in_one_part():
    parts = parted(phrases(), PLAN)
    assert {name: len(some) for name, some in parts.items()} == {
        "test": 4,
        "development": 3,
        "train": 100,
    }
    assert all(
        len(text.split()) == 8 for name in ("test", "development") for (text, _), _ in parts[name]
    )
    assert nothing_is_shared(parts)
    leaking = {name: [*some, parts["test"][0]] for name, some in parts.items()}
    assert not nothing_is_shared(leaking)


def test_pairs_that_share_a_sentence_stay_in_one_part():
    pairs = [
        ((f"club{a} met there", f"nobody left town{b}"), "1")
        for a in range(0, 40, 2)
        for b in (a, a + 1)
    ]
    parts = parted(pairs + pairs, PLAN)
    assert len(parts["test"]) == 4 and len(parts["development"]) == 3 and parts["train"]
    assert nothing_is_shared(parts)
    assert len({tuple(pair) for some in parts.values() for pair, _ in some}) == sum(
        map(len, parts.values())
    )


@pytest.mark.real_data
def test_the_real_parts_share_no_sentence_and_no_phrase():
    parts = sentences.parts(Path(os.environ["SPANBERT_TUTORIAL_REAL_DATA"]))
    assert parts.keys() == PLANS.keys()
    for task, some in parts.items():
        assert nothing_is_shared(some), task
        assert (len(some["test"]), len(some["development"])) == PLANS[task][1:3]
    sizes = {task: len(some["train"]) for task, some in parts.items()}
    assert sizes == {"sst2": 12_000, "cola": 6_091, "rte": 1_602, "mrpc": 2_979, "stsb": 4_016}
