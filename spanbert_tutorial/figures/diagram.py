"""Diagrams in one language of shapes and colors, as SVG with text in it. The language:
`book/notation`. A drawing that computes nothing is a file in `book_assets/`.

A shape says what a thing is, a color whose it is: blue what is masked, orange the boundary, violet
what only training fills, green what a head predicts, red a loss. All looks stand in attributes,
without identifiers or a style sheet, because GitHub takes these out of a notebook. Text and lines
have the color of the text around (`currentColor`); the other colors suit a light and a dark page.
"""

from html import escape
from typing import Self

from spanbert_tutorial.figures.tokens import OTHER_COLORS, STYLES

MARK = "diagram"  # the class of the whole drawing, by which the book's pages know it
WIDTH = 360  # units of a narrow diagram: on a telephone about one pixel each
SHOWN = 1.3  # pixels of a unit where there is room
FONT = "system-ui,Helvetica,Arial,sans-serif"
SIZE = 13  # of text, in units
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


def text_width(text: str, size: float = SIZE) -> float:
    """About how many units the text takes; fonts differ, so it errs on the wide side."""
    narrow, wide = "fijlrtI[](){}|.,:;'!· -", "mwMWGOQ@—"
    return size * sum(0.34 if c in narrow else 0.9 if c in wide else 0.58 for c in text)


class Diagram:
    """A drawing to which shapes are added; coordinates in units, from the upper left corner.

    title: what it shows, in a few words. description: all that it says, for readers who do not see
    it; `print` shows both.
    """

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width, self.height = width, height
        self.title, self.description = title, description
        # What looks alike is written together, which keeps a drawing small: looks → shapes.
        self.rectangles: dict[str, list[str]] = {}
        self.paths: dict[str, str] = {}
        self.words: dict[str, list[str]] = {}

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
    ) -> Self:
        """Text whose line stands at y. anchor: "start", "middle" or "end"; soft: paler; turned:
        read upwards."""
        looks = {
            f'font-size="{size:g}"': size != SIZE,
            f'text-anchor="{anchor}"': anchor != "middle",
            'font-weight="600"': bold,
            'fill-opacity=".75"': soft,
            f'fill="{color}"': bool(color),
        }
        turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
        word = f'<text x="{x:g}" y="{y:g}"{turn}>{escape(text, quote=False)}</text>'
        self.words.setdefault(" ".join(look for look, on in looks.items() if on), []).append(word)
        return self

    def rectangle(
        self, x: float, y: float, width: float, height: float, looks: str, rounded: float = 0
    ) -> Self:
        corner = f' rx="{rounded:g}"' if rounded else ""  # a group cannot hand this down
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self.rectangles.setdefault(looks, []).append(f"<rect {place}{corner}/>")
        return self

    def path(self, way: str, looks: str) -> Self:
        self.paths[looks] = self.paths.get(looks, "") + way
        return self

    def token(
        self, x: float, y: float, text: str, kind: str = "", width: float | None = None
    ) -> float:
        """A token with its upper left corner at (x, y); returns its width. kind: "", "masked"
        (filled), "boundary" or "prediction" (a thick line below, so no color alone tells it)."""
        width = round(text_width(text) + 12) if width is None else width
        color = COLORS[kind]
        look = f'fill="none" stroke="{color}" stroke-width="1.6"'
        if kind == "masked":
            look = f'fill="{color}"'
        elif not kind:
            look = 'fill="none" stroke="currentColor" stroke-opacity=".5"'
        else:
            line = f'stroke="{color}" stroke-width="4"'
            self.path(f"M{x + 3:g} {y + HIGH - 1.5:g}h{width - 6:g}", line)
        self.rectangle(x, y, width, HIGH, look, 5)
        self.text(x + width / 2, y + 15.5, text, color="#fff" if kind == "masked" else "")
        return width

    def vector(self, x: float, y: float, kind: str = "") -> Self:
        """A vector: a row of five cells from (x, y). Its shade says nothing about its numbers."""
        strength = "" if kind else ' stroke-opacity=".55"'
        dashes = f'stroke-width="{CELL - 1}" stroke-dasharray="{CELL - 1} 1"'
        way = f"M{x:g} {y + (CELL - 1) / 2:g}h{CELL * 5 - 1}"
        return self.path(way, f'stroke="{COLORS[kind]}"{strength} {dashes}')

    def line(self, *points: tuple[float, float]) -> Self:
        """A thin line through the points: things belong together."""
        return self.path("M" + "L".join(f"{x:g} {y:g}" for x, y in points), THIN)

    def svg(self, alone: bool = True) -> str:
        """The SVG. alone: it may be shown as a picture file, so it brings the colors of a text."""
        looks = (
            f'class="{MARK}" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{round(self.width * SHOWN)}" height="{round(self.height * SHOWN)}" '
            'role="img" style="max-width:100%;height:auto" '
            f'fill="currentColor" font-size="{SIZE}" text-anchor="middle"'
        )
        if alone:
            looks += (
                f' xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
                f'aria-label="{escape(self.title)}"'
            )
        told = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        paths = "".join(f'<path {own} d="{way}"/>' for own, way in self.paths.items())
        shapes = _groups(self.rectangles) + paths + _groups(self.words)
        return f"<svg {looks}>{told}{ALONE if alone else ''}{shapes}</svg>"

    def __repr__(self) -> str:
        return f"{self.title}. {self.description}"

    def _repr_svg_(self) -> str:
        return self.svg()


def _groups(shapes: dict[str, list[str]]) -> str:
    return "".join(f"<g {looks}>{''.join(alike)}</g>" for looks, alike in shapes.items())
