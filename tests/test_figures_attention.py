"""Attention heads in words and as a picture."""

import matplotlib
import torch
from spanbert_tutorial.figures.attention import describe_heads, draw_heads

matplotlib.use("agg")


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
