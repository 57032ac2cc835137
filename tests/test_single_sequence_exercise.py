"""The check of the packing exercise accepts right attempts, also written differently, and names
each likely mistake."""

import pytest

from spanbert_tutorial.exercises.single_sequence import (
    CASES,
    check_packing,
    diagnose_packing,
    made_documents,
    pack,
)


def flat(documents):
    return [token for document in documents for sentence in document for token in sentence]


def test_a_right_attempt(capsys):
    check_packing(pack)
    assert capsys.readouterr().out.startswith("Correct")


def test_a_right_attempt_written_differently():
    def other_way(documents, n):
        blocks = []
        for document in documents:
            blocks.append([])
            for sentence in document:
                if len(blocks[-1]) + len(sentence) + 2 <= n:
                    blocks[-1].extend(sentence)
                else:
                    blocks.append(list(sentence))
        return tuple(map(tuple, blocks))

    assert diagnose_packing(other_way).startswith("Correct")


def test_the_cases_are_what_they_say():
    for lengths, n in CASES:
        documents = made_documents(lengths)
        assert flat(documents) == list(range(sum(map(sum, lengths))))
        assert max(map(max, lengths)) <= n - 2 and flat([pack(documents, n)]) == flat(documents)


def across_documents(documents, n):
    return pack([[sentence for document in documents for sentence in document]], n)


def splits(documents, n):
    whole = [flat([document]) for document in documents]
    return [text[i : i + n - 2] for text in whole for i in range(0, len(text), n - 2)]


def without_last_of_document(documents, n):
    return [block for document in documents for block in pack([document], n)[:-1]]


def without_full_test(documents, n):  # closes a block when it is full, and forgets what is left
    blocks = []
    block = []
    for sentence in (sentence for document in documents for sentence in document):
        if len(block) + len(sentence) > n - 2:
            blocks.append(block)
            block = []
        block = block + sentence
    return blocks


def with_empty_blocks(documents, n):
    return [block for document in documents for block in [[], *pack([document], n)]]


def goes_on(documents, n):  # no empty block at the start of a document
    blocks = []
    block = []
    for document in documents:
        for sentence in document:
            if block and len(block) + len(sentence) > n - 2:
                blocks.append(block)
                block = []
            block = block + sentence
        blocks.append(block)
    return blocks


def framed(documents, n):
    return [["[CLS]", *block, "[SEP]"] for block in pack(documents, n)]


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda documents, n: None, "returns nothing"),
        (lambda documents, n: [document for document in documents], "one flat list of tokens"),
        (framed, "you put [CLS] or [SEP] in a block"),
        (with_empty_blocks, "a block is empty"),
        (goes_on, "you continue a block in the next document"),
        (across_documents, "tokens of two documents"),
        (splits, "you end a block inside a sentence"),
        (without_last_of_document, "the last block of a document is lost"),
        (lambda documents, n: pack(documents, n)[:-1], "the last block of all is lost"),
        (without_full_test, "the last block of all is lost"),
        (lambda documents, n: pack(documents, n)[1:], "tokens are lost"),
        (lambda documents, n: [*pack(documents, n), [0]], "twice or out of order"),
        (lambda documents, n: pack(documents, n + 2), "more than n"),
        (lambda documents, n: pack(documents, n + 1), "more than n"),
        (lambda documents, n: pack(documents, n - 1), "closed too early"),
        (lambda documents, n: pack(documents, n - 2), "counted twice"),
        (
            lambda documents, n: [s for document in documents for s in document],
            "its own block",
        ),
    ],
)
def test_each_mistake_is_named(attempt, sentence):
    answer = diagnose_packing(attempt)
    assert answer.startswith("Not yet: ") and sentence in answer and answer.endswith(".")
