"""The last step of the build: mends what the theme and Sphinx write into every page, and leaves out
what no page uses.

Each mend is a pattern with what takes its place and a reason. A page that is mended twice stays the
same.
"""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

MENDS = {
    # For readers who hear the page. The checker is axe-core (tests/test_accessibility.py).
    # three more names inside a button that has one
    r'(<i class="theme-switch[^>]*?) +title="[^"]*"': r"\1",
    r'(search-button-field[^>]*?) aria-label="Search"': r"\1",  # the button shows its name
    r'(class="bd-sidebar-primary bd-sidebar")>': r'\1 role="region" aria-label="Contents of the book">',
    r'<details( open(?:="open")?)?><summary>(<span class="toctree-toggle")': (
        r'<details\1><summary aria-label="Pages of this part">\2'
    ),
    r"<th( [^>]*)?>(?:<p></p>)?</th>": r"<td\1></td>",  # a corner of a table heads nothing
    # a wide table of an output scrolls by keyboard
    r'(<div style="overflow-x:auto"><table)>': r'\1 tabindex="0">',
    # A notebook is downloaded; without the attribute a browser shows its text.
    r'(href="[^"]*_sources/[^"]*\.ipynb") target="_blank"': r"\1 download",
    # Advertisements of a place where this book is not.
    r'<div id="ethical-ad-placement"[^>]*>\s*</div>': "",
}
# A part of the contents: its name, and the list of its pages.
PART = re.compile(
    r'<p aria-level="2" class="caption" role="heading"><span class="caption-text">(.*?)</span></p>\s*'
    r'(<ul class="(current )?nav bd-sidenav">.*?</ul>)(?=\s*(?:<p aria-level="2"|</div>))',
    re.DOTALL,
)
FORMULA = 'class="math'
MATHJAX = re.compile(r"\s*<script[^>]*(?:mathjax/[^>]*></script>|>window\.MathJax = .*?</script>)")
# The theme loads the index of the search on every page, for a search while one types, which is off.
SEARCH = re.compile(
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
)
TOOLS = '<script src="_static/searchtools.js'
# From the disk a page may not read other pages: the texts for the excerpts come with the search
# page.
EXCERPTS = """const TEXTS = %s;
if (location.protocol === "file:") {
  window.fetch = async (address) => ({
    text: async () => `<main role="main">${TEXTS[address.replace("./", "").split(".html")[0]] ?? ""}</main>`
  });
}
"""
ICON = re.compile(
    r'(?:"([\w-]+)"|\b([\w-]+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)


class Article(HTMLParser):
    """The text of a page's article, without code, scripts and the signs beside headings."""

    SILENT = ("script", "style", "pre", "svg", "nav", "select")

    def __init__(self, page: str):
        super().__init__()
        self.words: list[str] = []
        self.inside = False
        self.silent = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Enter the article, or something in it that is not read."""
        self.inside |= tag == "article"
        self.silent += tag in self.SILENT

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        self.inside &= tag != "article"
        self.silent -= tag in self.SILENT

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        if self.inside and not self.silent and data != "#":
            self.words.append(data)

    def text(self) -> str:
        """The words with single spaces."""
        return " ".join(unescape("".join(self.words)).split())


def folded_parts(page: str) -> str:
    """The contents with each part folded, except the one that holds this page; Jupyter Book folds
    sections only. A page outside the parts has the first one open."""
    parts = list(PART.finditer(page))
    here = next((part[1] for part in parts if part[3]), parts[0][1] if parts else "")

    def fold(found: re.Match) -> str:
        opened = " open" if found[1] == here else ""
        return f'<details class="part"{opened}><summary>{found[1]}</summary>{found[2]}</details>'

    return PART.sub(fold, page)


def mended(name: str, page: str) -> str:
    """The page as a reader gets it."""
    for pattern, instead in MENDS.items():
        page = re.sub(pattern, instead, page)
    page = folded_parts(page)
    if FORMULA not in page:
        page = MATHJAX.sub("", page)
    if name != "search.html":
        return SEARCH.sub("", page)
    texts = '<script src="_static/search_texts.js"></script>\n  '
    return page if texts in page else page.replace(TOOLS, texts + TOOLS, 1)


def used_icons(script: str, names: set[str]) -> str:
    """The script of the icons with those of these names only: it has two thousand."""

    def keep(icon: re.Match) -> str:
        own = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}
        return icon[0] if own & names else ""

    return re.sub(r",(\})", r"\1", ICON.sub(keep, script))


def polish(folder: Path) -> None:
    """Mend every page of the built book, write the texts of the search, and make its scripts
    smaller."""
    texts = {}
    icons = set()
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if name.startswith("_static/"):
            continue
        page = path.read_text(encoding="utf-8")
        icons |= set(re.findall(r"\bfa-([\w-]+)", page))
        texts[name.removesuffix(".html")] = Article(page).text()
        path.write_text(mended(name, page), encoding="utf-8")
    texts = {
        name: text for name, text in texts.items() if text and "/" in name
    }  # no index, no search page
    static = folder / "_static"
    (static / "search_texts.js").write_text(
        EXCERPTS % json.dumps(texts, ensure_ascii=False), encoding="utf-8"
    )
    script = static / "scripts" / "fontawesome.js"
    script.write_text(used_icons(script.read_text(encoding="utf-8"), icons), encoding="utf-8")
    for path in static.rglob("*.map"):  # of the theme's own source, for a debugger
        path.unlink()
