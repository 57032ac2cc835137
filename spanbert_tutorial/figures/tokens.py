"""Strips of tokens, marked by color and by letter, and the look that panels of text share. Chapters:
`book/bert/masking`, `book/spanbert/span_masking`."""

from collections.abc import Mapping, Sequence
from html import escape

# a mark's letter and its color
STYLES = {
    "masked": ("M", "31,119,180"),
    "random": ("R", "214,39,40"),
    "kept": ("K", "44,140,60"),
    "boundary": ("B", "200,120,0"),
}
OTHER_COLORS = ("148,103,189", "0,140,150", "190,90,160", "120,120,120")
COLORS = [*(color for _, color in STYLES.values()), *OTHER_COLORS]
# A page's dark theme may put outputs on a light ground, so text and ground are set together.
STRIP = (
    "color:var(--pst-color-text-base,currentColor);background:var(--pst-color-background,transparent);"
    "padding:.2em .4em;line-height:2.1;overflow-wrap:anywhere"
)
COLUMN = "display:inline-block;text-align:center;vertical-align:top;margin-right:.5em"
NOTE = "font-size:.75em;opacity:.75;display:block;line-height:1.2"


def mark_style(color: str) -> str:
    """The style of a marked text. Its ground has a quarter of the color, so it suits light and
    dark."""
    return f"background:rgba({color},.25);border-bottom:3px solid rgb({color});padding:0 .2em"


def strip_html(text: str, *below: str) -> str:
    """HTML as a strip that wraps on a narrow page, with smaller lines below; empty ones are left
    out."""
    lines = (f'<div style="font-size:.9em">{line}</div>' for line in below if line)
    return f'<div style="{STRIP}"><div>{text}</div>{"".join(lines)}</div>'


class TokenStrip:
    """A row of tokens in which some carry a mark; it wraps on a narrow page.

    tokens: the texts [n]. marks: a mark's name or "" for each [n]. legend: mark → what it says
    below the strip; its order gives further marks their colors, and its first letter theirs.
    notes: a small text under each token [n], e.g. positions. caption: a line below. `print` shows the
    same in plain characters: `an/M` is the token "an" with the mark of letter M.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        marks: Sequence[str],
        legend: Mapping[str, str] | None = None,
        *,
        notes: Sequence[str] = (),
        caption: str = "",
    ) -> None:
        self.tokens = [str(token) for token in tokens]
        self.marks = [str(mark or "") for mark in marks]
        self.notes = [str(note) for note in notes]
        self.caption = caption
        used = dict.fromkeys(mark for mark in self.marks if mark)
        self.legend = dict(legend) if legend is not None else {mark: mark for mark in used}
        others = [name for name in dict.fromkeys([*self.legend, *used]) if name not in STYLES]
        self.styles = STYLES | {
            name: (name[:1].upper(), OTHER_COLORS[i % len(OTHER_COLORS)])
            for i, name in enumerate(others)
        }

    def __repr__(self) -> str:
        """The strip in plain characters, notes in brackets."""
        letters = [f"/{self.styles[mark][0]}" if mark else "" for mark in self.marks]
        notes = [f"({note})" if note else "" for note in self.notes] or [""] * len(self.tokens)
        strip = " ".join(map("".join, zip(self.tokens, letters, notes, strict=True)))
        keys = "; ".join(f"{self.styles[mark][0]} = {says}" for mark, says in self.legend.items())
        return "\n".join([strip, *filter(None, (keys, self.caption))])

    def _marked(self, content: str, mark: str) -> str:
        letter, color = self.styles[mark]
        return (
            f'<span title="{escape(self.legend.get(mark, mark))}" style="{mark_style(color)}">'
            f"{escape(content)}<sup>{escape(letter)}</sup></span>"
        )

    def _repr_html_(self) -> str:
        drawn = [
            self._marked(token, mark) if mark else escape(token)
            for token, mark in zip(self.tokens, self.marks, strict=True)
        ]
        if self.notes:
            drawn = [
                f'<span style="{COLUMN}">{token}<span style="{NOTE}">{escape(note)}</span></span>'
                for token, note in zip(drawn, self.notes, strict=True)
            ]
        keys = (f"{self._marked('', mark)} {escape(says)}" for mark, says in self.legend.items())
        return strip_html(" ".join(drawn), "; ".join(keys), escape(self.caption))
