"""A Matplotlib backend: a plot is an SVG with text in it, in the colors of the page around it, and
with its text alternative inside.

`MPLBACKEND=module://spanbert_tutorial.figures.plots` turns it on; so the book's notebooks are
executed (`tools/`). A reader's own notebook shows plots as it is set: a chapter's code draws, and
calls `plt.show()`, or `plots.show(figure, alt=f"…{number:.1f}…")`.
"""

import io
import re
from html import escape
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_svg import FigureCanvasSVG as FigureCanvas
from matplotlib.figure import Figure

from spanbert_tutorial.figures.moving import FONT

__all__ = ["FigureCanvas", "FigureManager", "show"]  # what Matplotlib asks of a backend

MARK = "plot"  # the class of the drawing, by which the book's pages know it
WIDEST = 5.0  # inches: letters keep their size and can be read on a telephone
LEAST_HEIGHT = 0.82  # of its own height, for a plot that is drawn narrower
SHOWN = 1.5  # pixels of a unit, which is 1/72 inch, where there is room
# at least 3 to 1 on white and on black
SERIES = "#2a80bf #cc7a1e #2c9c4c #9467bd #d0503c #008c96".split()
BLACK = "#000001"  # stays black on a dark page
DARK_GREY = re.compile(r"#([0-6]\d|[0-6][a-f])\1\1\b")
GROUND = "var(--pst-color-background,Canvas)"  # of the book's pages; elsewhere the browser's own
# For a plot that is shown as a picture file; inside a page it meets nothing.
ALONE = (
    "<style>svg:root{color:#1b2733;color-scheme:light}@media(prefers-color-scheme:dark)"
    "{svg:root{color:#e6edf3;color-scheme:dark}}</style>"
)
RC: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": MARK,  # the same names in every run
    "image.interpolation": "none",  # cells of a heat map keep their edges
    "axes.prop_cycle": cycler(color=SERIES),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}

matplotlib.rcParams.update(RC)


def svg_of(figure: Figure) -> str:
    """The figure as the text of an SVG; its label, if it has one, is its text alternative. A figure
    wider than `WIDEST` keeps the narrower size."""
    width, height = figure.get_size_inches()
    if width > WIDEST:
        figure.set_size_inches(WIDEST, height * max(WIDEST / width, LEAST_HEIGHT))
    for axis in figure.axes:
        for text in axis.texts if axis.images else ():  # a heat map is as light on a dark page
            if text.get_color() == "black":
                text.set_color(BLACK)
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context(RC):
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    body = file.getvalue().split("</defs>", 1)[1].removesuffix("</svg>\n")
    # names and fonts could meet those of the page
    body = re.sub(r'<g id="[^"]*">', "<g>", body)
    body = re.sub(r" font-family: [^;\"]*;", "", body)
    body = body.replace("#000000", "currentColor").replace("#ffffff", GROUND)
    body = DARK_GREY.sub("currentColor", body)
    wide, high = (72 * float(inches) for inches in figure.get_size_inches())
    looks = (
        f'class="{MARK}" viewBox="0 0 {wide:g} {high:g}" width="{round(wide * SHOWN)}" '
        f'height="{round(high * SHOWN)}" style="max-width:100%;height:auto" '
        f'fill="currentColor" stroke-linejoin="round" font-family="{FONT}" role="img"'
    )
    if told := escape(str(figure.get_label())):
        looks += f' aria-label="{told}"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {looks} {names}>{ALONE}{body}</svg>\n"


def show(figure: Figure | None = None, alt: str = "", **options: object) -> None:
    """Show a figure in the notebook and close it; every open one, when Matplotlib calls it for
    `plt.show()`. alt: what it shows, for readers who do not see it, with numbers formatted from
    what is plotted."""
    from IPython.display import display

    for one in [figure] if figure else map(plt.figure, plt.get_fignums()):
        if alt:
            one.set_label(alt)
        display({"text/plain": repr(one), "image/svg+xml": svg_of(one)}, raw=True)
        plt.close(one)
