"""The check of the encoder's exercise, and the words of its attention figure."""

import math

import matplotlib
import pytest
import torch

from spanbert_tutorial.exercises.bert import MISTAKES, check_attention, diagnose_attention
from spanbert_tutorial.figures.attention import describe_heads, draw_heads

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


def test_heads_in_words_and_as_a_picture():
    left = torch.diag(torch.ones(3), -1) + torch.diag(torch.tensor([1.0, 0, 0, 0]))
    maps = torch.stack([left, torch.full((4, 4), 0.25)])
    tokens = ["a", "b", "c", "<d>"]
    assert describe_heads(maps, tokens).splitlines() == [
        "head 1: a → a, b → a, c → b, <d> → c",
        "head 2: every token looks at all alike",
    ]
    figure = draw_heads(maps, tokens, names=["left", "even"])
    assert [axis.get_title() for axis in figure.axes[:2]] == ["left", "even"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == tokens
