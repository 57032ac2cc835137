"""A Matplotlib backend: a plot is an SVG with text in it, in the colors of the page around it. Its
colors belong to the diagrams of `book/notation`.

`MPLBACKEND=module://spanbert_tutorial.figures.plots` turns it on; so the book's notebooks are
executed (`tools/`). A reader's own notebook shows plots as it is set. A chapter's code knows
nothing of it: it draws, and calls `plt.show()`.

Black becomes `currentColor` and white the page's ground, dark greys a paler text; the curves have
the colors of the diagrams. A wide plot is drawn narrower, with the same size of letters, so that
they can be read on a telephone.
"""

import io
import re
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from spanbert_tutorial.figures.diagram import FONT

# what Matplotlib asks of a backend
FigureCanvas = FigureCanvasSVG
FigureManager = FigureManagerBase

MARK = "plot"  # the class of the drawing, by which the book's pages know it
WIDEST = 5.0  # inches
LEAST_HEIGHT = 0.82  # of its own height, for a plot that is drawn narrower
SHOWN = 1.5  # pixels of a unit, which is 1/72 inch, where there is room
SERIES = (
    "#2a80bf",
    "#cc7a1e",
    "#2c9c4c",
    "#9467bd",
    "#d0503c",
    "#008c96",
)  # at least 3 to 1 on white and on black
BLACK = "#000001"  # stays black on a dark page
GROUND = "var(--pst-color-background,Canvas)"  # of the book's pages; elsewhere the browser's own
# For a plot that is shown as a picture file; inside a page it meets nothing.
ALONE = (
    "<style>svg:root{color:#1b2733;color-scheme:light}@media(prefers-color-scheme:dark)"
    "{svg:root{color:#e6edf3;color-scheme:dark}}</style>"
)
TAG = re.compile(r"<[^>]*>")
NUMBER = re.compile(r"-?\d+\.\d+")
GREY = re.compile(r"#([0-6]\d|[0-6][a-f])\1\1\b")
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
    """The figure as the text of an SVG. A figure wider than `WIDEST` keeps the narrower size."""
    width, height = figure.get_size_inches()
    if width > WIDEST:
        figure.set_size_inches(WIDEST, height * max(WIDEST / width, LEAST_HEIGHT))
    for axis in figure.axes:
        for text in (
            axis.texts if axis.images else ()
        ):  # on a heat map, which is as light on a dark page
            if text.get_color() == "black":
                text.set_color(BLACK)
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context(RC):
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return in_page_colors(file.getvalue())


def in_page_colors(drawing: str) -> str:
    """Matplotlib's SVG as a part of a page: no identifier or style that could meet another, and the
    page's colors."""
    size = re.findall(r'viewBox="0 0 (\S+ \S+)"', drawing)[0]
    body = drawing.split("</defs>", 1)[1]
    body = re.sub(r'<g id="[^"]*">', "<g>", body).replace("</svg>", "")
    body = re.sub(r" font-family: [^;\"]*;", "", body).replace(
        'transform="rotate(-0 ', 'transform="rotate(0 '
    )
    body = re.sub(r' transform="rotate\(0 [^)]*\)"', "", body)
    body = TAG.sub(
        lambda tag: NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), tag[0]),
        body,
    )
    body = body.replace("#000000", "currentColor").replace("#ffffff", GROUND)
    body = re.sub(GREY, "currentColor", body)
    body = re.sub(r">\s+<", "><", body).replace("\n", " ").strip()
    wide, high = (round(float(length) * SHOWN) for length in size.split())
    looks = (
        f'class="{MARK}" viewBox="0 0 {size}" width="{wide}" height="{high}" '
        f'style="max-width:100%;height:auto"'
    )
    looks += f' fill="currentColor" stroke-linejoin="round" font-family="{FONT}" role="img"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {looks} {names}>{ALONE}{body}</svg>\n"


def show(*args: object, **options: object) -> None:
    """Show every open figure in the notebook and close it; Matplotlib calls it for `plt.show()`."""
    from IPython.display import display

    for manager in Gcf.get_all_fig_managers():
        figure = manager.canvas.figure
        display({"text/plain": repr(figure), "image/svg+xml": svg_of(figure)}, raw=True)
    Gcf.destroy_all()
