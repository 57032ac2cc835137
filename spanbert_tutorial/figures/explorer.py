"""Switch among results that Python computed. Chapter: `book/spanbert/span_masking`.

In a built page it is plain HTML with a few lines of script that swap prepared panels; no network,
no kernel. With a live kernel it is made of ipywidgets, and a reader may type a text of their own.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.part import json_script

LARGEST = 150_000  # bytes of HTML that one explorer may add to a notebook

# Works for any number of explorers on a page: each is found once and carries its own panels.
SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
FRAME = (
    "color:var(--pst-color-text-base,currentColor);background:var(--pst-color-background,transparent);"
    "border:1px solid var(--pst-color-border,#8888);"
    "border-radius:.4em;padding:.6em .8em;max-width:100%;box-sizing:border-box"
)
CHOICE = "font:inherit;color:inherit;background:var(--pst-color-background,Canvas);max-width:100%"


class Explorer:
    """One panel for every combination of options, all computed when the explorer is made.

    controls: name → options, each shown as its text. panel: called with one option of each control
    by name, returns an object with `_repr_html_` and a readable `repr`. free_text: the control for
    which a reader with a live kernel may type a text instead of an option. Raises InputError when
    the panels together are over 150,000 bytes.
    """

    def __init__(
        self,
        controls: Mapping[str, Sequence[Any]],
        panel: Callable[..., Any],
        *,
        free_text: str | None = None,
    ) -> None:
        self.controls = {name: list(options) for name, options in controls.items()}
        self.panel = panel
        self.free_text = free_text
        choices = product(*self.controls.values())
        self.panels = [panel(**dict(zip(self.controls, one, strict=True))) for one in choices]
        size = len(self._repr_html_().encode())
        if size > LARGEST:
            raise InputError(
                f"the panels make {size:,} bytes, over {LARGEST:,}: give fewer or shorter options."
            )

    def __repr__(self) -> str:
        """What there is to choose, and the first panel, in plain characters."""
        sizes = " × ".join(f"{name} ({len(options)})" for name, options in self.controls.items())
        first = "; ".join(f"{name}: {options[0]}" for name, options in self.controls.items())
        count = len(self.panels)
        return f"{count} panels, {sizes}. The first one, {first}:\n{self.panels[0]!r}"

    def _repr_html_(self) -> str:
        """Controls, the first panel, and the others as data. Without script only the first panel is
        there."""
        controls = "".join(_select(name, options) for name, options in self.controls.items())
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
            if self.free_text and own.value.strip():
                options[self.free_text] = own.value.strip()
            try:
                view.value = self.panel(**options)._repr_html_()
            except InputError as problem:  # a reader's text may not suit the panel: say so in place
                view.value = f"<p>{escape(str(problem))}</p>"

        typed = [own] if self.free_text else []
        if self.free_text:  # who chooses another text wants to see it, not the typed one
            boxes[self.free_text].observe(lambda _: own.set_trait("value", ""), names="value")
        for box in [*boxes.values(), *typed]:
            box.observe(show, names="value")
        show()
        return widgets.VBox([*boxes.values(), *typed, view])


def _select(name: str, options: Sequence[Any]) -> str:
    """A labeled choice; the label encloses it, so no id is needed."""
    choices = "".join(f"<option>{escape(str(option))}</option>" for option in options)
    return (
        f'<label style="display:inline-block;margin:0 1em .5em 0;max-width:100%">{escape(name)} '
        f'<select style="{CHOICE}">{choices}</select></label>'
    )


def kernel_is_live() -> bool:
    """Whether a reader's kernel runs this with ipywidgets at hand. Tests and stored outputs set the
    variable."""
    stored = os.environ.get("SPANBERT_TUTORIAL_STATIC", "0") not in ("", "0")
    if stored or find_spec("ipywidgets") is None:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")
