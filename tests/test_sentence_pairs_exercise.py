"""The check of the pairs exercise accepts right attempts, also written differently, and names each
likely mistake."""

import numpy as np
import pytest

from spanbert_tutorial.exercises.sentence_pairs import check_pair, diagnose_pair

IS_NEXT = 0
NOT_NEXT = 1


def pair(
    documents, number, at, stop, rng, *, lowest=1, share=0.5, labels=(IS_NEXT, NOT_NEXT), home=None
):
    """A right attempt with knobs for the wrong ones."""
    middle = int(rng.integers(at + lowest, stop))
    first = documents[number][at:middle]
    rest = documents[number][middle:stop]
    if rng.random() >= share:
        return first, rest, labels[0], stop
    others = [document for i, document in enumerate(documents) if i != number]
    other = documents[home] if home is not None else others[rng.integers(len(others))]
    begin = int(rng.integers(len(other)))
    return first, other[begin : begin + 2], labels[1], middle


def test_a_right_attempt(capsys):
    check_pair(pair)
    assert capsys.readouterr().out.startswith("Correct")


def test_a_right_attempt_written_differently():
    def other_way(documents, number, at, stop, rng):
        coin = rng.random() < 0.5
        cut = int(rng.choice(np.arange(1, stop - at)))
        text = list(documents[number])
        if coin:  # the other way round of the coin, one borrowed sentence, tuples instead of lists
            return (
                tuple(text[at : at + cut]),
                tuple(text[at + cut : stop]),
                np.int64(0),
                at + cut + (stop - at - cut),
            )
        borrowed = documents[(number + 1 + int(rng.integers(3))) % 4]
        return tuple(text[at : at + cut]), (borrowed[int(rng.integers(7))],), np.int64(1), at + cut

    assert diagnose_pair(other_way).startswith("Correct")


def test_a_list_of_four_things_will_do():
    assert diagnose_pair(lambda *given: list(pair(*given))).startswith("Correct")


def forgets_stop(documents, number, at, stop, rng):
    first, second, label, next_at = pair(documents, number, at, stop, rng)
    return (
        first,
        documents[number][at + len(first) :] if label == IS_NEXT else second,
        label,
        next_at,
    )


def borrows(choose):
    """An attempt whose NotNext text is `choose(documents, number, rng)`."""

    def attempt(documents, number, at, stop, rng):
        first, second, label, next_at = pair(documents, number, at, stop, rng)
        return (
            first,
            choose(documents, number, rng) if label == NOT_NEXT else second,
            label,
            next_at,
        )

    return attempt


def behind_the_end(documents, number, rng):
    start = int(rng.integers(len(documents[0]) + 1))
    return documents[(number + 1) % 4][start : start + 2]


def next_document(documents, number, rng):
    start = int(rng.integers(len(documents[0])))
    return documents[(number + 1) % 4][start : start + 2]


def first_sentences(documents, number, rng):
    return documents[(number + 1 + int(rng.integers(3))) % 4][:2]


def from_the_same_document(documents, number, at, stop, rng):
    first, second, label, next_at = pair(documents, number, at, stop, rng)
    return first, [documents[number][0]] if label == NOT_NEXT else second, label, next_at


def consumes_the_replaced_part(*given):
    return *pair(*given)[:3], given[3]


def reads_twice(documents, number, at, stop, rng):
    first, second, label, _ = pair(documents, number, at, stop, rng)
    return first, second, label, at + len(first)


def one_place(documents, number, at, stop, rng):
    first, second, label, next_at = pair(documents, number, at, at + 2, rng)
    return (
        first,
        documents[number][at + 1 : stop] if label == IS_NEXT else second,
        label,
        [stop, next_at][label],
    )


def mixed(*given):
    first, second, label, next_at = pair(*given)
    return first, second, label if given[4].random() < 0.5 else 1 - label, next_at


def backwards(*given):
    first, second, label, next_at = pair(*given)
    return first[::-1] if len(first) > 1 else ["?"], second, label, next_at


def from_two_documents(documents, number, at, stop, rng):
    first, second, label, next_at = pair(documents, number, at, stop, rng)
    others = [document[0] for i, document in enumerate(documents) if i != number]
    return first, others[:2] if label == NOT_NEXT else second, label, next_at


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda *given: None, "returns nothing"),
        (lambda *given: pair(*given)[:3], "Return four things"),
        (lambda *given: pair(*given, lowest=0), "Split after the first sentence at the earliest"),
        (lambda *given: pair(*given, lowest=0), "draw from at + 1"),
        (
            lambda documents, number, at, stop, rng: (documents[number][at:stop], [], 1, stop),
            "second segment is empty",
        ),
        (
            lambda documents, number, at, stop, rng: (documents[number][at:stop], ["a1"], 1, stop),
            "is the whole chunk",
        ),
        (forgets_stop, "End it before sentence `stop`"),
        (borrows(behind_the_end), "a borrowed segment is empty"),
        (borrows(next_document), "Draw both"),
        (borrows(first_sentences), "Draw both"),
        (backwards, "It is the chunk's beginning, in order"),
        (
            lambda *given: pair(*given, labels=("IsNext", "NotNext")),
            "Give 0 for IsNext and 1 for NotNext",
        ),
        (lambda *given: pair(*given, labels=(1, 0)), "you reverse the labels"),
        (mixed, "labels are wrong"),
        (from_the_same_document, "segment from the same document"),
        (from_two_documents, "not a run of sentences of one other document"),
        (consumes_the_replaced_part, "you lose the replaced part of the chunk"),
        (reads_twice, "is used twice"),
        (lambda *given: (*pair(*given)[:3], 99), "the next chunk begins at 99"),
        (lambda *given: pair(*given, share=0), "0% of the pairs are NotNext"),
        (lambda *given: pair(*given, share=1), "100% of the pairs are NotNext"),
        (one_place, "is split only after [1]"),
    ],
)
def test_each_mistake_is_named(attempt, sentence):
    answer = diagnose_pair(attempt)
    assert answer.startswith("Not yet: ") and sentence in answer and answer.endswith(".")
