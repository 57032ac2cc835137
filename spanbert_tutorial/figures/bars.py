"""Bars that are plain HTML, two rows of them side by side, for explorers. Chapter:
`book/spanbert/span_masking`."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from spanbert_tutorial.errors import InputError, check_text, is_number, shown
from spanbert_tutorial.figures.tokens import STRIP

WIDTH, HEIGHT, BELOW = 340, 150, 16  # of the drawing, in its own units; it shrinks with the page
FILLS = ("rgb(31,119,180)", "rgb(255,160,60)", "rgb(44,140,60)")


class Bars:
    """For each label one bar of every series. series: name → values between 0 and 1, as many as
    labels.

    top: the value at the upper edge, so that several drawings share a scale; a thin line with its
    number stands there and at half of it. The bars are an image to a screen reader, which hears all
    numbers instead; `text`, also what `print` shows, is a small table. Raises InputError for no
    series or more than three, other numbers of values, values out of range, half a character.
    """

    def __init__(
        self,
        labels: Sequence[object],
        series: Mapping[str, Sequence[float]],
        *,
        top: float = 1.0,
        caption: str = "",
    ) -> None:
        self.labels = [str(label) for label in labels]
        self.top = top
        self.caption = caption
        self.series = {name: list(values) for name, values in series.items()}
        if not self.labels or not self.series:
            raise InputError("there is nothing to draw: give at least one label and one series.")
        if len(self.series) > len(FILLS):
            raise InputError(
                f"{len(self.series)} series are too many for {len(FILLS)} colors: draw some of "
                "them."
            )
        if not is_number(top) or not 0 < top < math.inf:
            raise InputError(f"top is {shown(top)}: give a number above 0.")
        check_text("a label, a name or the caption", caption, *self.labels, *self.series)
        for name, values in self.series.items():
            fitting = all(is_number(value) and 0 <= value <= top for value in values)
            if len(values) != len(self.labels) or not fitting:
                raise InputError(
                    f'"{name}" has {len(values)} values for {len(self.labels)} labels: '
                    f"give one for each label, between 0 and {top}."
                )
            self.series[name] = [float(value) for value in values]

    @property
    def text(self) -> str:
        wide = max(map(len, self.series))
        lines = [" " * wide + "".join(f"{label:>7}" for label in self.labels)]
        for name, values in self.series.items():
            lines.append(f"{name:{wide}}" + "".join(f"{value:7.3f}" for value in values))
        return "\n".join([*lines, *([self.caption] if self.caption else [])])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        keys = " ".join(
            f'<span style="white-space:nowrap;margin-right:1em"><span '
            f'style="display:inline-block;width:.8em;'
            f'height:.8em;background:{color}"></span> {escape(name)}</span>'
            for name, color in zip(self.series, FILLS, strict=False)
        )
        under = f"<div>{escape(self.caption)}</div>" if self.caption else ""
        return f'<div style="{STRIP};line-height:1.5">{keys}{self._drawing()}{under}</div>'

    def _drawing(self) -> str:
        """The bars as one SVG image."""
        room = WIDTH / len(self.labels)
        wide = 0.8 * room / len(self.series)
        parts = []
        for number, (values, color) in enumerate(zip(self.series.values(), FILLS, strict=False)):
            for place, value in enumerate(values):
                x = place * room + 0.1 * room + number * wide
                high = value / self.top * HEIGHT
                box = f"x={x:.1f} y={HEIGHT - high:.1f} width={wide:.1f} height={high:.1f}"
                parts.append(f"<rect {box} fill={color} />")
        for value in (self.top / 2, self.top):  # the scale, in the middle
            y = HEIGHT * (1 - value / self.top) + 0.5
            parts.append(f'<path d="M0 {y:.1f}H{WIDTH}" stroke="currentColor" opacity="0.25" />')
            parts.append(
                f"<text x={WIDTH / 2:.1f} y={y + 11:.1f} text-anchor=middle>{value:g}</text>"
            )
        for place, label in enumerate(self.labels):
            middle = (place + 0.5) * room
            parts.append(
                f"<text x={middle:.1f} y={HEIGHT + 12} text-anchor=middle>{escape(label)}</text>"
            )
        said = "; ".join(
            f"{name}: "
            + ", ".join(
                f"{label} {value:.3f}" for label, value in zip(self.labels, values, strict=True)
            )
            for name, values in self.series.items()
        )
        return (
            f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {WIDTH} {HEIGHT + BELOW}" '
            f'fill="currentColor" '
            f'font-size="10" style="display:block;width:100%;max-width:34em;margin:.4em '
            f'0">{"".join(parts)}</svg>'
        )
