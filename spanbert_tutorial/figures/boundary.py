"""Figure 1 of the SpanBERT paper, redrawn: what each head reads to predict a masked word. Chapters:
`book/spanbert/boundary`, `book/welcome`.
"""

from typing import NamedTuple

import numpy as np

from spanbert_tutorial.figures.diagram import HIGH, SMALL, WIDTH, Diagram, subscript, text_width
from spanbert_tutorial.figures.explorer import Explorer
from spanbert_tutorial.spanbert.boundary import boundary_targets

WORDS = (
    "Super Bowl 50 was an American football game to determine the champion".split()
)  # SpanBERT, Figure 1
SPAN = (5, 8)  # "an American football game", counted from 1
WORD = 7  # "football"
ORDINALS = ("first", "second", "third", "fourth")
ROW = 25  # of the drawing: from token to token
TOP = 26  # the first one's upper edge
HEADS = 236  # where the heads begin


class Reads(NamedTuple):
    """What the heads read to predict one word; positions from 1, as the paper counts. left, right:
    the span's boundary tokens; offset: j of p_j, None when the word is not masked."""

    left: int
    right: int
    offset: int | None


def reads(span: tuple[int, int], word: int) -> Reads:
    """What feeds the heads for `word` when the words first..last are masked, by the rows of the
    training. The span touches no edge of the sentence."""
    masked = np.zeros((1, len(WORDS)), dtype=bool)
    masked[0, span[0] - 1 : span[1]] = True
    rows = boundary_targets(masked, np.arange(len(WORDS))[None], np.array([len(WORDS)]))
    offsets = rows.offset[rows.labels == word - 1].tolist()
    # into the model's input: [CLS] stands before word 1
    return Reads(int(rows.left[0]), int(rows.right[0]), offsets[0] + 1 if offsets else None)


def description(span: tuple[int, int], word: int) -> str:
    """The drawing in words."""
    left, right, offset = reads(span, word)
    name = WORDS[word - 1]
    hidden = " ".join(WORDS[span[0] - 1 : span[1]])
    start = f"The span “{hidden}” is masked. The encoder gives each token a hidden state x. "
    if offset is None:
        return start + f"“{name}” is token {word} and is not masked, so no head predicts it."
    beside = ", ".join(
        f"x{i}, the hidden state of the boundary token “{WORDS[i - 1]}”" for i in (left, right)
    )
    return (
        f"{start}To predict “{name}”, the MLM head reads x{word}, that word's own hidden state. "
        f"The SBO head reads {beside}, and p{offset}, because “{name}” is {ORDINALS[offset - 1]} "
        "in the span. The loss is the sum of both."
    )


def draw(span: tuple[int, int] = SPAN, word: int = WORD) -> Diagram:
    """The figure for a masked span and one word, both counted from 1: the sentence runs
    downwards."""
    fed = reads(span, word)
    picture = Diagram(WIDTH, 376, "What each head of SpanBERT reads", description(span, word))
    for x, name in ((43, "input"), (117, "encoder"), (176, "states")):
        picture.text(x, 14, name, size=SMALL, soft=True)
    look = 'fill="currentColor" fill-opacity=".09" stroke="currentColor" stroke-opacity=".35"'
    picture.rectangle(105, 21, 24, len(WORDS) * ROW + 4, look, 8)
    seen = "each state has seen all tokens"
    picture.text(121, TOP + 6 * ROW, seen, size=SMALL, turned=True, soft=True)
    for place, text in enumerate(WORDS, start=1):
        masked = span[0] <= place <= span[1]
        kind = "masked" if masked else "boundary" if place in (fed.left, fed.right) else ""
        middle = _middle(place)
        wide = picture.token(4, middle - HIGH / 2, "[MASK]" if masked else text, kind)
        picture.line((5 + wide, middle), (105, middle)).arrow(130, middle, 140, middle)
        picture.text(158, middle + 4, f"x{subscript(place)}", size=SMALL, anchor="end", soft=True)
        picture.vector(161, middle - 3, kind)
    if fed.offset:
        return _heads(picture, fed, word, fed.offset)
    idle = f"“{WORDS[word - 1]}”", "is not masked:", "no head predicts it,", "it adds no loss"
    for place, line in enumerate(idle):
        picture.text(HEADS + 52, 160 + 18 * place, line, soft=bool(place))
    return picture


def _middle(place: int) -> float:
    """Height of a token's middle."""
    return TOP + ROW * (place - 1) + HIGH / 2


def _heads(picture: Diagram, fed: Reads, word: int, offset: int) -> Diagram:
    """Both heads with what flows into them, and the loss."""
    name = WORDS[word - 1]
    wide = 2 * round(text_width(name) / 2) + 12
    middle = HEADS + 60
    left, right, own, j = map(subscript, (fed.left, fed.right, word, offset))
    for top, kind, lines in (
        (78, "boundary", ["SBO head", f"x{left}, x{right}, p{j}"]),
        (248, "masked", ["MLM head", f"x{own}"]),
    ):
        picture.head(HEADS, top, 120, 44, lines, kind).arrow(middle, top - 1, middle, top - 22)
        picture.token(middle - wide / 2, top - 45, name, "prediction", wide)
    picture.arrow(198, _middle(word), HEADS + 3, 274, "masked", bend=True)
    picture.arrow(198, _middle(fed.left), HEADS + 7, 98, "boundary", bend=True)
    picture.arrow(198, _middle(fed.right), HEADS + 3, 112, "boundary", bend=True)
    picture.vector(middle - 17, 142, "learned").arrow(middle, 140, middle, 124, "learned")
    picture.text(middle, 163, f"p{j}: {ORDINALS[offset - 1]} in the span", size=SMALL)
    loss = f"loss = −ln P({name} | x{own}) − ln P({name} | x{left}, x{right}, p{j})"
    return picture.loss(4, 344, 352, loss)


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
