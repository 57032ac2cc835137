"""A diagram whose stages tell more: point at one, tap it, or go through them with the arrow keys.
Chapter: `book/bert/bert`.

The same words stand below as a list, for readers who cannot point and for pages without script.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from spanbert_tutorial.errors import InputError, check_text
from spanbert_tutorial.figures.diagram import Diagram
from spanbert_tutorial.figures.explorer import FRAME
from spanbert_tutorial.figures.moving import HIDE_STILL, Live

# One stage at a time can be reached by the tabulator; the arrow keys lead to the others.
SCRIPT = """
document.querySelectorAll('[data-stages]:not([data-ready])').forEach(function (root) {
  root.setAttribute('data-ready', '');
  var stages = Array.from(root.querySelectorAll('[data-stage]')), told = root.querySelectorAll('li');
  var view = root.querySelector('[data-view]'), list = root.querySelector('details');
  function show(now) {
    stages.forEach(function (stage, i) {
      stage.setAttribute('tabindex', i == now ? 0 : -1);
      stage.setAttribute('aria-pressed', i == now);
      stage.firstElementChild.setAttribute('stroke-opacity', i == now ? 1 : 0);
      stage.firstElementChild.setAttribute('fill-opacity', i == now ? .13 : 0);
    });
    view.innerHTML = told[now].innerHTML;
  }
  stages.forEach(function (stage, i) {
    stage.setAttribute('role', 'button');
    stage.style.cursor = 'pointer';
    ['pointerenter', 'focus', 'click'].forEach(function (event) {
      stage.addEventListener(event, function () { show(i); });
    });
    stage.addEventListener('keydown', function (event) {
      var step = {ArrowUp: 1, ArrowDown: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      stages[Math.min(Math.max(i + step, 0), stages.length - 1)].focus();
    });
  });
  list.open = false;
  view.hidden = root.querySelector('[data-hint]').hidden = false;
  show(Number(root.getAttribute('data-stages')));
HIDE_STILL});
""".replace("HIDE_STILL", HIDE_STILL.lstrip("\n"))
HINT = "text-align:center;font-size:.9em;opacity:.8"
MARK = (
    'fill="currentColor" fill-opacity="0" stroke="currentColor" stroke-opacity="0" '
    'stroke-width="1.6" rx="6"'
)


class Stage(NamedTuple):
    """A stripe of a diagram from `top` to `below`: its name, the shapes in and out, and what
    happens in it."""

    top: float
    below: float
    name: str
    shapes: str
    says: str


class Stages(Live):
    """The diagram with its stages, from the lowest up; `first`: the one that is told at the
    beginning.

    `print` shows title, description and every stage. All text is escaped. Raises InputError for no
    stage, a `first` that is none of them, and half a character.
    """

    def __init__(self, picture: Diagram, stages: Sequence[Stage], first: int = 0) -> None:
        self.picture = picture
        self.stages = list(stages)
        self.first = first
        if not 0 <= first < len(self.stages):
            raise InputError(
                f"stage {first} of {len(self.stages)} is to be told first: there is none."
            )
        check_text("a stage", *(text for stage in self.stages for text in stage[2:]))

    def __repr__(self) -> str:
        lines = (
            f"{place}. {one.name} ({one.shapes}): {one.says}"
            for place, one in enumerate(self.stages, start=1)
        )
        return "\n".join([repr(self.picture), *lines])

    def _svg(self) -> str:
        """The drawing with a stripe above each stage."""
        wide = self.picture.width
        stripes = "".join(
            f'<g data-stage="" aria-label="{escape(f"{one.name}, {one.shapes}. {one.says}")}">'
            f'<rect x="-4" y="{one.top:g}" width="{wide - 20:g}" '
            f'height="{one.below - one.top:g}" {MARK}/>'
            "</g>"
            for one in self.stages
        )
        drawn = (
            self.picture.svg(alone=False)
            .removesuffix("</svg>")
            .replace('role="img"', 'role="group"', 1)
        )
        drawn = drawn.replace(
            f'viewBox="0 0 {wide:g}', f'viewBox="-5 0 {wide + 5:g}', 1
        )  # room for a stripe's edge
        return f"{drawn}{stripes}</svg>"

    def _repr_html_(self) -> str:
        told = [
            f"<b>{escape(one.name)}</b> · {escape(one.shapes)}<br>{escape(one.says)}"
            for one in self.stages
        ]
        return (
            f'<div data-stages="{self.first}" style="{FRAME}">'
            f'<div data-hint hidden style="{HINT}">Point at a stage, tap it, or use the arrow '
            f"keys.</div>{self._svg()}"
            f"<div data-view hidden "
            f'style="min-height:7.5em;line-height:1.5;max-width:30em;margin:auto"></div>'
            "<details open><summary>All stages as text, from below</summary><ol>"
            + "".join(f"<li>{one}</li>" for one in told)
            + f"</ol></details><script>{SCRIPT}</script></div>"
        )
