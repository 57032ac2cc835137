"""The check of the positions exercise: right answers pass, and every named mistake gets its own
message."""

import pytest
import torch

from spanbert_tutorial.exercises.roberta import MISTAKES, check_positions, diagnose_positions


def right(ids, pad_id):
    real = (ids != pad_id).long()
    return real.cumsum(1) * real + pad_id


def with_a_loop(ids, pad_id):
    rows = []
    for row in ids.tolist():
        seen = pad_id
        numbers = []
        for token in row:
            seen += token != pad_id
            numbers.append(seen if token != pad_id else pad_id)
        rows.append(numbers)
    return torch.tensor(rows)


def test_right_answers(capsys):
    check_positions(right)
    assert capsys.readouterr().out.startswith("Correct")
    assert diagnose_positions(with_a_loop).startswith("Correct")
    assert diagnose_positions(lambda ids, pad: right(ids, pad).int()).startswith("Correct")


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES)
def test_each_mistake_is_named(mistake, sentence):
    assert diagnose_positions(mistake) in [
        f"Not yet: with pad_id = {pad}, {sentence}" for pad in (1, 3)
    ]
    assert sum(sentence == other for _, other in MISTAKES) == 1


@pytest.mark.parametrize(
    ("attempt", "sentence"),
    [
        (lambda ids, pad: None, "returns nothing"),
        (lambda ids, pad: ids.tolist(), "(list). Return a tensor of the shape [B,n] = (4, 6)"),
        (
            lambda ids, pad: ids[:, :2],
            "type Tensor and shape (4, 2). Return a tensor of the shape [B,n] = (4, 6)",
        ),
        (lambda ids, pad: ids, "Take the steps one by one"),
        (lambda ids: ids, "stopped with TypeError"),
    ],
)
def test_other_answers(attempt, sentence):
    answer = diagnose_positions(attempt)
    assert answer.startswith("Not yet: ") and sentence in answer
