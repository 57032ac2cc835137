"""A table as the output of a cell: HTML, because the built page shows a Markdown table in an output
as lines of text; elsewhere plain text in columns."""

from collections.abc import Sequence
from html import escape


class Table:
    """Rows of cells under a head. All text is escaped."""

    def __init__(self, head: Sequence[object], rows: Sequence[Sequence[object]]):
        self.lines = [[str(cell) for cell in line] for line in (head, *rows)]

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        padded = (map(str.ljust, line, widths) for line in self.lines)
        return "\n".join("  ".join(line).rstrip() for line in padded)

    def _repr_html_(self) -> str:
        head, *rows = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line)
            for tag, line in zip(["th", *["td"] * len(self.lines)], self.lines, strict=False)
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
