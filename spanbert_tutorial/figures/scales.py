"""Numbers that are powers of ten apart, each on its own line. Pages: `book/evidence/paper_tables`,
`book/workshop/engine`.
"""

from collections.abc import Mapping
from math import ceil, floor, log10

from spanbert_tutorial.figures.diagram import COLORS, WIDTH, Diagram

LEFT, RIGHT = 12, 348  # of the scale
HEAD, ROW, LAST = 34, 40, 16  # heights: of a scale's name, of a number, below the last
Scale = Mapping[str, tuple[float, str]]  # name of a row → (number above 0, the number as text)


def draw_scales(scales: Mapping[str, Scale], title: str) -> Diagram:
    """Scales one below the other, by name. On all of them one step to the right is ten times as
    much; ticks stand at powers of ten."""
    high = sum(HEAD + ROW * len(rows) for rows in scales.values()) + LAST
    told = "; ".join(
        f"{name}: " + ", ".join(f"{row} {text}" for row, (_, text) in rows.items())
        for name, rows in scales.items()
    )
    picture = Diagram(WIDTH, high, title, f"{told}. One step to the right is ten times as much.")
    firsts = {name: floor(log10(min(rows.values())[0])) for name, rows in scales.items()}
    lasts = (ceil(log10(max(rows.values())[0])) - firsts[name] for name, rows in scales.items())
    steps = max(1, *lasts)
    wide = RIGHT - LEFT
    color = COLORS["masked"]
    top = 0.0
    for name, rows in scales.items():
        picture.text(LEFT, top + 20, name, anchor="start", bold=True)
        for place, (row, (number, text)) in enumerate(rows.items()):
            y = top + HEAD + ROW * place + 24
            x = LEFT + wide * (log10(number) - firsts[name]) / steps
            ticks = "".join(f"M{LEFT + wide * i / steps:.1f} {y - 3:g}v6" for i in range(steps + 1))
            line = 'stroke="currentColor" stroke-opacity=".35" fill="none"'
            picture.path(f"M{LEFT} {y:g}h{wide}{ticks}", line)
            picture.path(f"M{LEFT} {y:g}H{x:.1f}", f'stroke="{color}" stroke-width="3"')
            picture.path(f"M{x - 5:.1f} {y:g}a5 5 0 1 0 10 0a5 5 0 1 0-10 0", f'fill="{color}"')
            picture.text(LEFT, y - 10, row, anchor="start", size=12)
            picture.text(RIGHT, y - 10, text, anchor="end", size=12)
        top += HEAD + ROW * len(rows)
    return picture
