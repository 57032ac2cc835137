"""Diagrams in one language of shapes and colors, as SVG with text in it. The language:
`book/notation`.

A shape says what a thing is: a token is a small rounded box, a vector a row of cells, a matrix a
grid, a part of the model a large soft box, a head a box with slanted sides, a loss a pill. A color
says whose it is: blue what is masked, orange the boundary, violet what only training fills, green
what a head predicts, red a loss.

All looks stand in attributes, without identifiers, markers or a style sheet: GitHub takes these out
of a notebook. Text and lines have the color of the text around (`currentColor`); the other colors
suit a light and a dark page.
"""

from collections.abc import Sequence
from html import escape
from typing import Self

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.tokens import OTHER_COLORS, STYLES

MARK = "diagram"  # the class of the whole drawing, by which the book's pages know it
WIDTH = 360  # units of a narrow diagram: on a telephone about one pixel each
SHOWN = 1.3  # pixels of a unit where there is room
FONT = "system-ui,Helvetica,Arial,sans-serif"
# of text, in units
SIZE = 13
SMALL = 11
HIGH = 22  # of a token
CELL = 7  # of a vector, with the gap behind it
COLORS = {
    "": "currentColor",
    "masked": f"rgb({STYLES['masked'][1]})",
    "boundary": f"rgb({STYLES['boundary'][1]})",
    "learned": f"rgb({OTHER_COLORS[0]})",
    "prediction": f"rgb({STYLES['kept'][1]})",
    "loss": f"rgb({STYLES['random'][1]})",
}
THIN = 'fill="none" stroke="currentColor" stroke-width="1.2" stroke-opacity=".6"'
# For a file that is shown as a picture and has no page around it; inside a page it meets nothing.
ALONE = "<style>svg:root{color:#1b2733}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}</style>"
NARROW_LETTERS = set("fijlrtI[](){}|.,:;'!· -")
WIDE_LETTERS = set("mwMWGOQ@—")
SUBSCRIPTS = str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋")


def subscript(number: int | str) -> str:
    """The number in small low digits: 12 → ₁₂."""
    return str(number).translate(SUBSCRIPTS)


def text_width(text: str, size: float = SIZE) -> float:
    """About how many units the text takes; fonts differ, so it errs on the wide side."""
    shares = {letter: 0.34 for letter in NARROW_LETTERS} | {letter: 0.9 for letter in WIDE_LETTERS}
    return size * sum(shares.get(letter, 0.58) for letter in text)


class Diagram:
    """A drawing to which shapes are added; coordinates in units, from the upper left corner.

    title: what it shows, in a few words. description: all that it says, in words, for readers who
    do not see it. A notebook shows it as `image/svg+xml`; `text`, also what `print` shows, is title
    and description. Raises InputError when title or description is missing.
    """

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        if not title.strip() or not description.strip():
            raise InputError("a diagram without words: give a title and a description.")
        self.width = width
        self.height = height
        self.title = title
        self.description = description
        # What looks alike is written together, which keeps a drawing small: looks → shapes.
        self.rectangles: dict[str, list[str]] = {}
        self.paths: dict[str, str] = {}
        self.words: dict[str, list[str]] = {}
        self.linked = False  # an image has no links in it, a group may have

    # --- what it is made of ----------------------------------------------------------

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SIZE,
        anchor: str = "middle",
        bold: bool = False,
        soft: bool = False,
        color: str = "",
        turned: bool = False,
        href: str = "",
        tip: str = "",
    ) -> Self:
        """Text whose line stands at y. anchor: "start", "middle" or "end"; soft: paler; turned:
        read upwards; href: where it leads, with a tip for a reader who points at it."""
        looks = [f'font-size="{size:g}"'] * (size != SIZE) + [f'text-anchor="{anchor}"'] * (
            anchor != "middle"
        )
        looks += (
            ['font-weight="600"'] * bold
            + ['fill-opacity=".75"'] * soft
            + [f'fill="{color}"'] * bool(color)
        )
        turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
        word = f'<text x="{x:g}" y="{y:g}"{turn}>{escape(text, quote=False)}</text>'
        if href:
            self.linked = True
            word = f'<a href="{escape(href)}"><title>{escape(tip)}</title>{word}</a>'
        self.words.setdefault(" ".join(looks), []).append(word)
        return self

    def rectangle(
        self, x: float, y: float, width: float, height: float, looks: str, rounded: float = 0
    ) -> Self:
        """A rectangle; looks: its attributes."""
        corner = f' rx="{rounded:g}"' if rounded else ""  # a group cannot hand this down
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.rectangles.setdefault(looks, []).append(f"<rect {place}{corner}/>")
        return self

    def path(self, way: str, looks: str) -> Self:
        """A path; looks: its attributes."""
        self.paths[looks] = self.paths.get(looks, "") + way
        return self

    def token(
        self, x: float, y: float, text: str, kind: str = "", width: float | None = None
    ) -> float:
        """A token; its upper left corner is (x, y). kind: "", "masked", "boundary" or "prediction".
        Returns its width.

        A masked token is filled; a boundary token and a prediction have a thick line below, so none
        of them is told by color alone.
        """
        width = round(text_width(text) + 12) if width is None else width
        color = COLORS[kind]
        line = y + HIGH
        if kind == "masked":
            self.rectangle(x, y, width, HIGH, f'fill="{color}"', 5)
        else:
            look = (
                f'stroke="{color}" stroke-width="1.6"'
                if kind
                else 'stroke="currentColor" stroke-opacity=".5"'
            )
            self.rectangle(x, y, width, HIGH, f'fill="none" {look}', 5)
        if kind in ("boundary", "prediction"):
            self.path(
                f"M{x + 3:g} {line - 1.5:g}h{width - 6:g}", f'stroke="{color}" stroke-width="4"'
            )
        white = "#fff" if kind == "masked" else ""
        self.text(x + width / 2, y + 15.5, text, color=white)
        return width

    def vector(
        self, x: float, y: float, kind: str = "", cells: int = 5, *, down: bool = False
    ) -> Self:
        """A vector: a row of cells that begins at (x, y), or a column. Its shade says nothing about
        its numbers."""
        half = (CELL - 1) / 2
        long = CELL * cells - 1
        way = f"M{x + half:g} {y:g}v{long}" if down else f"M{x:g} {y + half:g}h{long}"
        strength = "" if kind else ' stroke-opacity=".55"'
        dashes = f'stroke-width="{CELL - 1}" stroke-dasharray="{CELL - 1} 1"'
        return self.path(way, f'stroke="{COLORS[kind]}"{strength} {dashes}')

    def matrix(
        self, x: float, y: float, rows: int, columns: int, kind: str = "", cell: float = CELL
    ) -> Self:
        """A matrix: a grid whose upper left corner is (x, y)."""
        wide = columns * cell
        high = rows * cell
        lines = "".join(f"M{x:g} {y + cell * i:g}h{wide:g}" for i in range(rows + 1))
        lines += "".join(f"M{x + cell * i:g} {y:g}v{high:g}" for i in range(columns + 1))
        self.rectangle(x, y, wide, high, f'fill="{COLORS[kind]}" fill-opacity=".18"')
        return self.path(
            lines, f'stroke="{COLORS[kind]}" stroke-opacity=".8" stroke-width=".8" fill="none"'
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: Sequence[str] = (),
        kind: str = "",
    ) -> Self:
        """A part of the model: a large soft box; the first line of its text is its name."""
        color = COLORS[kind]
        look = f'fill="{color}" fill-opacity=".09" stroke="{color}" stroke-opacity=".35"'
        self.rectangle(x, y, width, height, look, 8)
        return self.lines(x + width / 2, y + height / 2, lines)

    def head(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: Sequence[str] = (),
        kind: str = "",
        *,
        down: bool = False,
    ) -> Self:
        """A head: a box with slanted sides, narrow where its prediction leaves: at the top, or
        below with `down`."""
        slant = min(14, width / 8)
        color = COLORS[kind]
        wide, narrow = (y, y + height) if down else (y + height, y)
        way = (
            f"M{x:g} {wide:g}L{x + slant:g} {narrow:g}H{x + width - slant:g}L{x + width:g} "
            f"{wide:g}Z"
        )
        look = f'fill="{color}" fill-opacity=".12" stroke="{color}" stroke-width="1.6"'
        self.path(way, look)
        return self.lines(x + width / 2, y + height / 2, lines)

    def loss(self, x: float, y: float, width: float, text: str) -> Self:
        """A loss: a red pill with a double line."""
        look = f'stroke="{COLORS["loss"]}" fill="none"'
        self.rectangle(x, y, width, HIGH + 4, f'{look} stroke-width="1.6"', 13)
        self.rectangle(x + 3, y + 3, width - 6, HIGH - 2, look, 10)
        size = round(min(SIZE, SIZE * (width - 16) / text_width(text)), 1)
        return self.text(x + width / 2, y + 17.5, text, size=size)

    def lines(self, x: float, middle: float, lines: Sequence[str]) -> Self:
        """Lines of text around a middle height: the first is bold, the others small."""
        first = middle + 4.5 - 7.5 * (len(lines) - 1)
        for place, line in enumerate(lines):
            size = SMALL if place else SIZE
            self.text(x, first + 15 * place, line, size=size, bold=not place, soft=bool(place))
        return self

    def line(self, *points: tuple[float, float], dashed: bool = False) -> Self:
        """A thin line through the points: things belong together."""
        way = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        return self.path(way, THIN + (' stroke-dasharray="3 3"' if dashed else ""))

    def arrow(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        kind: str = "",
        *,
        bend: str = "",
        dashed: bool = False,
    ) -> Self:
        """An arrow from (x1, y1) to (x2, y2): something flows. bend: "v" leaves and arrives
        upright, "h" level."""
        color = COLORS[kind]
        strong = bool(kind)
        if bend == "v":
            middle = (y1 + y2) / 2
            toward = (0.0, 1.0 if y2 > y1 else -1.0)
            curve = f"C{x1:g} {middle:g} {x2:g} {middle:g}"
        elif bend == "h":
            middle = (x1 + x2) / 2
            toward = (1.0 if x2 > x1 else -1.0, 0.0)
            curve = f"C{middle:g} {y1:g} {middle:g} {y2:g}"
        else:
            long = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
            toward = ((x2 - x1) / long, (y2 - y1) / long)
            curve = "L"
        tip = 7 if strong else 6
        end = (round(x2 - tip * toward[0], 1), round(y2 - tip * toward[1], 1))
        looks = f'fill="none" stroke="{color}" stroke-width="2"' if strong else THIN
        looks += ' stroke-dasharray="3 3"' if dashed else ""
        self.path(f"M{x1:g} {y1:g}{curve} {end[0]:g} {end[1]:g}", looks)
        side = (round(-toward[1] * tip * 0.55, 1), round(toward[0] * tip * 0.55, 1))
        way = (
            f"M{x2:g} {y2:g}L{end[0] + side[0]:g} {end[1] + side[1]:g}L{end[0] - side[0]:g} "
            f"{end[1] - side[1]:g}Z"
        )
        return self.path(way, f'fill="{color}"' + ("" if strong else ' fill-opacity=".75"'))

    # --- what others see -------------------------------------------------------------

    def svg(self, alone: bool = True) -> str:
        """The SVG. alone: it may be shown as a picture file, so it brings the colors of a text."""
        role = "group" if self.linked else "img"
        size = f'width="{round(self.width * SHOWN)}" height="{round(self.height * SHOWN)}"'
        looks = f'class="{MARK}" viewBox="0 0 {self.width:g} {self.height:g}" {size} role="{role}"'
        looks += ' style="max-width:100%;height:auto"'
        looks += f' fill="currentColor" font-size="{SIZE}" text-anchor="middle"'
        if alone:
            looks += (
                f' xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
                f'aria-label="{escape(self.title)}"'
            )
        told = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        paths = "".join(f'<path {own} d="{way}"/>' for own, way in self.paths.items())
        rectangles = _groups(self.rectangles)
        words = _groups(self.words)
        return f"<svg {looks}>{told}{ALONE if alone else ''}{rectangles}{paths}{words}</svg>"

    def text_twin(self) -> str:
        """Title and description."""
        return f"{self.title}. {self.description}"

    def __repr__(self) -> str:
        return self.text_twin()

    def _repr_svg_(self) -> str:
        return self.svg()


def _groups(shapes: dict[str, list[str]]) -> str:
    """The shapes, those of one look in one group."""
    return "".join(f"<g {looks}>{''.join(alike)}</g>" for looks, alike in shapes.items())
