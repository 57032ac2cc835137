"""One attention map as a table that is plain HTML, for explorers. Chapter: `book/bert/bert`."""

from collections.abc import Sequence
from html import escape

import numpy as np

from spanbert_tutorial.errors import InputError, check_text
from spanbert_tutorial.figures.tokens import STRIP

# Each cell says its weight; the color follows from it. Short names and no quotes: an explorer
# holds many cells.
LOOK = (
    "<style>table.amap{border-collapse:collapse;display:table;width:auto;margin:.4em 0}"
    "table.amap{font-size:clamp(10px,2.2vw,12px);white-space:nowrap}"
    ".amap th{font-weight:normal;padding:1px 4px;text-align:right;border:0}"
    ".amap thead "
    "th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:3px 1px}"
    ".amap td{padding:0;width:2.1em;height:1.9em;text-align:center;border:1px solid #8884;"
    "background:rgb(31,119,180,calc(var(--w)*.009))}</style>"
)


class AttentionMap:
    """weights: [n,n], a row for each token that looks, a column for each token that is looked at;
    rows sum to 1.

    The cells show percent. `text`, also what `print` shows, says for each token what it looks at
    most. Raises InputError when the shape does not fit the tokens, when a row does not sum to 1,
    and for half a character.
    """

    def __init__(self, weights: np.ndarray, tokens: Sequence[str], caption: str = "") -> None:
        self.tokens = [str(token) for token in tokens]
        self.caption = caption
        check_text("the map", caption, *self.tokens)
        try:
            self.weights = np.asarray(weights, dtype=float)
        except (ValueError, TypeError, OverflowError):
            raise InputError("the weights are no table of numbers: give attention [n,n].") from None
        n = len(self.tokens)
        if not n or self.weights.shape != (n, n):
            raise InputError(
                f"the weights have shape {self.weights.shape}: for {n} tokens give [{n}, {n}]."
            )
        if not np.allclose(self.weights.sum(1), 1, atol=1e-3):
            raise InputError(
                "a row of the weights does not sum to 1: give attention after softmax."
            )

    @property
    def text(self) -> str:
        pairs = [
            f"{token} → {self.tokens[row.argmax()]} {row.max():.0%}"
            for token, row in zip(self.tokens, self.weights, strict=True)
        ]
        return "\n".join([", ".join(pairs), *([self.caption] if self.caption else [])])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(token)}" for token in self.tokens)
        rows = "".join(
            f"<tr><th>{escape(token)}" + "".join(_cell(weight) for weight in row)
            for token, row in zip(self.tokens, self.weights, strict=True)
        )
        under = f"<div>{escape(self.caption)}</div>" if self.caption else ""
        said = "rows look, columns are looked at, percent"
        return (
            f'{LOOK}<div style="{STRIP};line-height:1.4;overflow-x:auto"><table class=amap '
            f'aria-label="{said}">'
            f"<thead><tr><td>{head}</thead><tbody>{rows}</tbody></table>{under}</div>"
        )


def _cell(weight: float) -> str:
    percent = round(100 * weight)
    return f"<td style=--w:{percent}>{percent}"
