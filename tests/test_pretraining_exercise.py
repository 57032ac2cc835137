"""The exercise's check accepts the paper's loss and names each likely mistake; the curves draw what they are given."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from spanbert_tutorial.exercises.pretraining_spanbert import CASES, MISTAKES, diagnose_loss, paper_loss
from spanbert_tutorial.figures.curves import draw_curves, draw_intervals, smoothed


def test_the_papers_loss_is_accepted_and_by_hand():
    assert diagnose_loss(paper_loss).startswith("Correct")
    assert paper_loss(*CASES[0]) == (1 + 2 + 3 + 4 + 0.5 + 1.5) / 4


@pytest.mark.parametrize("mistake, meaning", MISTAKES)
def test_each_mistake_is_named(mistake, meaning):
    assert meaning in diagnose_loss(mistake)


def test_other_answers_are_shown_beside_the_wanted_ones():
    assert "wanted are [3.0, 2.0, 3.333]" in diagnose_loss(lambda mlm, sbo: 7.0)
    assert "returns nothing" in diagnose_loss(lambda mlm, sbo: None)


def test_smoothing_by_hand():
    assert smoothed([1, 2, 3, 6], 2).tolist() == [1.5, 2.5, 4.5]


def test_curves_and_intervals_show_their_numbers():
    figure = draw_curves({"a": ([1, 2], [5.0, 4.0]), "b": ([1, 2], [5.5, 4.5])}, {"level": 4.8}, "steps")
    axis = figure.axes[0]
    assert [line.get_label() for line in axis.get_lines()][:2] == ["a", "b"]
    assert np.array_equal(axis.get_lines()[1].get_ydata(), [5.5, 4.5]) and axis.get_xlabel() == "steps"
    assert axis.get_lines()[0].get_linestyle() != axis.get_lines()[1].get_linestyle()
    figure = draw_intervals({"first": (0.5, 0.1), "second": (-0.2, 0.3)}, "difference")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["second", "first"]
    plt.close("all")
