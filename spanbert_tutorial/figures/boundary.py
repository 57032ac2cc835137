"""Figure 1 of the SpanBERT paper, redrawn: what each head reads to predict a masked word. Chapters:
`book/spanbert/boundary`, `book/welcome`.
"""

from dataclasses import dataclass

import numpy as np

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import HIGH, SMALL, WIDTH, Diagram, subscript, text_width
from spanbert_tutorial.figures.explorer import Explorer
from spanbert_tutorial.spanbert.boundary import boundary_targets

WORDS = (
    "Super Bowl 50 was an American football game to determine the champion".split()
)  # SpanBERT, Figure 1
SPAN = (5, 8)  # "an American football game", counted from 1
WORD = 7  # "football"
ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Reads:
    """What the heads read to predict one word; places from 1, as the paper counts. left, right: the
    span's boundary tokens; place: j of p_j, None when the word is not masked."""

    left: int
    right: int
    place: int | None


def reads(span: tuple[int, int], word: int) -> Reads:
    """What feeds the heads for `word` when the words first..last are masked. The rows are those of
    the training.

    Raises InputError when the span touches an edge of the sentence: such a span has no two boundary
    tokens.
    """
    masked = np.zeros((1, len(WORDS)), dtype=bool)
    masked[0, span[0] - 1 : span[1]] = True
    ids = np.arange(len(WORDS))[None]
    rows = boundary_targets(masked, ids, np.array([len(WORDS)]))
    if not len(rows.labels):
        raise InputError(
            f"the span {span} has no boundary token on one side: choose from 2 to {len(WORDS) - 1}."
        )
    # into the model's input: [CLS] stands before word 1
    left, right = int(rows.left[0]), int(rows.right[0])
    offsets = rows.offset[rows.labels == word - 1]
    return Reads(left, right, int(offsets[0]) + 1 if len(offsets) else None)


# of the drawing: from token to token, and the first one's upper edge
ROW = 25
TOP = 26
HEADS = 236  # where the heads begin


def description(span: tuple[int, int], word: int) -> str:
    """The drawing in words."""
    fed = reads(span, word)
    name = WORDS[word - 1]
    hidden = " ".join(WORDS[span[0] - 1 : span[1]])
    start = f"The span “{hidden}” is masked. The encoder gives each token a hidden state x. "
    if fed.place is None:
        return start + f"“{name}” is token {word} and is not masked, so no head predicts it."
    left, right = (
        f"x{i}, the hidden state of the boundary token “{WORDS[i - 1]}”"
        for i in (fed.left, fed.right)
    )
    return (
        start
        + f"To predict “{name}”, the MLM head reads x{word}, that word's own hidden state. The "
        "SBO head reads "
        f"{left}, {right}, and p{fed.place}, because “{name}” is {ORDINALS[fed.place - 1]} in "
        f"the span. "
        "The loss is the sum of both."
    )


def draw(span: tuple[int, int] = SPAN, word: int = WORD) -> Diagram:
    """The figure for a masked span and one word, both counted from 1: the sentence runs
    downwards."""
    fed = reads(span, word)
    picture = Diagram(WIDTH, 376, "What each head of SpanBERT reads", description(span, word))
    for x, name in ((43, "input"), (117, "encoder"), (176, "states")):
        picture.text(x, 14, name, size=SMALL, soft=True)
    picture.box(105, 21, 24, len(WORDS) * ROW + 4)
    picture.text(
        121, TOP + 6 * ROW, "each state has seen all tokens", size=SMALL, turned=True, soft=True
    )
    for place, text in enumerate(WORDS, start=1):
        masked = span[0] <= place <= span[1]
        kind = "masked" if masked else "boundary" if place in (fed.left, fed.right) else ""
        middle = _middle(place)
        wide = picture.token(4, middle - HIGH / 2, "[MASK]" if masked else text, kind)
        picture.line((5 + wide, middle), (105, middle))
        picture.arrow(130, middle, 140, middle)
        picture.text(158, middle + 4, f"x{subscript(place)}", size=SMALL, anchor="end", soft=True)
        picture.vector(161, middle - 3, kind)
    return _heads(picture, fed, word, fed.place) if fed.place else _idle(picture, word)


def _middle(place: int) -> float:
    """Height of a token's middle."""
    return TOP + ROW * (place - 1) + HIGH / 2


def _heads(picture: Diagram, fed: Reads, word: int, number: int) -> Diagram:
    """Both heads with what flows into them, and the loss."""
    name = WORDS[word - 1]
    wide = 2 * round(text_width(WORDS[word - 1]) / 2) + 12
    middle = HEADS + 60
    left, right, own, place = (subscript(i) for i in (fed.left, fed.right, word, number))
    for top, kind, lines in (
        (78, "boundary", ["SBO head", f"x{left}, x{right}, p{place}"]),
        (248, "masked", ["MLM head", f"x{own}"]),
    ):
        picture.head(HEADS, top, 120, 44, lines, kind)
        picture.arrow(middle, top - 1, middle, top - 22)
        picture.token(middle - wide / 2, top - 45, name, "prediction", wide)
    picture.arrow(198, _middle(word), HEADS + 3, 274, "masked", bend="h")
    picture.arrow(198, _middle(fed.left), HEADS + 7, 98, "boundary", bend="h")
    picture.arrow(198, _middle(fed.right), HEADS + 3, 112, "boundary", bend="h")
    picture.vector(middle - 17, 142, "learned").arrow(middle, 140, middle, 124, "learned")
    picture.text(middle, 163, f"p{place}: {ORDINALS[number - 1]} in the span", size=SMALL)
    return picture.loss(
        4, 344, 352, f"loss = −ln P({name} | x{own}) − ln P({name} | x{left}, x{right}, p{place})"
    )


def _idle(picture: Diagram, word: int) -> Diagram:
    """Without a masked word there is nothing to predict."""
    lines = [f"“{WORDS[word - 1]}”", "is not masked:", "no head predicts it,", "it adds no loss"]
    for place, line in enumerate(lines):
        picture.text(HEADS + 52, 160 + 18 * place, line, soft=bool(place))
    return picture


class Panel:
    """A diagram for an explorer, which asks its panels for HTML."""

    def __init__(self, picture: Diagram) -> None:
        self.picture = picture

    def __repr__(self) -> str:
        return repr(self.picture)

    def _repr_html_(self) -> str:
        return self.picture.svg(alone=False)


def figure_one() -> Explorer:
    """The figure alive: choose the masked span and the word to predict."""
    spans = [SPAN, (5, 7), (6, 8), (6, 7), (7, 8), (7, 7)]
    hidden = {" ".join(WORDS[first - 1 : last]): (first, last) for first, last in spans}
    words = {WORDS[word - 1]: word for word in (WORD, *range(SPAN[0], SPAN[1] + 1))}
    return Explorer(
        {"masked": list(hidden), "word to predict": list(words)},
        lambda **chosen: Panel(draw(hidden[chosen["masked"]], words[chosen["word to predict"]])),
    )
