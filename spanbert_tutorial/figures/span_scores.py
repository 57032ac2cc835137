"""Scores of an answer: a start and an end at each position, and every pair of them. Chapter:
`book/tasks/question_answering`.
"""

from collections.abc import Sequence

import numpy as np

from spanbert_tutorial.figures.diagram import COLORS, HIGH, SMALL, WIDTH, Diagram

CELL = 34  # of the matrix of pairs
GREEN = COLORS["prediction"]
LOOKS = {  # of a cell; a pair that is no span is gray and empty
    "best": f'fill="{GREEN}" stroke="{GREEN}" stroke-width="2.2" fill-opacity=".15"',
    "span": 'fill="currentColor" stroke="currentColor" stroke-opacity=".5" fill-opacity="0"',
    "null": 'fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="4 3"',
    "": 'fill="currentColor" fill-opacity=".22"',
}


def legal_pairs(n: int, first: int, last: int, longest: int) -> np.ndarray:
    """bool [n,n]: whether the span from i to j may be an answer: both in the context, which is
    at positions first to last, i ≤ j, and at most `longest` tokens."""
    i, j = np.indices((n, n))
    return (first <= i) & (i <= j) & (j <= last) & (j - i < longest)


def _best(starts: np.ndarray, ends: np.ndarray, legal: np.ndarray) -> tuple[int, int]:
    pairs = np.where(legal, starts[:, None] + ends[None], -np.inf)
    i, j = np.unravel_index(pairs.argmax(), pairs.shape)
    return int(i), int(j)


def start_and_end(
    tokens: Sequence[str], starts: np.ndarray, ends: np.ndarray, **context: int
) -> Diagram:
    """Each position scored by S as a start and by E as an end; [CLS] is the place of no answer.

    tokens: the input [n], from [CLS] to the last [SEP]; starts, ends: float [n]; context: first,
    last and longest as in `legal_pairs`.
    """
    starts, ends = np.asarray(starts, dtype=float), np.asarray(ends, dtype=float)
    n, first, last = len(tokens), context["first"], context["last"]
    i, j = _best(starts, ends, legal_pairs(n, **context))
    null, best, answer = starts[0] + ends[0], starts[i] + ends[j], " ".join(tokens[i : j + 1])
    scored = zip(tokens, starts, ends, strict=True)
    rows = "; ".join(f"{token} {s:g} and {e:g}" for token, s, e in scored)
    picture = Diagram(
        WIDTH,
        132 + 27 * n,
        "A start and an end for every position",
        "The input is [CLS], the question, [SEP], the context, [SEP]. The start vector S and the "
        f"end vector E score each state, start and end: {rows}. Null score, from [CLS]: {null:g}. "
        f"Best legal span: {answer}, {best:g}. Null odds: {null - best:g}.",
    )
    for x, name in ((40, "input"), (157, "states"), (232, "start S·x"), (312, "end E·x")):
        picture.text(x, 14, name, size=12, soft=True)
    most = max(np.abs([starts, ends]).max(), 1e-9)
    for place, token in enumerate(tokens):
        top, kind = 24 + 27 * place, "prediction" if i <= place <= j else ""
        middle = top + HIGH / 2
        picture.token(4, top, token, kind)
        picture.vector(140, middle - 3, kind)
        look = f'fill="{COLORS["learned"]}"'
        pale = f'{look} fill-opacity=".25" stroke="{COLORS["learned"]}" stroke-width="1.2"'
        for x, score, own in ((206, starts[place], look), (286, ends[place], pale)):
            long = round(44 * max(score, 0) / most, 1)
            picture.path(f"M{x} {middle - 5:g}h{long:g}v10h-{long:g}z", own)
            picture.text(x + long + 5, middle + 4, f"{score:g}", size=12, anchor="start")
    for begin, end, name in ((1, first - 2, "question"), (first, last, "context")):
        top, bottom = 26 + 27 * begin, 26 + 27 * end + HIGH
        picture.line((94, top), (98, top), (98, bottom), (94, bottom))
        picture.text(111, (top + bottom) / 2, name, size=SMALL, turned=True, soft=True)
    sums = {
        "null score, start + end of [CLS]": null,
        f"best span, {answer}: start + end": best,
        "null odds: null score − best span": null - best,
    }
    for place, (name, value) in enumerate(sums.items()):
        y, shown = 44 + 27 * n + 22 * place, f"{value:g}".replace("-", "−")
        picture.text(4, y, name, anchor="start", bold=place == 2)
        picture.text(352, y, shown, anchor="end", bold=place == 2)
    says = "above the threshold: no answer; else the best span"
    return picture.text(4, 110 + 27 * n, says, anchor="start", size=12, soft=True)


def pair_matrix(
    tokens: Sequence[str], starts: np.ndarray, ends: np.ndarray, **context: int
) -> Diagram:
    """Start + end of every pair of positions: a row starts, a column ends; pairs that are no span
    are gray.

    As `start_and_end`; at most eight tokens fit.
    """
    starts, ends = np.asarray(starts, dtype=float), np.asarray(ends, dtype=float)
    n = len(tokens)
    legal = legal_pairs(n, **context)
    best = i, j = _best(starts, ends, legal)
    side, left, top = CELL * n, 70, 74
    spans = ", ".join(
        f"{' '.join(tokens[a : b + 1])} {starts[a] + ends[b]:g}" for a, b in np.argwhere(legal)
    )
    picture = Diagram(
        WIDTH,
        top + side + 52,
        "Every pair of a start and an end",
        f"A row is a start, a column an end. Of {n * n} pairs {int(legal.sum())} are legal: "
        f"{spans}. The best is {' '.join(tokens[i : j + 1])}. [CLS] with [CLS] is the null score, "
        f"{starts[0] + ends[0]:g}. The other {n * n - int(legal.sum()) - 1} are gray.",
    )
    for y, words in ((top - 24, "end →"), (top - 8, "start ↓")):
        picture.text(left - 8, y, words, size=SMALL, anchor="end", soft=True)
    for place, token in enumerate(tokens):
        middle = CELL * place + CELL / 2
        picture.text(left - 8, top + middle + 4, token, anchor="end", size=12)
        picture.text(left + middle + 4, top - 8, token, anchor="start", size=12, turned=True)
    for a, b in np.ndindex(n, n):
        kind = "null" if a == b == 0 else "span" if legal[a, b] else ""
        kind = "best" if (a, b) == best else kind
        x, y = left + CELL * b, top + CELL * a
        picture.rectangle(x + 2, y + 2, CELL - 4, CELL - 4, LOOKS[kind], 3)
        if kind:
            score = f"{starts[a] + ends[b]:g}"
            picture.text(x + CELL / 2, y + CELL / 2 + 4.5, score, bold=kind == "best")
    legend = {"best": "best span", "null": "null score", "": "no span"}
    for place, (kind, words) in enumerate(legend.items()):
        x = 20 + 116 * place
        picture.rectangle(x, top + side + 22, 16, 16, LOOKS[kind], 3)
        picture.text(x + 22, top + side + 35, words, anchor="start", size=12)
    return picture
