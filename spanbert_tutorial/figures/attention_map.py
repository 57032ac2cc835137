"""One attention map as a table that is plain HTML, for explorers. Chapter: `book/bert/bert`."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from spanbert_tutorial.figures.tokens import STRIP

# Each cell says its weight; the color follows from it, and even at 100% the number stands out from
# it (4.5:1) on light and dark pages. Short names and no quotes: an explorer
# holds many cells.
LOOK = (
    "<style>table.amap{border-collapse:collapse;display:table;width:auto;margin:.4em 0}"
    "table.amap{font-size:clamp(10px,2.2vw,12px);white-space:nowrap}"
    ".amap th{font-weight:normal;padding:1px 4px;text-align:right;border:0}"
    ".amap thead "
    "th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:3px 1px}"
    ".amap td{padding:0;width:2.1em;height:1.9em;text-align:center;border:1px solid #8884;"
    "background:rgb(31,119,180,calc(var(--w)*.0075))}</style>"
)


@dataclass(repr=False, eq=False)
class AttentionMap:
    """The cells show percent; `print` says for each token what it looks at most."""

    weights: np.ndarray  # [n,n], a row for each token that looks; rows sum to 1
    tokens: Sequence[str]

    def __repr__(self) -> str:
        return ", ".join(
            f"{token} → {self.tokens[row.argmax()]} {row.max():.0%}"
            for token, row in zip(self.tokens, self.weights, strict=True)
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(token)}" for token in self.tokens)
        rows = "".join(
            f"<tr><th>{escape(token)}"
            + "".join(f"<td style=--w:{p}>{p}" for p in (round(100 * weight) for weight in row))
            for token, row in zip(self.tokens, self.weights.tolist(), strict=True)
        )
        said = "rows look, columns are looked at, percent"
        return (
            f'{LOOK}<div style="{STRIP};line-height:1.4;overflow-x:auto"><table class=amap '
            f'aria-label="{said}">'
            f"<thead><tr><td>{head}</thead><tbody>{rows}</tbody></table></div>"
        )
