"""Switch among results that Python computed. Chapter: `book/spanbert/span_masking`.

In a built page it is plain HTML with a few lines of script that swap prepared panels; no network,
no kernel. With a live kernel it is made of ipywidgets, and a reader may type a text of their own.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from spanbert_tutorial.errors import InputError

# Works for any number of explorers on a page: each is found once and carries its own panels.
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
FRAME = (
    "color:var(--pst-color-text-base,currentColor);background:var(--pst-color-background,transparent);"
    "border:1px solid var(--pst-color-border,#8888);"
    "border-radius:.4em;padding:.6em .8em;max-width:100%;box-sizing:border-box"
)
LABEL = "display:inline-block;margin:0 1em .5em 0;max-width:100%"
CHOICE = "font:inherit;color:inherit;background:var(--pst-color-background,Canvas);max-width:100%"


class Explorer:
    """One panel for every combination of options, all computed when the explorer is made.

    controls: name → options, each shown as its text. panel: called with one option of each control
    by name, returns an object with `_repr_html_` and a readable `repr`. free_text: the control for
    which a reader with a live kernel may type a text instead of an option.
    """

    def __init__(
        self,
        controls: Mapping[str, Sequence[Any]],
        panel: Callable[..., Any],
        *,
        free_text: str = "",
    ) -> None:
        self.controls = {name: list(options) for name, options in controls.items()}
        self.panel = panel
        self.free_text = free_text
        choices = product(*self.controls.values())
        self.panels = [panel(**dict(zip(self.controls, one, strict=True))) for one in choices]

    def __repr__(self) -> str:
        """What there is to choose, and the first panel, in plain characters."""
        sizes = " × ".join(f"{name} ({len(options)})" for name, options in self.controls.items())
        first = "; ".join(f"{name}: {options[0]}" for name, options in self.controls.items())
        count = len(self.panels)
        return f"{count} panels, {sizes}. The first one, {first}:\n{self.panels[0]!r}"

    def _repr_html_(self) -> str:
        """Controls, the first panel, and the others as data. Without script only the first panel is
        there. A label encloses its choice, so no id is needed."""
        controls = ""
        for name, options in self.controls.items():
            choices = "".join(f"<option>{escape(str(option))}</option>" for option in options)
            select = f'<select style="{CHOICE}">{choices}</select>'
            controls += f'<label style="{LABEL}">{escape(name)} {select}</label>'
        panels = [panel._repr_html_() for panel in self.panels]
        return (
            f'<div data-explorer style="{FRAME}"><div data-controls hidden>{controls}</div>'
            f'<div data-view aria-live="polite">{panels[0]}</div>'
            f"{json_script(panels)}<script>{SCRIPT}</script></div>"
        )

    def _ipython_display_(self) -> None:
        """Widgets for a reader at a live kernel, else the static page."""
        from IPython.display import display

        if kernel_is_live():
            display(self.live())
        else:
            display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)

    def live(self) -> Any:
        """The same with ipywidgets, computed as the reader chooses or types. Returns a VBox."""
        import ipywidgets as widgets

        boxes = {}
        for name, options in self.controls.items():
            named = [(str(option), option) for option in options]
            boxes[name] = widgets.Dropdown(options=named, description=name)
        hint = f"type a {self.free_text}, then Enter"
        own = widgets.Text(description="your own", placeholder=hint, continuous_update=False)
        view = widgets.HTML()

        def show(_: object = None) -> None:
            options = {name: box.value for name, box in boxes.items()}
            if own.value.strip():
                options[self.free_text] = own.value.strip()
            try:
                view.value = self.panel(**options)._repr_html_()
            except InputError as problem:  # a reader's text may not suit the panel: say so in place
                view.value = f"<p>{escape(str(problem))}</p>"

        shown = [*boxes.values()]
        if self.free_text:
            shown.append(own)
            # who chooses another text wants to see it, not the typed one
            boxes[self.free_text].observe(lambda _: own.set_trait("value", ""), names="value")
        for box in shown:
            box.observe(show, names="value")
        show()
        return widgets.VBox([*shown, view])


def json_script(content: Any) -> str:
    """Content for a script of the page. "<" followed by "/" or "!" would end the element or hide its
    end."""
    data = json.dumps(content, ensure_ascii=False).replace("</", "<\\/").replace("<!", "\\u003c!")
    return f'<script type="application/json">{data}</script>'


def kernel_is_live() -> bool:
    """Whether a reader's kernel runs this. Tests and stored outputs set the variable."""
    from IPython import get_ipython

    stored = os.environ.get("SPANBERT_TUTORIAL_STATIC") == "1"
    return not stored and hasattr(get_ipython(), "kernel")
