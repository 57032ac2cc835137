"""The road through the book: the sign at the head of each chapter, from `book/road.toml`.
`book_extension.py` puts it into the built pages."""

import re
import tomllib
from collections.abc import Callable
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.moving import COLORS


class Chapter(NamedTuple):
    """One station. page: its path in the book; part: the name of its part; needs: pages."""

    page: str
    part: str
    name: str
    needs: list[str]
    shows: str


def read_road(root: Path) -> list[Chapter]:
    """The road of the book in `root`: all chapters that have a page, in the order of the contents.
    Raises InputError for a page of the contents that has no line in the table."""
    table = tomllib.loads((root / "book" / "road.toml").read_text(encoding="utf-8"))["chapters"]
    part = ""
    found: list[Chapter] = []
    for line in (root / "_toc.yml").read_text(encoding="utf-8").splitlines():
        if caption := re.match(r"\s*- caption: \"?(.*?)\"?$", line):
            part = caption[1]
        elif file := re.match(r"\s*- file: book/(\S+)", line):
            if found and file[1].startswith(f"{found[-1].page}/"):
                continue  # a page below a station is none
            if file[1] not in table:
                raise InputError(f"{file[1]} is not on the road: give it a line in book/road.toml.")
            found.append(Chapter(file[1], part, **table[file[1]]))
    return found


def sign_html(road: list[Chapter], page: str, link: Callable[[str], str]) -> str:
    """The sign at a chapter's head: where you are, what you need, where it leads. Empty for a page
    that neither needs nor leads to another."""
    here = next((chapter for chapter in road if chapter.page == page), None)
    leads = [chapter for chapter in road if page in chapter.needs]
    if here is None or not (here.needs or leads):
        return ""

    def named(chapters: list[Chapter]) -> str:
        return ", ".join(f'<a href="{escape(link(c.page))}">{escape(c.name)}</a>' for c in chapters)

    needs = [chapter for chapter in road if chapter.page in here.needs]
    part = [chapter for chapter in road if chapter.part == here.part]
    place = f"{escape(here.part)}, {part.index(here) + 1} of {len(part)}"
    lines = [f"<span><b>You are here</b> {place}</span>"]
    lines += [f"<span><b>You need</b> {named(needs)}</span>"] if needs else []
    lines += [f"<span><b>It leads to</b> {named(leads)}</span>"] if leads else []
    return (
        '<nav class="road-sign" aria-label="Where you are on the road">'
        f"{_beads(road, here, needs + leads)}<div>{''.join(lines)}</div></nav>"
    )


def _beads(road: list[Chapter], here: Chapter, near: list[Chapter]) -> str:
    """The whole road as a string of beads: this chapter filled, its neighbors ringed."""
    shapes = []
    x = 8
    for _, part in groupby(road, key=lambda chapter: chapter.part):
        chapters = list(part)
        wide = 12 * (len(chapters) - 1)
        shapes.append(f'<path d="M{x} 9h{wide}" stroke="currentColor" stroke-opacity=".35"/>')
        for chapter in chapters:
            radius, look = 2.5, 'fill="currentColor" fill-opacity=".45"'
            if chapter == here:
                radius, look = 6, f'fill="{COLORS["masked"]}"'
            elif chapter in near:
                radius, look = 4.5, 'fill="none" stroke="currentColor" stroke-width="1.6"'
            shapes.append(f'<circle cx="{x}" cy="9" r="{radius}" {look}/>')
            x += 12
        x += 4
    return f'<svg viewBox="0 0 {x} 18" aria-hidden="true">{"".join(shapes)}</svg>'
