"""Every check of the exercises takes the right answer, names the likely mistakes that it knows, and
says of anything else what the right answer would be."""

import importlib
import pkgutil

import numpy as np
import pytest

from spanbert_tutorial import exercises
from spanbert_tutorial.bert.sentence_pairs import NOT_NEXT
from spanbert_tutorial.exercises.bert import DOCUMENTS, diagnose_corrupt, diagnose_pair
from spanbert_tutorial.exercises.diagnosis import Check


def token_by_token(ids, selected, rng, mask_id, random_ids):
    made = ids.copy()
    for place in np.flatnonzero(selected):
        draw = rng.random()
        made[place] = (
            mask_id if draw < 0.8 else rng.choice(random_ids) if draw < 0.9 else ids[place]
        )
    return made


def pair_by_coin(documents, number, at, stop, rng):
    text = list(documents[number])
    cut = int(rng.choice(np.arange(1, stop - at)))
    if rng.random() < 0.5:
        return text[at : at + cut], text[at + cut : stop], 0, stop
    other = documents[(number + 1 + int(rng.integers(3))) % 4]
    return text[at : at + cut], [other[int(rng.integers(7))]], 1, at + cut


TABLES = {
    f"{one.name}.{name}": value
    for one in pkgutil.iter_modules(exercises.__path__)
    for name, value in vars(importlib.import_module(f"{exercises.__name__}.{one.name}")).items()
    if isinstance(value, Check)
}
CHECKS = {name: check.diagnose for name, check in TABLES.items()}
CHECKS |= {"corrupt": diagnose_corrupt, "pair": diagnose_pair}
MISTAKES = [
    (name, mistake, sentence)
    for name, check in TABLES.items()
    for sentence, mistake in check.mistakes.items()
]


@pytest.mark.parametrize("name", TABLES)
def test_the_right_answer_is_correct(name):
    """Readers' own ways are the solutions of the chapters, which run there."""
    assert CHECKS[name](TABLES[name].right).startswith("Correct: ")


def test_right_draws_are_correct():
    assert diagnose_corrupt(token_by_token).startswith("Correct: ")
    assert diagnose_pair(pair_by_coin).startswith("Correct: ")


@pytest.mark.parametrize("name, mistake, sentence", MISTAKES)
def test_a_likely_mistake_is_named(name, mistake, sentence):
    assert CHECKS[name](mistake) == f"Not yet: {sentence}"


@pytest.mark.parametrize("name", CHECKS)
def test_anything_else_is_not_yet(name):
    for attempt in (lambda *case: None, lambda *case: 7.5, lambda *case: [7.5], lambda: 1):
        said = CHECKS[name](attempt)
        assert said.startswith("Not yet: ") and "\n" not in said, said


def masked_share(masked, random):
    def attempt(ids, selected, rng, mask_id, random_ids):
        draw = rng.random(len(ids))
        made = np.where(selected & (draw < masked), mask_id, ids)
        replaced = selected & (draw >= masked) & (draw < masked + random)
        return np.where(replaced, rng.choice(random_ids, len(ids)), made)

    return attempt


def two_draws(ids, selected, rng, mask_id, random_ids):
    random, kept = (rng.random(len(ids)) < 0.1 for _ in range(2))
    seen = np.where(random, rng.choice(random_ids, len(ids)), np.where(kept, ids, mask_id))
    return np.where(selected, seen, ids)


@pytest.mark.parametrize(
    "attempt, sentence",
    [
        (two_draws, "drawn independently"),
        (masked_share(1, 0), "every selected token became"),
        (masked_share(0.7, 0.2), "they should be 80/10/10"),
        (lambda ids, *rest: ids[:-1], "the shape"),
        (lambda ids, *rest: ids + 1, "are not masked"),
    ],
)
def test_mistakes_of_corruption(attempt, sentence):
    assert sentence in diagnose_corrupt(attempt)


def changed_pair(change):
    return lambda *case: change(*case[1:4], *pair_by_coin(*case))


@pytest.mark.parametrize(
    "change, sentence",
    [
        (lambda n, at, stop, a, b, label, after: (a, b, label, stop), "lose the replaced part"),
        (lambda n, at, stop, a, b, label, after: (a, b, 1 - label, after), "a label is wrong"),
        (
            lambda n, at, stop, a, b, label, after: (
                (a, [DOCUMENTS[n][0]], label, after) if label == NOT_NEXT else (a, b, label, after)
            ),
            "from the same document",
        ),
    ],
)
def test_mistakes_of_pairs(change, sentence):
    assert sentence in diagnose_pair(changed_pair(change))
