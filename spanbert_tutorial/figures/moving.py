"""Diagrams that move: Python draws every frame, the page only shows one after another. Chapters:
`book/spanbert/span_masking`, `book/bert/pretraining`.

A color says whose a thing is: blue what is masked, orange the boundary, green what a head predicts,
red a loss (`book/notation`); it suits a light and a dark page. All looks stand in attributes, without
identifiers or a style sheet, because GitHub takes these out of a notebook.

A changing part knows its value in every frame, and a few lines of script put the values of one
frame in. Without script the frame `first` stands there, with its words below. A notebook stores a
still picture beside the HTML, because GitHub takes drawings out of HTML.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from spanbert_tutorial.figures.explorer import FRAME, json_script, kernel_is_live
from spanbert_tutorial.figures.tokens import STYLES

WIDTH = 360  # units of a narrow diagram: on a telephone about one pixel each
SHOWN = 1.3  # pixels of a unit where there is room
FONT = "system-ui,Helvetica,Arial,sans-serif"
SIZE = 13  # of text, in units
SMALL = 11
COLORS = {
    "masked": f"rgb({STYLES['masked'][1]})",
    "boundary": f"rgb({STYLES['boundary'][1]})",
    "prediction": f"rgb({STYLES['kept'][1]})",
    "loss": f"rgb({STYLES['random'][1]})",
}
# For a file that is shown as a picture and has no page around it; inside a page it meets nothing.
ALONE = "<style>svg:root{color:#1b2733}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}</style>"
# Who asked the system for less motion sees each result at once, and the slider in place of the
# button that plays.
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def text_width(text: str, size: float = SIZE) -> float:
    """About how many units the text takes; fonts differ, so it errs on the wide side."""
    narrow, wide = "fijlrtI[](){}|.,:;'!· -", "mwMWGOQ@—"
    return size * sum(0.34 if c in narrow else 0.9 if c in wide else 0.58 for c in text)


class Button(NamedTuple):
    """Goes on to the next of the frames `stops`, after the last of them from the start again;
    plays: through all frames between, and a second press pauses."""

    label: str
    stops: Sequence[int]
    plays: bool = True


@dataclass(repr=False, eq=False)
class Moving:
    """A diagram to which parts are added, with what moves it and a line below that says in words
    what the frame shows. `print` shows title, description and the sentence of the first frame. All
    text is escaped."""

    width: float  # in units; coordinates count from the upper left corner
    height: float
    title: str  # what it shows, in a few words
    description: str  # all that the frame `first` says, for readers who do not see it
    says: Sequence[str]  # a sentence for each frame
    buttons: Sequence[Button]
    first: int = 0
    slider: str = ""  # the name of a slider through all frames, whose positions are `marks`
    marks: Sequence[str] = ()
    pace: float = 0.9  # seconds from frame to frame

    def __post_init__(self) -> None:
        self.parts: list[str] = []
        self.changes: list[dict[str, list]] = []

    def add(
        self, tag: str, words: str | Sequence[str] = "", inside: str = "", /, **looks: Any
    ) -> None:
        """An SVG element above those that are there. A look given as a list, and so the words, has
        one value for each frame; fill_opacity means fill-opacity; None is left out. inside:
        markup."""
        given = {name.replace("_", "-"): look for name, look in looks.items() if look is not None}
        given["words"] = words
        moving = {name: list(map(_written, x)) for name, x in given.items() if isinstance(x, list)}
        if moving:
            self.changes.append({name: _changes(values) for name, values in moving.items()})
            given |= {name: values[self.first] for name, values in moving.items()}
            given["data-part"] = ""
        text = escape(str(given.pop("words")), quote=False)
        attributes = "".join(f' {name}="{escape(_written(x))}"' for name, x in given.items())
        self.parts.append(f"<{tag}{attributes}>{text}{inside}</{tag}>")

    def text(
        self, x: Any, y: Any, words: Any, *, bold: bool = False, soft: bool = False, **looks: Any
    ) -> None:
        """Text in the middle of x, with its line at y. soft: paler."""
        own = {"font_weight": 600 if bold else None, "fill_opacity": ".75" if soft else None}
        self.add("text", words, x=x, y=y, **looks, **own)

    def line(self, way: str, **looks: Any) -> None:
        """A thin line, as the `d` of a path: things belong together."""
        thin = {"fill": "none", "stroke": "currentColor", "stroke_width": 1.2}
        self.add("path", d=way, stroke_opacity=0.6, **thin, **looks)

    def svg(self, alone: bool = True) -> str:
        """The SVG of the first frame. alone: it may be shown as a picture file, so it brings the
        colors of a text, and leaves out the parts that are not seen."""
        looks = (
            f'class="diagram" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{round(self.width * SHOWN)}" height="{round(self.height * SHOWN)}" '
            'role="img" style="max-width:100%;height:auto" '
            f'fill="currentColor" font-size="{SIZE}" text-anchor="middle"'
        )
        parts = self.parts
        if alone:
            parts = [part for part in parts if ' opacity="0"' not in part]
            looks += f' xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
            looks += f'aria-label="{escape(self.title)}"'
        told = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        return f"<svg {looks}>{told}{ALONE if alone else ''}{''.join(parts)}</svg>"

    def __repr__(self) -> str:
        first = f"{len(self.says)} frames. The first one: {self.says[self.first]}"
        return f"{self.title}. {self.description}\n{first}"

    def _repr_html_(self) -> str:
        labels = (escape(one.label) for one in self.buttons)
        controls = "".join(f'<button type="button">{label}</button>' for label in labels)
        if self.slider:
            mark = escape(self.marks[self.first])
            controls += (
                f'<label>{escape(self.slider)} <input type="range" autocomplete="off" min="0" '
                f'max="{len(self.says) - 1}" value="{self.first}" aria-valuetext="{mark}">'
                f'<span aria-hidden="true">{mark}</span></label>'
            )
        stored = {
            "first": self.first,
            "pace": round(1000 * self.pace),
            "says": self.says,
            "marks": self.marks,
            "parts": self.changes,
            "buttons": [one._asdict() for one in self.buttons],
        }
        return (
            f'<div data-moving style="{FRAME};--pace:{0.7 * self.pace:g}s"><style>{STYLE}</style>'
            f"<div data-controls hidden><div>{controls}</div></div>{self.svg(alone=False)}"
            f"<div data-says>{escape(self.says[self.first])}</div>"
            f"{json_script(stored)}<script>{SCRIPT}</script></div>"
        )

    def _ipython_display_(self) -> None:
        """The still picture, which a live kernel does not need, and the HTML."""
        from IPython.display import display

        told = f"{self.title}. {self.description}"
        if not kernel_is_live():
            display({"text/plain": told, "image/svg+xml": self.svg()}, raw=True)
        display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)


def _changes(values: list[str]) -> list[tuple[int, str]]:
    """(frame, value) of every frame in which the value is another than before."""
    return [(i, value) for i, value in enumerate(values) if not i or value != values[i - 1]]


def _written(value: object) -> str:
    """A number with at most one decimal, anything else as text."""
    return f"{round(value, 1):g}" if isinstance(value, float) else str(value)
