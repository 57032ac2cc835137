"""Sort the terms of `book/workshop/glossary.md` and write its Korean index anew: python
tools/glossary.py"""

import re

from environment import ROOT

PAGE = ROOT / "book" / "workshop" / "glossary.md"


def cells(row: str) -> list[str]:
    """The cells of a row of a table."""
    return [cell.strip() for cell in row.strip().strip("|").split(" | ")]


def hangul_first(pair: tuple[str, str]) -> tuple[bool, str]:
    """Where a pair of the index belongs: words in Hangul before all others."""
    return not "가" <= pair[0][0] <= "힣", pair[0]


def written(page: str) -> str:
    """The page with its terms in the order of the alphabet, and the index under `## ` after them
    made from them."""
    lines = page.rstrip().split("\n")
    tables = [number for number, line in enumerate(lines) if line.startswith("|---")]
    first, second = tables
    end = next(number for number in range(first, second) if lines[number] == "")
    terms = sorted(
        lines[first + 1 : end], key=lambda row: re.sub(r"[*\[\]]", "", cells(row)[0]).lower()
    )
    pairs = sorted(
        ((korean, re.sub(r"\*", "", name)) for name, korean, *_ in map(cells, terms)),
        key=hangul_first,
    )
    index = [f"| {korean} | {name} |" for korean, name in pairs]
    return "\n".join([*lines[: first + 1], *terms, *lines[end : second + 1], *index]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
