"""Numbers that are powers of ten apart, each on its own line. Pages: `book/evidence/paper_tables`,
`book/workshop/engine`.
"""

import math
from collections.abc import Mapping

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import COLORS, WIDTH, Diagram

# of the scale
LEFT = 12
RIGHT = 348
# heights of a scale's name, of a number, and below the last
HEAD = 34
ROW = 40
LAST = 16


def draw_scales(scales: Mapping[str, Mapping[str, tuple[float, str]]], title: str) -> Diagram:
    """Scales one below the other. scales: name of a scale → name of a row → (number, the number as
    text).

    On all scales one step to the right is ten times as much; ticks stand at powers of ten. Raises
    InputError for no number, or one that is not above 0.
    """
    numbers = [number for rows in scales.values() for number, _ in rows.values()]
    if not numbers or min(numbers) <= 0:
        raise InputError(f"the numbers are {numbers}: give some, all above 0.")
    high = sum(HEAD + ROW * len(rows) for rows in scales.values()) + LAST
    picture = Diagram(WIDTH, high, title, told(scales))
    top = 0.0
    steps = max(decades(rows)[1] for rows in scales.values())
    for name, rows in scales.items():
        first, _ = decades(rows)
        picture.text(LEFT, top + 20, name, anchor="start", bold=True)
        for place, (row, (number, text)) in enumerate(rows.items()):
            y = top + HEAD + ROW * place + 24
            draw_row(picture, y, (math.log10(number) - first) / steps, steps)
            picture.text(LEFT, y - 10, row, anchor="start", size=12)
            picture.text(RIGHT, y - 10, text, anchor="end", size=12)
        top += HEAD + ROW * len(rows)
    return picture


def draw_row(picture: Diagram, y: float, share: float, steps: int) -> None:
    """A line with ticks, and a dot at a share of its length, from which the line is thick to the
    left."""
    wide = RIGHT - LEFT
    ticks = "".join(f"M{LEFT + wide * step / steps:.1f} {y - 3:g}v6" for step in range(steps + 1))
    picture.path(
        f"M{LEFT} {y:g}h{wide}{ticks}", 'stroke="currentColor" stroke-opacity=".35" fill="none"'
    )
    x = LEFT + wide * share
    color = COLORS["masked"]
    picture.path(f"M{LEFT} {y:g}H{x:.1f}", f'stroke="{color}" stroke-width="3"')
    picture.path(f"M{x - 5:.1f} {y:g}a5 5 0 1 0 10 0a5 5 0 1 0-10 0", f'fill="{color}"')


def decades(rows: Mapping[str, tuple[float, str]]) -> tuple[int, int]:
    """The power of ten below the least number, and how many powers from there reach the
    greatest."""
    least, most = (pick(number for number, _ in rows.values()) for pick in (min, max))
    first = math.floor(math.log10(least))
    return first, max(1, math.ceil(math.log10(most)) - first)


def told(scales: Mapping[str, Mapping[str, tuple[float, str]]]) -> str:
    """The scales in words."""
    rows = [
        f"{name}: {', '.join(f'{row} {text}' for row, (_, text) in inside.items())}"
        for name, inside in scales.items()
    ]
    return "; ".join(rows) + ". One step to the right is ten times as much."
