"""The check of the exercise on directions names each likely mistake."""

import numpy as np
import pytest
import torch

from spanbert_tutorial.exercises.directions import check_pattern, diagnose_pattern


def right(name, real):
    n = len(real)
    square = torch.ones(n, n, dtype=torch.bool)
    shape = {"left-to-right": square.tril(), "right-to-left": square.triu()}.get(
        name, ~torch.eye(n, dtype=torch.bool)
    )
    return shape & real


def by_position(name, real):
    row, column = np.indices((len(real), len(real)))
    triangles = {"left-to-right": column <= row, "right-to-left": column >= row}
    return triangles.get(name, column != row) * real.numpy() + 0


def in_loops(name, real):
    rules = {"left-to-right": lambda i, j: j <= i, "right-to-left": lambda i, j: i <= j}
    allowed = rules.get(name, lambda i, j: i != j)
    n = len(real)
    return [[float(allowed(i, j) and bool(real[j])) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize("attempt", [right, by_position, in_loops])
def test_right_answers(attempt, capsys):
    check_pattern(attempt)
    assert capsys.readouterr().out.startswith("Correct")


def only(name, answer):
    """Right but for one name."""
    return lambda wanted, real: answer(real) if wanted == name else right(wanted, real)


N = 7
SQUARE = torch.ones(N, N, dtype=torch.bool)
ITSELF = torch.eye(N, dtype=torch.bool)


@pytest.mark.parametrize(
    "name, answer, sentence",
    [
        ("left-to-right", lambda real: SQUARE.tril(), "let tokens look at padding. Close"),
        ("right-to-left", lambda real: SQUARE.triu(), "let tokens look at padding. Close"),
        ("all but yourself", lambda real: ~ITSELF, "let tokens look at padding. Close"),
        (
            "left-to-right",
            lambda real: SQUARE.triu() & real,
            "rows and columns are swapped (row i",
        ),
        (
            "right-to-left",
            lambda real: SQUARE.tril() & real,
            "or you gave the pattern of the other direction.",
        ),
        ("left-to-right", lambda real: SQUARE.triu(), "of the other direction), and you let"),
        ("left-to-right", lambda real: SQUARE.tril(-1) & real, "your diagonal is missing: a token"),
        ("left-to-right", lambda real: SQUARE.tril(-1), "(a strict triangle), and you let"),
        ("right-to-left", lambda real: SQUARE.triu(1) & real, "your diagonal is missing: a token"),
        (
            "left-to-right",
            lambda real: SQUARE.triu(1) & real,
            "the strict triangle of the other direction: flip",
        ),
        (
            "left-to-right",
            lambda real: SQUARE.triu(1),
            "true and false are swapped (and padding",
        ),
        (
            "right-to-left",
            lambda real: SQUARE.tril(-1) & real,
            "the strict triangle of the other direction: flip",
        ),
        (
            "left-to-right",
            lambda real: ~(SQUARE.tril() & real),
            "true and false are swapped: true",
        ),
        (
            "all but yourself",
            lambda real: ~(~ITSELF & real),
            "true and false are swapped: true",
        ),
        ("all but yourself", lambda real: ITSELF & real, "every token look only at itself"),
        ("all but yourself", lambda real: SQUARE & real, "the diagonal must be closed"),
        ("all but yourself", lambda real: SQUARE, "at themselves, and at padding"),
        ("left-to-right", lambda real: SQUARE & real, "close one side"),
        ("left-to-right", lambda real: None, "returns nothing"),
        (
            "left-to-right",
            lambda real: "triangle",
            "returns 'triangle' (str). Return a tensor of the shape [n,n]",
        ),
        ("left-to-right", lambda real: SQUARE[:3], "the shape is [3, 7]"),
        (
            "left-to-right",
            lambda real: torch.zeros(N, N).masked_fill(~SQUARE.tril(), -torch.inf),
            "puts in -inf itself",
        ),
        ("left-to-right", lambda real: real[:99] @ 3, "stopped with"),
        (
            "right-to-left",
            lambda real: right("right-to-left", real) & (torch.arange(N) != 3),
            "row 1, column 3 is wrong",
        ),
    ],
)
def test_each_mistake_is_named(name, answer, sentence):
    said = diagnose_pattern(only(name, answer))
    assert said.startswith(f'Not yet: for "{name}"') and sentence in said


def test_an_attempt_that_ignores_the_name_hears_of_the_other_direction():
    said = diagnose_pattern(lambda name, real: right("left-to-right", real))
    assert (
        said.startswith('Not yet: for "right-to-left"')
        and "the pattern of the other direction" in said
    )
