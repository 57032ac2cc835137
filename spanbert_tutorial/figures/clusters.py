"""Mentions in a text, colored and numbered by what they mean. Chapter:
`book/tasks/coreference`."""

from collections.abc import Callable, Sequence
from html import escape

from spanbert_tutorial.figures.tokens import COLORS, mark_style, strip_html

Span = tuple[int, int]  # first and last word


class ClusterText:
    """A text in which the mentions of one thing share a number and a color; it wraps on a narrow
    page.

    words: of the text. clusters: mentions as (first word, last word), none crosses another; those
    of one mention are drawn without color and number, as they refer to nothing else. labels: what
    the numbers mean, in the order of the clusters of several mentions; none by default. `print`
    shows the same in plain characters: `[Ella Hale]1 lost [[her]1 key]2`.
    """

    def __init__(
        self, words: Sequence[str], clusters: Sequence[Sequence[Span]], labels: Sequence[str] = ()
    ) -> None:
        self.words = list(words)
        self.labels = list(enumerate(labels, start=1))
        numbers = iter(range(1, len(clusters) + 1))
        numbered = [(next(numbers) if len(cluster) > 1 else 0, cluster) for cluster in clusters]
        mentions = ((span, number) for number, cluster in numbered for span in cluster)
        self.mentions = sorted(mentions, key=lambda one: (one[0][0], -one[0][1]))

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

    def __repr__(self) -> str:
        line = self._line(lambda number: "[", lambda number: f"]{number or ''}", str)
        keys = "; ".join(f"{number} = {label}" for number, label in self.labels)
        return "\n".join(filter(None, (line, keys)))

    def _begin(self, number: int) -> str:
        if not number:
            return '<span style="border-bottom:1px dotted currentColor">'
        style = mark_style(COLORS[(number - 1) % len(COLORS)])
        return f'<span title="cluster {number}" style="{style}">'

    def _end(self, number: int) -> str:
        return f"<sup>{number}</sup></span>" if number else "</span>"

    def _repr_html_(self) -> str:
        keys = (f"{self._begin(one)}{escape(label)}{self._end(one)}" for one, label in self.labels)
        return strip_html(self._line(self._begin, self._end, escape), "; ".join(keys))
