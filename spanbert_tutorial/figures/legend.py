"""The language of the diagrams on one page. Chapter: `book/notation`."""

from collections.abc import Callable

from spanbert_tutorial.figures.diagram import HIGH, WIDTH, Diagram

LINE, WORDS = 37, 118  # from row to row; where the words begin

# What is drawn at height y, its name, and what it stands for.
ROWS: list[tuple[Callable[[Diagram, float], object], str, str]] = [
    (lambda d, y: d.token(12, y - HIGH / 2, "game"), "token", "a visible token"),
    (
        lambda d, y: d.token(12, y - HIGH / 2, "[MASK]", "masked"),
        "masked token",
        "blue and filled: to be predicted",
    ),
    (
        lambda d, y: d.token(12, y - HIGH / 2, "was", "boundary"),
        "boundary token",
        "orange, underlined: next to a span",
    ),
    (
        lambda d, y: d.token(12, y - HIGH / 2, "game", "prediction"),
        "prediction",
        "green, underlined: predicted by a head",
    ),
    (lambda d, y: d.vector(12, y - 3, "masked"), "vector", "in the color of its token"),
    (lambda d, y: d.matrix(12, y - 14, 4, 7), "matrix", "a grid, with its shape next to it"),
    (
        lambda d, y: d.vector(12, y - 3, "learned"),
        "learned vector",
        "violet: no token's, learned in training",
    ),
    (lambda d, y: d.box(12, y - 14, 84, 28, ["encoder"]), "part of the model", "a soft box"),
    (
        lambda d, y: d.head(12, y - 15, 84, 30, ["head"], "boundary"),
        "head",
        "predicts; in the color of what it reads",
    ),
    (lambda d, y: d.loss(12, y - 13, 84, "loss"), "loss", "a red pill with a double line"),
    (
        lambda d, y: d.arrow(12, y - 6, 92, y - 6).arrow(12, y + 7, 92, y + 7, "boundary"),
        "arrow",
        "what flows, in its color or gray",
    ),
]


def language() -> Diagram:
    """Every shape with its name and its meaning."""
    told = ". ".join(f"{name}: {meaning}" for _, name, meaning in ROWS)
    picture = Diagram(WIDTH, LINE * len(ROWS) + 6, "Shapes and colors of the diagrams", f"{told}.")
    for place, (shape, name, meaning) in enumerate(ROWS):
        middle = 20 + LINE * place
        shape(picture, middle)
        picture.text(WORDS, middle - 3, name, anchor="start", bold=True)
        picture.text(WORDS, middle + 12, meaning, anchor="start", size=12, soft=True)
    return picture
