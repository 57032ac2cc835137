"""The road through the book: its map, and the sign at the head of each chapter. Both come from
`book/road.toml`.

`picture.py` draws the map as a file for readers on GitHub; `book_extension.py` puts the map with
links and the signs into the built pages.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations, pairwise
from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import COLORS, WIDTH, Diagram

# heights of a chapter and of a part's name
ROW = 27
HEAD = 34
COLUMN = 264  # width of one of three columns
TRACKS = {
    "n": (12, "masked", "have read notes"),
    "t": (25, "prediction", "teach"),
    "e": (38, "learned", "want code"),
}
SIGNS = {"n": 58, "t": 192, "e": 260}  # where the routes' names stand
NAMES = 56  # where the chapters' names begin
TOP = 44  # below the routes' names
Link = Callable[[str], str]


@dataclass(frozen=True)
class Chapter:
    """One station. page: its path in the book; part: the name of its part; place: its number there,
    from 1."""

    page: str
    part: str
    place: int
    name: str
    needs: tuple[str, ...]
    routes: str
    shows: str


@dataclass(frozen=True)
class Road:
    """All chapters that have a page, in the order of the contents."""

    chapters: tuple[Chapter, ...]

    def leads_to(self, page: str) -> list[Chapter]:
        """The chapters that need this one."""
        return [chapter for chapter in self.chapters if page in chapter.needs]

    def needed_by(self, page: str) -> list[Chapter]:
        """The chapters that this one needs."""
        needs = next(chapter.needs for chapter in self.chapters if chapter.page == page)
        return [chapter for chapter in self.chapters if chapter.page in needs]

    def parts(self) -> dict[str, list[Chapter]]:
        """The chapters of each part."""
        parts: dict[str, list[Chapter]] = {}
        for chapter in self.chapters:
            parts.setdefault(chapter.part, []).append(chapter)
        return parts


def read_road(root: Path) -> Road:
    """The road of the book in `root`. Raises InputError for a page of the contents that has no line
    in the table."""
    table = tomllib.loads((root / "book" / "road.toml").read_text(encoding="utf-8"))["chapters"]
    part = ""
    place = 0
    found = []
    for line in (root / "_toc.yml").read_text(encoding="utf-8").splitlines():
        if caption := re.match(r"\s*- caption: \"?(.*?)\"?$", line):
            part = caption[1]
            place = 0
        elif file := re.match(r"\s*- file: book/(\S+)", line):
            if found and file[1].startswith(f"{found[-1].page}/"):
                continue  # a page below a station is none
            place += 1
            if file[1] not in table:
                raise InputError(
                    f"{file[1]} is in the contents and not on the road: give it a line in "
                    f"book/road.toml."
                )
            row = table[file[1]]
            found.append(
                Chapter(
                    file[1],
                    part,
                    place,
                    row["name"],
                    tuple(row["needs"]),
                    row["routes"],
                    row["shows"],
                )
            )
    return Road(tuple(found))


# --- the map ------------------------------------------------------------------------


def draw_map(road: Road, columns: int, link: Link | None = None) -> Diagram:
    """The map: a station for each chapter, the three routes as lines that stop at some. columns: 1
    or 3.

    link: gives the address of a page; without it the names are no links.
    """
    places = _places(road, columns)
    wide = WIDTH if columns == 1 else COLUMN * columns
    picture = Diagram(
        wide, max(y for _, y in places.values()) + 26, "The road through the book", _told(road)
    )
    _routes_legend(picture)
    for name, chapters in road.parts().items():
        x, y = places[chapters[0].page]
        picture.text(x + NAMES, y - ROW + 3, name, anchor="start", bold=True)
    for track in TRACKS:
        stops = [chapter.page for chapter in road.chapters if track in chapter.routes]
        _track(picture, track, [places[page] for page in stops], places.values())
    for chapter in road.chapters:
        x, y = places[chapter.page]
        if not chapter.routes:
            picture.path(
                f"M{x + 45} {y}a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
                'fill="currentColor" fill-opacity=".45"',
            )
        href = link(chapter.page) if link else ""
        tip = f"{chapter.name}: {chapter.shows}"
        picture.text(x + NAMES, y + 4.5, chapter.name, anchor="start", href=href, tip=tip)
    return picture


def _told(road: Road) -> str:
    """The map in words."""
    routes = [
        f"If you {says}: "
        f"{', '.join(chapter.name for chapter in road.chapters if track in chapter.routes)}"
        for track, (_, _, says) in TRACKS.items()
    ]
    parts = [
        f"{name}: {', '.join(chapter.name for chapter in chapters)}"
        for name, chapters in road.parts().items()
    ]
    return ". ".join([*parts, *routes]) + "."


def _places(road: Road, columns: int) -> dict[str, tuple[float, float]]:
    """Left edge and height of each station. Parts stay whole, in columns of about equal height."""
    parts = list(road.parts().values())
    heights = [HEAD + ROW * len(chapters) for chapters in parts]

    def tallest(breaks: Sequence[int]) -> int:
        edges = [0, *breaks, len(parts)]
        return max(sum(heights[a:b]) for a, b in pairwise(edges))

    breaks = min(combinations(range(1, len(parts)), min(columns, len(parts)) - 1), key=tallest)
    places = {}
    x = 0
    y = TOP
    for number, chapters in enumerate(parts):
        if number in breaks:
            x += COLUMN
            y = TOP
        y += HEAD
        for chapter in chapters:
            places[chapter.page] = (x, y)
            y += ROW
    return places


def _stop(x: float, y: float, track: str) -> str:
    """A stop: round, square or on its tip, so that routes are told without color, too."""
    return {
        "n": f"M{x - 5} {y}a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
        "t": f"M{x - 5} {y - 5}h10v10h-10z",
        "e": f"M{x} {y - 6.5}l6.5 6.5l-6.5 6.5l-6.5-6.5z",
    }[track]


def _rounded(points: Sequence[tuple[float, float]], radius: float = 9) -> str:
    """A way through the points with round corners; its tokens are level or upright."""
    way = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x0, y0), (x, y), (x2, y2) in zip(points, points[1:], points[2:], strict=False):
        enter = (x - radius * _sign(x - x0), y - radius * _sign(y - y0))
        leave = (x + radius * _sign(x2 - x), y + radius * _sign(y2 - y))
        way += f"L{enter[0]:.1f} {enter[1]:.1f}Q{x:.1f} {y:.1f} {leave[0]:.1f} {leave[1]:.1f}"
    return f"{way}L{points[-1][0]:g} {points[-1][1]:g}"


def _sign(number: float) -> int:
    """−1, 0 or 1."""
    return (number > 0) - (number < 0)


def _track(
    picture: Diagram, track: str, stops: Sequence[tuple[float, float]], every: Sequence
) -> None:
    """One route from its first stop to its last; between columns it runs back to the top."""
    shift, kind, _ = TRACKS[track]
    color = COLORS[kind]
    (x, y), (last_x, last_y) = stops[0], stops[-1]
    points = [(x + shift, y)]
    while x < last_x:
        # Lines do not cross: who is on the left runs lowest, then on the right, then below the
        # others at the top.
        bottom = max(y for _, y in every) + 4 + (50 - shift) / 3
        gutter = x + COLUMN - 22 + (50 - shift) / 2.2
        points += [(x + shift, bottom), (gutter, bottom), (gutter, TOP - shift / 3)]
        x += COLUMN
        points.append((x + shift, TOP - shift / 3))
    way = _rounded([*points, (x + shift, last_y)])
    picture.path(way, f'fill="none" stroke="{color}" stroke-width="3" stroke-opacity=".75"')
    picture.path("".join(_stop(x + shift, y, track) for x, y in stops), f'fill="{color}"')


def _routes_legend(picture: Diagram) -> None:
    """What the three lines are for."""
    picture.text(6, 18, "If you", anchor="start", bold=True)
    for track, (_, kind, says) in TRACKS.items():
        x = SIGNS[track] + 10
        picture.path(f"M{x - 10} 13.5h20", f'stroke="{COLORS[kind]}" stroke-width="3"')
        picture.path(_stop(x, 13.5, track), f'fill="{COLORS[kind]}"')
        picture.text(x + 14, 18, says, anchor="start", size=12)


def map_html(road: Road, link: Link) -> str:
    """The map for a page, in two layouts of which a style sheet shows the one that fits."""
    wide, narrow = (draw_map(road, columns, link).svg(alone=False) for columns in (3, 1))
    return (
        f'<div class="road"><div class="road-wide">{wide}</div><div '
        f'class="road-narrow">{narrow}</div></div>'
    )


# --- the sign -----------------------------------------------------------------------


def sign_html(road: Road, page: str, link: Link) -> str:
    """The sign at a chapter's head: where you are, what you need, where it leads. Empty for a page
    that neither needs nor leads to another."""
    here = next((chapter for chapter in road.chapters if chapter.page == page), None)
    if here is None or not (here.needs or road.leads_to(page)):
        return ""

    def named(chapters: Sequence[Chapter]) -> str:
        return ", ".join(
            f'<a href="{escape(link(one.page))}">{escape(one.name)}</a>' for one in chapters
        )

    needs = road.needed_by(page)
    leads = road.leads_to(page)
    count = len(road.parts()[here.part])
    lines = [f"<span><b>You are here</b> {escape(here.part)}, {here.place} of {count}</span>"]
    lines += [f"<span><b>You need</b> {named(needs)}</span>"] if needs else []
    lines += [f"<span><b>It leads to</b> {named(leads)}</span>"] if leads else []
    return (
        f'<nav class="road-sign" aria-label="Where you are on the '
        f'road">{_beads(road, here, needs, leads)}'
        f"<div>{''.join(lines)}</div></nav>"
    )


def _beads(road: Road, here: Chapter, needs: Sequence[Chapter], leads: Sequence[Chapter]) -> str:
    """The whole road as a string of beads: this chapter filled, what it needs and where it leads
    ringed."""
    shapes = []
    x = 8.0
    for chapters in road.parts().values():
        shapes.append(
            f'<path d="M{x:g} 9h{12 * (len(chapters) - 1)}" stroke="currentColor" '
            f'stroke-opacity=".35"/>'
        )
        for chapter in chapters:
            near = chapter in needs or chapter in leads
            look = 'fill="currentColor" fill-opacity=".45"'
            if chapter == here:
                look = f'fill="{COLORS["masked"]}"'
            elif near:
                look = 'fill="none" stroke="currentColor" stroke-width="1.6"'
            shapes.append(
                f'<circle cx="{x:g}" cy="9" r="{6 if chapter == here else 4.5 if near else 2.5}" '
                f"{look}/>"
            )
            x += 12
        x += 4
    return f'<svg viewBox="0 0 {x:g} 18" aria-hidden="true">{"".join(shapes)}</svg>'
