"""Mentions in a text, colored and numbered by what they mean. Chapter:
`book/tasks/coreference`."""

from collections.abc import Callable, Sequence
from html import escape

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.tokens import STRIP

COLORS = (
    "31,119,180",
    "214,39,40",
    "44,140,60",
    "200,120,0",
    "148,103,189",
    "0,140,150",
    "190,90,160",
    "130,110,40",
)
Span = tuple[int, int]  # first and last word


class ClusterText:
    """A text in which the mentions of one thing share a number and a color; it wraps on a narrow
    page.

    words: of the text. clusters: mentions as (first word, last word); those of one mention are
    drawn without color and number, as they refer to nothing else. labels: what the numbers mean,
    in the order of the clusters of several mentions; none by default. caption: a line below. The
    number tells clusters apart where colors do not. Raises InputError for mentions that cross or
    lie outside of the text. `text`, also what `print` shows, is the same in plain characters:
    `[Ella Hale]1 lost [[her]1 key]2`.
    """

    def __init__(
        self,
        words: Sequence[str],
        clusters: Sequence[Sequence[Span]],
        *,
        labels: Sequence[str] = (),
        caption: str = "",
    ) -> None:
        self.words = [str(word) for word in words]
        self.labels = list(labels)
        self.caption = caption
        shown = [cluster for cluster in clusters if len(cluster) > 1]
        numbered = [(number, cluster) for number, cluster in enumerate(shown, start=1)]
        numbered += [(0, cluster) for cluster in clusters if len(cluster) == 1]
        self.mentions = sorted(
            ((tuple(span), number) for number, cluster in numbered for span in cluster),
            key=lambda one: (one[0][0], -one[0][1]),
        )
        if len(self.labels) not in (0, len(shown)):
            raise InputError(
                f"{len(self.labels)} labels for {len(shown)} clusters: give one for each, or none."
            )
        for first, last in (span for span, _ in self.mentions):
            if not 0 <= first <= last < len(self.words):
                raise InputError(
                    f"the mention ({first}, {last}) is outside of the text: it has {len(words)} "
                    f"words."
                )
            for other, end in (span for span, _ in self.mentions):
                if first < other <= last < end:
                    raise InputError(
                        f"the mentions ({first}, {last}) and ({other}, {end}) cross: leave one out."
                    )

    def _line(
        self, begin: Callable[[int], str], end: Callable[[int], str], word: Callable[[str], str]
    ) -> str:
        """The text with marks. begin, end: what stands before and behind a mention, of its number;
        word: of a word."""
        marked = []
        for at, text in enumerate(self.words):
            opened = [number for (first, _), number in self.mentions if first == at]
            closed = [number for (_, last), number in reversed(self.mentions) if last == at]
            marked.append("".join(map(begin, opened)) + word(text) + "".join(map(end, closed)))
        return " ".join(marked)

    @property
    def text(self) -> str:
        """The text in plain characters: brackets around each mention, behind it the number of its
        cluster."""
        line = self._line(lambda number: "[", lambda number: f"]{number or ''}", str)
        keys = "; ".join(f"{number} = {label}" for number, label in enumerate(self.labels, start=1))
        return "\n".join(part for part in (line, keys, self.caption) if part)

    def __repr__(self) -> str:
        return self.text

    def _begin(self, number: int) -> str:
        if not number:
            return '<span style="border-bottom:1px dotted currentColor">'
        color = COLORS[(number - 1) % len(COLORS)]
        style = (
            f"background:rgba({color},.22);border-bottom:3px solid rgb({color});padding:.1em .15em"
        )
        return f'<span title="cluster {number}" style="{style}">'

    def _end(self, number: int) -> str:
        return f"<sup>{number}</sup></span>" if number else "</span>"

    def _repr_html_(self) -> str:
        text = self._line(self._begin, self._end, escape)
        keys = "; ".join(
            f"{self._begin(number)}{escape(label)}{self._end(number)}"
            for number, label in enumerate(self.labels, start=1)
        )
        below = [
            f'<div style="font-size:.9em">{line}</div>'
            for line in (keys, escape(self.caption))
            if line
        ]
        return f'<div style="{STRIP}"><div>{text}</div>{"".join(below)}</div>'
