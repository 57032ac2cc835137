"""A part of a page that comes alive in the reader's browser. Page: `book/workshop/try_it`.

In the built page a script of `book_assets/` takes it over. Where none runs (on GitHub, in Colab,
without JavaScript) the stored example stays, with a line that says what is missing.
"""

import json
from html import escape
from typing import Any

MISSING = "This is a stored example. In the built book (make book), in a browser with JavaScript, you can {}."


def json_script(content: Any, separators: tuple[str, str] = (", ", ": ")) -> str:
    """Content for a script of the page. "<" followed by "/" or "!" would end the element or hide its
    end."""
    data = json.dumps(content, ensure_ascii=False, separators=separators)
    data = data.replace("</", "<\\/").replace("<!", "\\u003c!")
    return f'<script type="application/json">{data}</script>'


class Part:
    """A part of a page that comes alive. kind: the name of its script's class; still: the stored
    example, with `_repr_html_` and a `repr`; what: what a reader could do here; data: what the
    script needs."""

    def __init__(self, kind: str, still: Any, what: str, data: dict[str, Any]) -> None:
        self.kind, self.still, self.data = kind, still, data
        self.missing = MISSING.format(what)

    def __repr__(self) -> str:
        return f"{self.still!r}\n{self.missing}"

    def _repr_html_(self) -> str:
        return (
            f'<div data-try="{self.kind}"><div data-still>{self.still._repr_html_()}'
            f'<p style="font-size:.9em">{escape(self.missing)}</p></div>'
            f"{json_script(self.data)}</div>"
        )
