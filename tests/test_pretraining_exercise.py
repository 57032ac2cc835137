"""The exercise's check accepts the paper's loss and names each likely mistake; the curves draw what
they are given; the chapter's asserts about filled spans refuse other numbers."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

from environment import ROOT
from spanbert_tutorial.exercises.pretraining_spanbert import (
    CASES,
    MISTAKES,
    diagnose_loss,
    paper_loss,
)
from spanbert_tutorial.figures.curves import draw_arms, draw_curves, draw_intervals, smoothed


def test_the_papers_loss_is_accepted_and_by_hand():
    assert diagnose_loss(paper_loss).startswith("Correct")
    assert paper_loss(*CASES[0]) == (1 + 2 + 3 + 4 + 0.5 + 1.5) / 4


@pytest.mark.parametrize("mistake, meaning", MISTAKES)
def test_each_mistake_is_named(mistake, meaning):
    assert meaning in diagnose_loss(mistake)


def test_other_answers_are_shown_beside_the_wanted_ones():
    assert (
        "and sbo = [0.5, 1.5, None, None], the right answer is 3.0, and yours is 7.0"
        in diagnose_loss(lambda mlm, sbo: 7.0)
    )
    assert "returns nothing" in diagnose_loss(lambda mlm, sbo: None)


def test_smoothing_by_hand():
    assert smoothed([1, 2, 3, 6], 2).tolist() == [1.5, 2.5, 4.5]


def test_arms_have_a_dot_a_seed_and_a_stroke_at_the_mean():
    figure = draw_arms(
        {"names": {"token": [9.0, 11.0], "span": [12.0, 14.0]}, "kinds": {"token": [75.0]}},
        {"names": ("frequency", 7.8)},
    )
    names, kinds = figure.axes
    places = [
        line.get_xdata().tolist() if hasattr(line.get_xdata(), "tolist") else list(line.get_xdata())
        for line in names.lines
    ]
    assert places == [[9.0, 11.0], [10.0, 10.0], [12.0, 14.0], [13.0, 13.0], [7.8, 7.8]]
    assert [text.get_text() for text in names.texts] == ["frequency"] and not kinds.texts
    assert names.get_ylim()[0] > names.get_ylim()[1]  # the first arm above
    plt.close(figure)


def test_curves_and_intervals_show_their_numbers():
    figure = draw_curves(
        {"a": ([1, 2], [5.0, 4.0]), "b": ([1, 2], [5.5, 4.5])}, {"level": 4.8}, "steps"
    )
    axis = figure.axes[0]
    assert [line.get_label() for line in axis.get_lines()][:2] == ["a", "b"]
    assert (
        np.array_equal(axis.get_lines()[1].get_ydata(), [5.5, 4.5]) and axis.get_xlabel() == "steps"
    )
    assert axis.get_lines()[0].get_linestyle() != axis.get_lines()[1].get_linestyle()
    figure = draw_intervals({"first": (0.5, 0.1), "second": (-0.2, 0.3)}, "difference")
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["first", "second"]
    assert axis.get_yticks()[0] > axis.get_yticks()[1]  # the first above
    plt.close("all")


# --- the chapter's comparison with two counts ---------------------------------------

MEASURED = {
    1: {"MLM": 0.58, "SBO": 0.61, "always": 0.04, "between": 0.67},
    2: {"MLM": 0.24, "SBO": 0.29, "always": 0.0, "between": 0.46},
    3: {"MLM": 0.06, "SBO": 0.10, "always": 0.0, "between": 0.35},
    4: {"MLM": 0.02, "SBO": 0.01, "always": 0.0, "between": 0.29},
}


def check_shares(shares: dict) -> None:
    """Runs the asserts that the chapter makes about its filled spans."""
    chapter = nbformat.read(ROOT / "book" / "spanbert" / "pretraining_spanbert.ipynb", as_version=4)
    (source,) = (cell.source for cell in chapter.cells if "wanted = {\n    1:" in cell.source)
    exec(source[source.index("wanted = {") :], {"np": np, "shares": shares})


def swapped(first: str, second: str) -> dict:
    """The shares with two arms exchanged."""
    other = {first: second, second: first}
    return {
        length: {name: row[other.get(name, name)] for name in row}
        for length, row in MEASURED.items()
    }


def test_the_chapter_accepts_what_was_measured():
    check_shares(MEASURED)


@pytest.mark.parametrize(
    "wrong",
    [
        swapped("MLM", "always"),
        swapped("SBO", "between"),
        swapped("MLM", "SBO"),
        {
            length: row | {"MLM": 0.0, "SBO": 0.0} for length, row in MEASURED.items()
        },  # an untrained model
        MEASURED | {2: MEASURED[2] | {"SBO": 0.34}},
    ],
    ids=["MLM and always", "SBO and between", "MLM and SBO", "untrained", "one number"],
)
def test_the_chapter_refuses_other_shares(wrong):
    with pytest.raises(AssertionError):
        check_shares(wrong)
