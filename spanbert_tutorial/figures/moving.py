"""Diagrams that move: Python draws every frame, the page only shows one after another. Chapters:
`book/spanbert/span_masking`, `book/bert/pretraining`.

A changing part knows its value in every frame, and a few lines of script put the values of one
frame in. Nothing is computed in the page. Without script the frame `first` stands there, whole,
with its words below. A notebook stores a still picture of it beside the HTML, because GitHub shows
pictures and takes drawings out of HTML.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Self

from spanbert_tutorial.figures.diagram import Diagram
from spanbert_tutorial.figures.explorer import FRAME, kernel_is_live
from spanbert_tutorial.figures.part import json_script

HERE = Path(__file__)

# Who asked the system for less motion sees each result at once, and the slider in place of the
# button that plays.
STYLE = HERE.with_suffix(".css").read_text(encoding="utf-8")
SCRIPT = HERE.with_suffix(".js").read_text(encoding="utf-8")


class Button(NamedTuple):
    """Goes on to the next of the frames `stops`, after the last of them from the start again;
    plays: through all frames between, and a second press pauses."""

    label: str
    stops: Sequence[int]
    plays: bool = True


class MovingDiagram(Diagram):
    """A diagram with parts that differ from frame to frame. frames: how many; first: the one that
    stands there before anything moves, which `description` tells."""

    def __init__(
        self,
        width: float,
        height: float,
        title: str,
        description: str,
        *,
        frames: int,
        first: int = 0,
    ) -> None:
        super().__init__(width, height, title, description)
        self.frames, self.first = frames, first
        self.parts: list[str] = []
        self.changes: list[dict[str, list]] = []

    def part(
        self, tag: str, words: str | Sequence[str] = "", inside: str = "", /, **looks: Any
    ) -> Self:
        """An SVG element above all shapes. A look given as a list, and so the words, has one value
        for each frame; fill_opacity means fill-opacity. inside: markup."""
        named = {name.replace("_", "-"): value for name, value in looks.items()} | {"words": words}
        moving = {name: value for name, value in named.items() if isinstance(value, list)}
        still = {
            name: value[self.first] if name in moving else value for name, value in named.items()
        }
        text = escape(str(still.pop("words")), quote=False)
        attributes = " ".join(f'{name}="{escape(written(value))}"' for name, value in still.items())
        mark = ' data-part=""' if moving else ""
        self.parts.append(f"<{tag}{mark} {attributes}>{text}{inside}</{tag}>")
        if moving:
            self.changes.append(
                {name: changes_of(list(map(written, values))) for name, values in moving.items()}
            )
        return self

    def svg(self, alone: bool = True) -> str:
        """The SVG of the first frame; a still one (alone) without the parts that are not seen in
        it."""
        parts = [part for part in self.parts if not (alone and ' opacity="0"' in part)]
        return super().svg(alone).removesuffix("</svg>") + "".join(parts) + "</svg>"


def written(value: object) -> str:
    """A number with at most one decimal, anything else as text."""
    return f"{round(value, 1):g}" if isinstance(value, float) else str(value)


def changes_of(values: Sequence[str]) -> list[tuple[int, str]]:
    """(frame, value) of every frame in which the value is another than before."""
    return [(i, value) for i, value in enumerate(values) if not i or value != values[i - 1]]


class Moving:
    """A moving diagram with what moves it and a line below that says in words what the frame shows.

    says: a sentence for each frame. buttons: what they do. slider: the name of a slider through all
    frames, whose positions are called `marks`. pace: seconds from frame to frame. `print` shows
    title, description and the sentence of the first frame. All text is escaped.
    """

    def __init__(
        self,
        picture: MovingDiagram,
        says: Sequence[str],
        *,
        buttons: Sequence[Button],
        slider: str = "",
        marks: Sequence[str] = (),
        pace: float = 0.9,
    ) -> None:
        self.picture = picture
        self.says = list(says)
        self.buttons = list(buttons)
        self.slider = slider
        self.marks = list(marks)
        self.pace = pace

    def __repr__(self) -> str:
        return (
            f"{self.picture!r}\n{self.picture.frames} frames. The first one: "
            f"{self.says[self.picture.first]}"
        )

    def _controls(self) -> str:
        drawn = "".join(
            f'<button type="button">{escape(one.label)}</button>' for one in self.buttons
        )
        if self.slider:
            first, last = self.picture.first, self.picture.frames - 1
            mark = escape(self.marks[first])
            drawn += (
                f'<label>{escape(self.slider)} <input type="range" min="0" max="{last}" '
                f'value="{first}" aria-valuetext="{mark}"><span aria-hidden="true">{mark}</span></label>'
            )
        return f"<div>{drawn}</div>"

    def _repr_html_(self) -> str:
        stored = {
            "first": self.picture.first,
            "pace": round(1000 * self.pace),
            "says": self.says,
            "marks": self.marks,
            "parts": self.picture.changes,
            "buttons": [{"stops": list(one.stops), "plays": one.plays} for one in self.buttons],
        }
        data = json_script(stored, (",", ":"))
        return (
            f'<div data-moving style="{FRAME};--pace:{0.7 * self.pace:g}s"><style>{STYLE}</style>'
            f"<div data-controls hidden>{self._controls()}</div>{self.picture.svg(alone=False)}"
            f"<div data-says>{escape(self.says[self.picture.first])}</div>"
            f"{data}<script>{SCRIPT}</script></div>"
        )

    def _ipython_display_(self) -> None:
        """The still picture, which a live kernel does not need, and the HTML."""
        from IPython.display import display

        if not kernel_is_live():
            still = {"text/plain": repr(self.picture), "image/svg+xml": self.picture.svg()}
            display(still, raw=True)
        display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)
