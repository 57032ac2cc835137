"""A table as the output of a cell: HTML, because the built page shows a Markdown table in an output
as lines of text; elsewhere plain text in columns."""

from collections.abc import Sequence
from html import escape

SMALL = "border-collapse:collapse;display:table;width:auto;margin:.3em 0;font-size:.9em"
CELL = (
    ' style="padding:.1em .8em .1em 0;vertical-align:top;text-align:left;border:0;'
    'white-space:pre-line"'
)


def table_html(lines: Sequence[Sequence[str]], cell: str = "") -> str:
    """Rows of cells; the first is the head. cell: an attribute of each. All text is escaped."""
    tags = ["th"] + ["td"] * (len(lines) - 1)
    head, *rows = (
        "".join(f"<{tag}{cell}>{escape(text)}</{tag}>" for text in line)
        for tag, line in zip(tags, lines, strict=True)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def small_table(lines: Sequence[Sequence[str]]) -> str:
    """A table inside a panel, without lines and as narrow as its text."""
    return f'<table style="{SMALL}">{table_html(lines, CELL)}</table>'


class Table:
    """Rows of cells under a head. All text is escaped."""

    def __init__(self, head: Sequence[object], rows: Sequence[Sequence[object]]):
        self.lines = [[str(cell) for cell in line] for line in (head, *rows)]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        padded = (map(str.ljust, line, widths) for line in self.lines)
        return "\n".join("  ".join(line).rstrip() for line in padded)

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto"><table>{table_html(self.lines)}</table></div>'
