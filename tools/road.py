"""The road through the book: the sign at the head of each chapter, from `book/road.toml`.
`book_extension.py` puts it into the built pages."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.diagram import COLORS

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
                Chapter(file[1], part, place, row["name"], tuple(row["needs"]), row["shows"])
            )
    return Road(tuple(found))


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
