"""A Sphinx extension: folds the code that is not the idea, and keeps out what Jupyter Book adds and
nobody uses.

Folded code shows one quiet line in its place, an HTML `<details>` that needs no script; outputs stay
visible. Checks are off the page, which ends with their tally. A diagram or a plot becomes part of the
page, so that it takes the page's colors. Chapters get their sign (`road.py`), pages their
description, keywords and scripts; `polish.py` mends what the theme writes. The weights of the models
that compute in a page are written to `_static/models/`; no page loads one by itself.

Thebe (running cells on a remote server) would put a web address and the name of a foreign
repository into every page, and an error into the browser's console.
"""

import re
from functools import partial
from html import escape
from importlib import import_module
from itertools import cycle
from pathlib import Path
from posixpath import normpath

import yaml
from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math
from sphinx.transforms.post_transforms import SphinxPostTransform

from kinds import asserts_in, code_of, title_of
from polish import polish
from road import read_road, sign_html

UNUSED = ("sphinx_thebe", "sphinx_comments")
# the first that a cell has names its fold; checks have none, they are counted
FOLDED_TAGS = ("check", "plumbing", "colab-setup", "hide-input")

DRAWING = re.compile(r'<svg class="(diagram|plot)"')  # how the file of a diagram or a plot begins
# The name of a still picture → the function that gives its live form.
LIVE = {
    "span_boundary.svg": "spanbert_tutorial.figures.try_it:figure_one",
    "try_line.svg": "spanbert_tutorial.figures.try_it:line",
    "try_hide.svg": "spanbert_tutorial.figures.try_it:mask_part",
    "try_ask.svg": "spanbert_tutorial.figures.try_it:ask_part",
    "game.svg": "spanbert_tutorial.figures.try_it:game",
}

# What stands in a page → the files that it loads then.
FILES = {
    r"<div data-(try|explorer|moving)": ("widgets.css", "widgets.js"),
    "<div data-try=": ("try_it.css", "try_it.js"),
    '<div data-try="game"': ("game.js",),
    '<div data-try="figure-one"': ("figure_one.js",),
}

# Checkpoints whose weights a page can load.
IN_THE_PAGE = ("spanbert-tiny", "spanbert-mini", "spanbert-mini-squad")

GLOSSARY = "book/workshop/glossary.md"
ROW = re.compile(
    r"^\| \*\*(.+?)\*\* \| (.+?) \| .* \| \[.*?\]\(([^)#]+)\.(?:ipynb|md)[^)]*\) \|$", re.MULTILINE
)
HANGUL = re.compile(r"([가-힣]+(?:[ ,·]+[가-힣]+)*)")
MATHML = LatexToMathML()
NO_WORDS = (nodes.raw, nodes.literal_block, nodes.title)
DESCRIPTION = (
    "BERT and SpanBERT from the ground up: every idea is code that runs, every number has a check."
)


def raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def visit_formula(translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which needs no script; one that is not understood, for MathJax."""
    block = isinstance(node, nodes.math_block)
    try:
        formula = MATHML.convert_with_local_state(node.astext(), displaystyle=block)
    except LatexError:
        (html_visit_displaymath if block else html_visit_math)(translator, node)
    else:
        looks = "in-line"
        if len(node.astext()) > 30:  # on a telephone it scrolls on a line of its own
            looks += " long-formula"
        translator.body.append(
            f'<div class="formula">{formula}</div>'
            if block
            else f'<span class="{looks}">{formula}</span>'
        )
        raise nodes.SkipNode


def fold_cell(cell: nodes.container, kind: str) -> None:
    """Put a cell's code under its line, plumbing's below the output, and with a solution its output,
    which would give it away. The title is the line, so it is not repeated."""
    code, *outputs = cell.children
    (block,) = code.findall(nodes.literal_block)
    source = block.astext()
    block.rawsource = code_of(source)
    block.children = [nodes.Text(block.rawsource)]
    label = "Setup" if kind == "colab-setup" else title_of(source) or "Code"
    row = nodes.container(classes=["folds"])
    summary = f"<summary>{escape(label)}</summary>"
    hidden, shown = ([code, *outputs], []) if kind == "hide-input" else ([code], outputs)
    row += [raw(f'<details class="fold fold-{kind}">\n{summary}\n'), *hidden, raw("</details>\n")]
    cell.children = []
    cell += [*shown, row] if kind == "plumbing" else [row, *shown]
    cell.attributes.pop("hide_mode", None)


def join_rows(cell: nodes.container) -> None:
    """Hang the lines of a cell that shows nothing else onto the row that ends the cell before it,
    or make it one."""
    place = cell.parent.index(cell)
    before = cell.parent[place - 1] if place else None
    if not is_cell(before) or len(cell) != 1:
        return
    if "folds" in before[-1]["classes"]:
        before[-1] += cell[0].children
    else:
        before += cell[0]
    cell.parent.remove(cell)


def is_cell(node: nodes.Node | None) -> bool:
    kind = node.get("nb_element") if isinstance(node, nodes.container) else None
    return kind == "cell_code" and bool(node.children)


class FoldCells(SphinxPostTransform):
    """Fold code cells by their tags, before myst-nb folds them its own way."""

    default_priority = 198  # myst-nb's transform has 199
    formats = ("html",)

    def run(self, **kwargs) -> None:
        checks = 0
        for cell in list(self.document.findall(is_cell)):
            tags = cell["cell_metadata"].get("tags", [])
            kind = next((tag for tag in FOLDED_TAGS if tag in tags), None)
            if kind == "check":
                checks += len(asserts_in(next(cell.findall(nodes.literal_block)).astext()))
                cell.parent.remove(cell)
            elif kind:
                fold_cell(cell, kind)
                if kind == "plumbing":
                    join_rows(cell)
        if checks:
            numbers = "1 number" if checks == 1 else f"{checks} numbers"
            self.document += raw(
                f'<p class="tally">✓ {numbers} in the text of this page checked</p>'
            )


def on_page(app: Sphinx, document: nodes.document, docname: str) -> None:
    """What a page gets once its parts are known."""
    if app.builder.format == "html":
        inline_pictures(document, Path(app.srcdir))
        add_sign(app, document, docname)
        mark_korean(document)


def inline_pictures(document: nodes.document, source: Path) -> None:
    """Put diagrams and plots into the page itself: a picture file could not know whether the page
    is light or dark."""
    for image in list(document.findall(nodes.image)):
        path = source / image["uri"]
        html = path.read_text(encoding="utf-8") if path.suffix == ".svg" else ""
        if kind := DRAWING.match(html):
            if kind[1] == "plot" and "aria-label" not in html:  # its words stand beside it
                named = f' role="img" aria-label="{escape(image["alt"])}"'
                html = html.replace(' role="img"', named, 1)
            if path.name in LIVE:
                module, function = LIVE[path.name].split(":")
                html = getattr(import_module(module), function)()._repr_html_()
            alone = isinstance(image.parent, nodes.paragraph) and len(image.parent) == 1
            (image.parent if alone else image).replace_self(raw(f"<div>{html}</div>"))


def add_sign(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Put the sign at a chapter's head: where you are, what you need, where it leads."""
    link = partial(app.builder.get_relative_uri, docname)
    road, page = read_road(Path(app.srcdir)), docname.removeprefix("book/")
    sign = sign_html(road, page, lambda to: link(f"book/{to}"))
    title = next(iter(document.findall(nodes.title)), None)
    if title is not None and sign:
        title.parent.insert(title.parent.index(title) + 1, raw(sign))


def mark_korean(document: nodes.document) -> None:
    """Mark Korean words, so that a screen reader speaks them as such."""
    for text in list(document.findall(nodes.Text)):
        if HANGUL.search(text) and not isinstance(text.parent, (*NO_WORDS, type(None))):
            parts = [
                nodes.inline("", part, classes=["language-ko"]) if korean else nodes.Text(part)
                for korean, part in zip(cycle([False, True]), HANGUL.split(text))
                if part
            ]
            text.parent.replace(text, parts)


def keywords(source: Path, docname: str) -> str:
    """The terms of the glossary, English and Korean, that lead to a page; the search asks for
    them."""
    file = source / GLOSSARY
    rows = ROW.findall(file.read_text(encoding="utf-8")) if file.is_file() else []
    terms = [
        name.strip()
        for term, korean, page in rows
        if docname == normpath(f"{Path(GLOSSARY).parent.as_posix()}/{page}")
        for name in re.split(r", |[()]", f"{term}, {korean}".replace("\\", ""))
    ]
    return ", ".join(filter(None, terms))


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Say in the page's head what the page is, for search engines and for who is sent a link."""
    chapters = read_road(Path(app.srcdir))
    says = [chapter.shows for chapter in chapters if chapter.page == pagename.removeprefix("book/")]
    says = f"{context['title']}: {says[0]}." if says else DESCRIPTION
    told = {
        "og:title": context.get("title") or app.config.project,
        "og:description": says,
        "og:type": "article",
        "og:site_name": app.config.html_title,
        "og:image": context["pathto"]("_static/card.png", resource=True),
        "og:image:alt": "Two words light up, and what they hide between them is predicted.",
        "og:image:width": 1200,
        "og:image:height": 630,
    }
    if app.config.html_baseurl:  # only then is it known where the page will be
        told["og:url"] = context["pageurl"]
        told["og:image"] = f"{app.config.html_baseurl}_static/card.png"
    tags = [
        f'<meta property="{name}" content="{escape(str(value))}" />' for name, value in told.items()
    ]
    tags.append('<meta name="twitter:card" content="summary_large_image" />')
    context["theme_extra_footer"] = footer(Path(app.srcdir), context)
    named = {"description": says, "keywords": keywords(Path(app.srcdir), pagename)}
    heads = [f'<meta name="{name}" content="{escape(told)}" />' for name, told in named.items()]
    context["metatags"] = "\n".join([*heads, *tags, context.get("metatags", "")])


def footer(source: Path, context: dict) -> str:
    """Who wrote the book, which version this is, under which licenses; how to cite it, and where to
    report a mistake. `CITATION.cff` knows; a sample book has none."""
    file = source / "CITATION.cff"
    if not file.is_file():
        return ""
    known = yaml.safe_load(file.read_text(encoding="utf-8"))
    authors = " and ".join(author["name"] for author in known["authors"])
    date = known["date-released"]
    issues = f"{url}/issues" if (url := context.get("theme_repository_url")) else ""
    report = issues or context["pathto"]("book/workshop/faq")
    cite = f"""@book{{spanbert_ground_up,
  title   = {{{known["title"]}}},
  author  = {{{{{authors}}}}},
  year    = {{{date.year}}},
  version = {{{known["version"]}}}
}}"""
    return (
        f"<p>{escape(known['title'])}, by {escape(authors)}. Version {known['version']}, "
        f'<time datetime="{date}">{date:%B} {date.day}, {date.year}</time>. '
        f"Code: MIT; text, figures and data: CC BY 4.0. "
        f'<a href="{report}">Report a mistake</a></p>'
        f"<details><summary>How to cite</summary><pre>{escape(cite)}</pre></details>"
    )


def shorten_signature(app, what, name, obj, options, signature: str | None, returns: str | None):
    """Keep the members of a set out of a signature: they are many, and in another order in each
    build."""
    return signature and re.sub(r"frozenset\(\{.*?\}\)", "frozenset(…)", signature), returns


def bring_to_life(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    """Load the files of the parts that can be used on the pages that have one."""
    for part, files in FILES.items():
        for file in files if re.search(part, context.get("body", "")) else ():
            if file.endswith(".css"):
                app.add_css_file(file)
            else:
                app.add_js_file(file, loading_method="defer")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Mend the pages, and write the weights of the models in them."""
    if error or app.builder.format != "html":
        return
    polish(Path(app.outdir))
    for name in IN_THE_PAGE:
        checkpoint = Path(app.srcdir, "data", "checkpoints", name)
        if checkpoint.is_dir():  # a sample book has none
            # here, because torch takes seconds
            from spanbert_tutorial.commands.exports import web_script

            script = Path(app.outdir, "_static", "models", f"{name}.js")
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(web_script(checkpoint, name), encoding="ascii")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the folds and the diagrams; take back what the unused extensions wanted to do later."""
    for formula in (nodes.math, nodes.math_block):
        app.add_node(formula, override=True, html=(visit_formula, None))
    app.add_post_transform(FoldCells)
    app.connect("doctree-resolved", on_page)
    app.connect("html-page-context", describe)
    app.connect("build-finished", finish)
    if "autodoc-process-signature" in app.events.events:
        app.connect("autodoc-process-signature", shorten_signature)
    app.connect("html-page-context", bring_to_life)
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__.split(".")[0] in UNUSED:
                app.disconnect(listener.id)
    app.registry.css_files[:] = [
        file for file in app.registry.css_files if file[0] != "sphinx-thebe.css"
    ]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
