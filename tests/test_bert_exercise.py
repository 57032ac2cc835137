"""The check of the encoder's exercise."""

import math

import matplotlib
import pytest

from spanbert_tutorial.exercises.bert import MISTAKES, check_attention, diagnose_attention

matplotlib.use("agg")


def right(query, key, value, real):
    scores = (query @ key.T / math.sqrt(query.shape[-1])).masked_fill(~real, -1e9)
    return scores.softmax(-1) @ value


def test_a_right_answer(capsys):
    check_attention(right)
    assert capsys.readouterr().out.startswith("Correct")
    assert diagnose_attention(lambda *given: right(*given).float()).startswith("Correct")


@pytest.mark.parametrize("mistake, sentence", MISTAKES)
def test_each_mistake_is_named(mistake, sentence):
    assert diagnose_attention(mistake) == f"Not yet: {sentence}"


@pytest.mark.parametrize(
    "attempt, sentence",
    [
        (lambda *given: None, "returns nothing"),
        (lambda *given: 3, "the function returns 3 (int)"),
        (
            lambda query, *rest: query[:2],
            "type Tensor and shape (2, 4). Return a tensor of the shape [n,d] = (5, 4)",
        ),
        (lambda query, *rest: query, "take the steps one by one"),
        (lambda query: query, "stopped with TypeError"),
    ],
)
def test_other_answers(attempt, sentence):
    assert sentence in diagnose_attention(attempt)
