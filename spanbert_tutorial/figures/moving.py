"""Diagrams that move: Python draws every frame, the page only shows one after another. Chapters:
`book/spanbert/span_masking`, `book/bert/pretraining`.

A changing part knows its value in every frame, and a few lines of script put the values of one
frame in. Nothing is computed in the page. Without script the frame `first` stands there, whole,
with its words below. A notebook stores a still picture of it beside the HTML, because GitHub shows
pictures and takes drawings out of HTML.
"""

import json
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple, Self

from spanbert_tutorial.errors import InputError, check_text
from spanbert_tutorial.figures.diagram import Diagram
from spanbert_tutorial.figures.explorer import FRAME, kernel_is_live

LARGEST = 150_000  # bytes of HTML that one figure may add to a notebook
BUTTON = (
    "font:inherit;color:inherit;background:none;border:1px solid "
    "currentColor;border-radius:.3em;padding:.15em .7em;"
    "margin:0"
)
ROW = (
    "display:flex;flex-wrap:wrap;gap:.4em "
    ".6em;align-items:center;justify-content:center;margin-bottom:.5em"
)
# Who asked the system for less motion sees each result at once, and the slider in place of the
# button that plays.
STYLE = (
    "<style>[data-moving] button{cursor:pointer}"
    "@media(prefers-reduced-motion:no-preference){[data-moving] [data-part]{transition:all "
    "var(--pace) ease-in-out}}"
    "</style>"
)
# A stored notebook shows the still picture right before; here it has done its work. JupyterLab
# makes an image of it.
HIDE_STILL = """
  var title = root.querySelector('svg > title').textContent;
  for (var node = root; node && node != document.body; node = node.parentElement) {
    var before = node.previousElementSibling;
    if (!before) continue;
    var still = before.matches('svg, img') ? before : before.querySelector('svg.diagram, img');
    var content = still && (still.src ? decodeURIComponent(still.src) : still.textContent);
    if (content && content.indexOf(title) >= 0) before.hidden = true;
    break;
  }
"""
SCRIPT = """
document.querySelectorAll('[data-moving]:not([data-ready])').forEach(function (root) {
  root.setAttribute('data-ready', '');
  var data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  var parts = root.querySelectorAll('[data-part]'), says = root.querySelector('[data-says]');
  var slider = root.querySelector('input'), buttons = root.querySelectorAll('button');
  var calm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  var now = data.first, timer = 0, player = null, label = '';
  function show(frame) {
    now = frame;
    data.parts.forEach(function (changes, i) {
      Object.keys(changes).forEach(function (name) {
        var value = changes[name].filter(function (change) { return change[0] <= frame; }).pop()[1];
        if (name == 'words') parts[i].textContent = value; else parts[i].setAttribute(name, value);
      });
    });
    says.textContent = data.says[frame];
    if (slider) {
      slider.value = frame;
      slider.setAttribute('aria-valuetext', data.marks[frame]);
      slider.nextElementSibling.textContent = data.marks[frame];
    }
  }
  function rest() {
    window.clearInterval(timer);
    if (player) player.textContent = label;
    player = null;
  }
  function tell(how) { says.setAttribute('aria-live', how); }
  buttons.forEach(function (button, i) {
    var stops = data.buttons[i].stops, plays = data.buttons[i].plays && !calm;
    button.hidden = calm && slider;
    button.addEventListener('click', function () {
      var paused = player == button;
      rest();
      if (paused) return tell('polite');
      if (now >= stops[stops.length - 1]) show(0);
      var stop = stops.filter(function (one) { return one > now; })[0];
      if (!plays) { tell('polite'); return show(stop); }
      player = button; label = button.textContent; button.textContent = 'Pause';
      timer = window.setInterval(function () {
        tell(now + 1 < stop ? 'off' : 'polite');
        show(now + 1);
        if (now >= stop) rest();
      }, data.pace);
    });
  });
  if (slider) slider.addEventListener('input', function () { rest(); tell('off'); show(Number(slider.value)); });
  root.querySelector('[data-controls]').hidden = false;
HIDE_STILL});
""".replace("HIDE_STILL", HIDE_STILL.lstrip("\n"))


class Live:
    """What a figure with a `picture` shows in a notebook: the still picture, which a live kernel
    does not need, and the HTML."""

    picture: Diagram

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not kernel_is_live():
            display(
                {"text/plain": self.picture.text_twin(), "image/svg+xml": self.picture.svg()},
                raw=True,
            )
        display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)


class Button(NamedTuple):
    """Goes on to the next of the frames `stops`, after the last of them from the start again;
    plays: through all frames between, and a second press pauses."""

    label: str
    stops: Sequence[int]
    plays: bool = True


class MovingDiagram(Diagram):
    """A diagram with parts that differ from frame to frame. frames: how many; first: the one that
    stands there before anything moves, which `description` tells. Raises InputError as `Diagram`
    does, and for a `first` that is no frame.
    """

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
        if not 0 <= first < frames:
            raise InputError(
                f"frame {first} of {frames} is to stand first: give one from 0 to {frames - 1}."
            )
        self.frames = frames
        self.first = first
        self.parts: list[str] = []
        self.changes: list[dict[str, list]] = []

    def part(
        self, tag: str, words: str | Sequence[str] = "", inside: str = "", **looks: Any
    ) -> Self:
        """An SVG element above all shapes. A look given as a list, and so the words, has one value
        for each frame; fill_opacity means fill-opacity. inside: markup. Raises InputError for a
        list of another length."""
        named = {name.replace("_", "-"): value for name, value in looks.items()} | {"words": words}
        moving = {name: value for name, value in named.items() if isinstance(value, list)}
        for name, values in moving.items():
            if len(values) != self.frames:
                raise InputError(
                    f"{name} has {len(values)} values for {self.frames} frames: give one for each."
                )
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


class Moving(Live):
    """A moving diagram with what moves it and a line below that says in words what the frame shows.

    says: a sentence for each frame. buttons: what they do. slider: the name of a slider through all
    frames, whose positions are called `marks`. pace: seconds from frame to frame. `print` shows
    title, description and the sentence of the first frame. All text is escaped. Raises InputError
    for other numbers of sentences or marks than frames, for half a character, and for more than
    150,000 bytes.
    """

    picture: MovingDiagram

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
        if len(self.says) != picture.frames or (slider and len(self.marks) != picture.frames):
            raise InputError(
                f"{len(self.says)} sentences and {len(self.marks)} marks for {picture.frames} "
                f"frames."
            )
        check_text(
            "the figure", slider, *self.says, *self.marks, *(button.label for button in buttons)
        )
        if (size := len(self._repr_html_().encode())) > LARGEST:
            raise InputError(
                f"the frames make {size:,} bytes, over {LARGEST:,}: give fewer of them."
            )

    def __repr__(self) -> str:
        return (
            f"{self.picture!r}\n{self.picture.frames} frames. The first one: "
            f"{self.says[self.picture.first]}"
        )

    def _controls(self) -> str:
        drawn = "".join(
            f'<button type="button" style="{BUTTON}">{escape(one.label)}</button>'
            for one in self.buttons
        )
        if self.slider:
            first = self.picture.first
            mark = escape(self.marks[first])
            drawn += (
                f'<label style="display:flex;gap:.6em;align-items:center;flex:0 1 '
                f'26em;min-width:0">'
                f'{escape(self.slider)} <input type="range" min="0" '
                f'max="{self.picture.frames - 1}" value="{first}" '
                f'aria-valuetext="{mark}" style="flex:1;min-width:0"><span '
                f'aria-hidden="true">{mark}</span></label>'
            )
        return f'<div style="{ROW}">{drawn}</div>'

    def _repr_html_(self) -> str:
        stored = {
            "first": self.picture.first,
            "pace": round(1000 * self.pace),
            "says": self.says,
            "marks": self.marks,
            "parts": self.picture.changes,
            "buttons": [{"stops": list(one.stops), "plays": one.plays} for one in self.buttons],
        }
        data = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("</", "<\\/").replace(
            "<!", "\\u003c!"
        )  # either would end the script element too early
        return (
            f'<div data-moving style="{FRAME};--pace:{0.7 * self.pace:g}s">{STYLE}'
            f"<div data-controls hidden>{self._controls()}</div>{self.picture.svg(alone=False)}"
            f"<div data-says "
            f'style="min-height:3em;line-height:1.5;font-size:.9em;text-align:center">'
            f"{escape(self.says[self.picture.first])}</div>"
            f'<script type="application/json">{data}</script><script>{SCRIPT}</script></div>'
        )
