"""Links and numbers of the book's Markdown pages, looked up in the chapters that they lead to."""

import json
import math
import re
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from myst_parser.mdit_to_docutils.base import default_slugify

from contract import all_text
from environment import ROOT
from notebooks import read

BOOK = ROOT / "book"
LINK = re.compile(r"(?<!!)\[((?:\\.|[^\[\]])+)\]\(([^)\s]+)\)")  # text, target
SUM = re.compile(r"`([^`=]+) = (-?[\d,.]+)`")  # arithmetic that a page writes out: `2 * 3 = 6`
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?!\w)")
FUNCTIONS = {"ln": math.log, "exp": math.exp, "sqrt": math.sqrt, "ceil": math.ceil}


def plain(text: str) -> str:
    """The text of a heading or a link as a reader sees it."""
    return re.sub(r"[`\\]", "", text)


@cache
def markdown(path: Path) -> str:
    """The Markdown of a chapter or a page."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


@cache
def headings(path: Path) -> dict[str, str]:
    """{anchor: heading}, the anchors as the built pages have them (`myst_heading_anchors` in
    `_config.yml`)."""
    found: dict[str, str] = {}
    tokens = MarkdownIt().parse(markdown(path))
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open":
            title = "".join(
                part.content for part in inline.children if part.type in ("text", "code_inline")
            )
            slug = base = default_slugify(title)
            number = 1
            while slug in found:
                slug = f"{base}-{number}"
                number = number + 1
            found[slug] = inline.content
    return found


def links(text: str) -> list[tuple[str, str]]:
    """(text, target) of each link inside the book."""
    return [
        (" ".join(name.split()), target)
        for name, target in LINK.findall(text)
        if "://" not in target
    ]


def dead_links(page: Path) -> list[str]:
    """Links of a page that lead nowhere, or whose text after the first colon is not the heading
    that they lead to."""
    problems = []
    for name, target in links(page.read_text(encoding="utf-8")):
        place, _, anchor = target.partition("#")
        path = (page.parent / place).resolve() if place else page
        if not path.is_file():
            problems.append(f"{page.name}: {target} does not exist.")
        elif anchor and anchor not in headings(path):
            problems.append(f"{page.name}: {path.name} has no heading with the anchor {anchor!r}.")
        elif anchor and plain(name).partition(": ")[2] != plain(headings(path)[anchor]):
            problems.append(
                f"{page.name}: {name!r} is not called {headings(path)[anchor]!r} in {path.name}."
            )
    return problems


def numbers(text: str) -> set[str]:
    """Numbers with a decimal point or more than one digit, without thousands separators."""
    found = {number.rstrip(",").replace(",", "") for number in NUMBER.findall(text)}
    return {number for number in found if len(number) > 1}


@cache
def chapter_numbers(path: Path) -> set[str]:
    """All numbers that a reader of the chapter can find in it."""
    return numbers(all_text(read(path)) if path.suffix == ".ipynb" else markdown(path))


@cache
def quoted_numbers() -> set[str]:
    """All numbers of `data/papers.json`."""
    papers = json.loads((ROOT / "data" / "papers.json").read_text(encoding="utf-8"))
    return numbers(" ".join(json.dumps(entry["value"]) for entry in papers.values()))


def wrong_sums(text: str) -> list[str]:
    """Arithmetic in the text that does not come out, to the digits that it prints."""
    problems = []
    for expression, result in SUM.findall(" ".join(text.split())):
        digits = len(result.partition(".")[2])
        value = eval(expression, {"__builtins__": {}}, FUNCTIONS)
        if f"{value:.{digits}f}" != result.replace(",", ""):
            problems.append(f"{expression} is {value:.{digits}f}, not {result}.")
    return problems


def unknown_numbers(text: str, page: Path) -> set[str]:
    """Numbers of a passage that stand in none of the chapters it links to, and not among the quoted
    ones.

    Arithmetic that is written out (`2 * 3 = 6`) is left to `wrong_sums`; its numbers count as
    known.
    """
    known = set(quoted_numbers())
    chapters = links(text)
    for target in {target.partition("#")[0] for _, target in chapters}:
        known |= chapter_numbers((page.parent / target).resolve())
    joined = " ".join(text.split())
    known |= numbers(" ".join(" ".join(found) for found in SUM.findall(joined)))
    return numbers(LINK.sub("", SUM.sub("", joined))) - known
