"""A slider through a training: loss, attention and filled gaps move together. Chapter:
`book/bert/pretraining`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from spanbert_tutorial.figures.moving import COLORS, SMALL, WIDTH, Button, Moving, text_width

LEFT, RIGHT, UPPER, LOWER = 26, 346, 46, 164  # of the plot of the loss
DASHES = None, "5 3"  # of the two curves
CHART, BARS, HEAD = 280, 56, 89  # the ground of the attention's bars, the highest, a head's width
GAPS, ROW, GUESS = 338, 56, 122  # where the gaps begin, from gap to gap, from guess to guess
HIGH = 22  # of a token
Losses = Mapping[str, Sequence[float]]
Landmarks = Mapping[str, float]


class Gap(NamedTuple):
    """One masked token. before, after: tokens beside it; token: the right one; predictions: for
    each snapshot the top tokens with their probabilities, best first."""

    before: Sequence[str]
    token: str
    after: Sequence[str]
    predictions: Sequence[Sequence[tuple[str, float]]]


def training_scrubber(
    steps: Sequence[int],
    losses: Losses,
    landmarks: Landmarks,
    attention: np.ndarray,
    gaps: Sequence[Gap],
) -> Moving:
    """The figure, which begins at the first snapshot.

    steps: of the S snapshots; losses: two curves, name → values [S]; landmarks: name → a loss drawn
    as a level line; attention: [S, L, A, 2m+1], weights at distance −m … m, for at most four heads.
    """
    most = neighbors(attention).max((1, 2))
    says = []
    for i, step in enumerate(steps):
        loss = ", ".join(f"{name} {values[i]:.2f}" for name, values in losses.items())
        best = ", ".join(f"“{gap.predictions[i][0][0]}”" for gap in gaps)
        says.append(
            f"Step {step}. Loss {loss}. Most attention any head gives the neighbors: {most[i]:.2f}. "
            f"Top predictions: {best}."
        )
    told = f"Loss, attention by distance and {len(gaps)} filled gaps at steps "
    told += f"{steps[0]} to {steps[-1]}. {says[0]}"
    size = WIDTH, GAPS + 8 + ROW * len(gaps)
    buttons, marks = [Button("Play", [len(steps) - 1])], [str(step) for step in steps]
    title, slider = "A training, step by step", "training step"
    picture = Moving(*size, title, told, says, buttons, 0, slider, marks, pace=0.7)
    heads = {
        13: ("loss", "in nats, on held-out text"),
        202: ("attention of a gap", "by distance; orange: its neighbors"),
        GAPS - 12: ("gaps", "and the top predictions for them"),
    }
    for y, (title, note) in heads.items():
        picture.text(2, y, title, text_anchor="start", bold=True)
        picture.text(WIDTH - 2, y, note, text_anchor="end", font_size=12, soft=True)
    _curves(picture, steps, losses, landmarks)
    for place, (layer, head) in enumerate(np.ndindex(attention.shape[1:3])):
        name, weights = f"layer {layer + 1}, head {head + 1}", attention[:, layer, head]
        _bars(picture, 4 + HEAD * place, name, weights, BARS / attention.max())
    for place, gap in enumerate(gaps):
        _gap(picture, GAPS + ROW * place, gap)
    return picture


def neighbors(attention: np.ndarray) -> np.ndarray:
    """[S, L, A]: the weights at distance −1 and 1 together."""
    middle = attention.shape[-1] // 2
    return attention[..., [middle - 1, middle + 1]].sum(-1)


def _curves(picture: Moving, steps: Sequence[int], losses: Losses, landmarks: Landmarks) -> None:
    """The loss curves whole, the landmarks, and a line with dots at the step."""
    top = max(max(values) for values in losses.values())
    # room below the lowest line for its name
    low = min([*landmarks.values(), *(min(values) for values in losses.values())])
    low -= max(0.6, 0.2 * (top - low))

    def x(step: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (step - steps[0]) / (steps[-1] - steps[0]), 1)

    def y(loss: float) -> float:
        return round(LOWER - (LOWER - UPPER) * (loss - low) / (top - low), 1)

    label: dict[str, Any] = {"text_anchor": "end", "font_size": SMALL, "soft": True}
    for nats in range(int(np.ceil(low)), int(top) + 1):
        picture.text(LEFT - 6, y(nats) + 4, str(nats), **label)
    picture.line(f"M{LEFT} {UPPER - 6}V{LOWER}H{RIGHT}")
    for step in steps[:: max(1, len(steps) // 3)]:
        picture.text(x(step), LOWER + 14, f"{step}", font_size=SMALL, soft=True)
    for place, (name, loss) in enumerate(landmarks.items()):
        below = 12 if place else -4  # the first is named above its line
        picture.line(f"M{LEFT} {y(loss)}H{RIGHT}")
        picture.text(RIGHT, y(loss) + below, f"{name} {loss:.2f}", **label)
    here = [x(step) for step in steps]
    looks = {"width": 1, "height": LOWER - UPPER + 6, "fill": "currentColor", "opacity": 0.5}
    picture.add("rect", x=here, y=UPPER - 6, **looks)
    for place, ((name, values), dashes) in enumerate(zip(losses.items(), DASHES, strict=True)):
        points = "L".join(f"{one:g} {y(loss):g}" for one, loss in zip(here, values, strict=True))
        left = 178 * place
        look = {"fill": "none", "stroke": COLORS["loss"], "stroke_width": 2}
        picture.add("path", d=f"M{points}M{2 + left} 27h22", stroke_dasharray=dashes, **look)
        picture.add("circle", cx=here, cy=[y(loss) for loss in values], r=4, fill=COLORS["loss"])
        told = [f"{name} {loss:.2f}" for loss in values]
        picture.text(left + 29, 31, told, text_anchor="start", font_size=12)


def _bars(picture: Moving, left: float, name: str, weights: np.ndarray, unit: float) -> None:
    """The weights of one head, `unit` high for 1, and what the two neighbors get together."""
    middle = weights.shape[1] // 2
    for place, column in enumerate(weights.T):
        high = [round(unit * weight, 1) for weight in column.tolist()]
        looks: dict[str, Any] = {"fill": COLORS["boundary"]}
        if abs(place - middle) != 1:
            looks = {"fill": "currentColor", "fill_opacity": 0.6}
        size = {"width": 7, "y": [round(CHART - one, 1) for one in high], "height": high}
        picture.add("rect", x=left + 9 * place, **size, **looks)
    wide = 9 * weights.shape[1] - 2
    picture.line(f"M{left} {CHART + 0.5}h{wide}")
    for place, text in ((0, f"−{middle}"), (middle, "0"), (2 * middle, f"{middle}")):
        picture.text(left + 9 * place + 3.5, CHART + 12, text, font_size=SMALL, soft=True)
    picture.text(left + wide / 2, CHART + 26, name, font_size=SMALL)
    both = [f"{one:.2f}" for one in neighbors(weights).tolist()]
    picture.text(left + wide / 2, CHART - BARS - 2, both, bold=True, fill=COLORS["boundary"])


def _gap(picture: Moving, y: float, gap: Gap) -> None:
    x = 1.0
    for word in [*gap.before, "[MASK]", *gap.after]:
        wide, masked = round(text_width(word) + 10), word == "[MASK]"
        fill, stroke = (COLORS["masked"], "none") if masked else ("none", "currentColor")
        looks = {"fill": fill, "stroke": stroke, "stroke_opacity": 0.5}
        picture.add("rect", x=x, y=y, width=wide, height=HIGH, rx=5, **looks)
        picture.text(x + wide / 2, y + 15.5, word, fill="#fff" if masked else None)
        x += wide + 3
    told = f"masked: {gap.token}"
    picture.text(WIDTH, y + 15.5, told, text_anchor="end", font_size=12, soft=True)
    for place in range(len(gap.predictions[0])):
        left, wide, top = 1 + GUESS * place, GUESS - 14, y + HIGH + 19
        now = [(token, float(p)) for token, p in (one[place] for one in gap.predictions)]
        guesses = [f"{'✓ ' * (token == gap.token)}{token} {p:.2f}" for token, p in now]
        picture.text(left, top - 4, guesses, text_anchor="start", font_size=12)
        bar = {"x": left, "y": top, "height": 5}
        picture.add("rect", width=wide, fill="currentColor", fill_opacity=".14", **bar)
        long = [wide * p for _, p in now]
        picture.add("rect", width=long, fill=COLORS["prediction"], **bar)
