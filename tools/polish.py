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
    r"<table(?![^>]*tabindex)": '<table tabindex="0"',  # a wide table scrolls by keyboard
    # a table that changes is not read aloud as a whole: the choice, which was just made, is
    r'<div data-view aria-live="polite">(?=(?:<div[^>]*>)*<table)': "<div data-view>",
    # the title of the book stands above the contents already
    r'(bd-sidenav__home-link">\s*<li[^>]*>\s*<a [^>]*>)[^<]*': r"\1Welcome",
    # no line break between a formula and the comma behind it
    r"(</math>)(</span>)([,.;:!?)]+)": r"\1\3\2",
    # a value that does not exist
    r"<td>(?:NaN|nan|<NA>)</td>": "<td>–</td>",
    # A notebook is downloaded; without the attribute a browser shows its text.
    r'(href="[^"]*_sources/[^"]*\.ipynb") target="_blank"': r"\1 download",
    # The search says this of another search.
    r"<p>\s*Searching for multiple words only[^<]*</p>": "",
    # Advertisements of a place where this book is not.
    r'<div id="ethical-ad-placement"[^>]*>\s*</div>': "",
}
STORED = re.compile(r'(<script type="application/json">.*?</script>)', re.DOTALL)
# A part of the contents: its name, and the list of its pages.
PART = re.compile(
    r'<p aria-level="2" class="caption" role="heading"><span class="caption-text">(.*?)</span></p>\s*'
    r'(<ul class="(current )?nav bd-sidenav">.*?</ul>)(?=\s*(?:<p aria-level="2"|</div>))',
    re.DOTALL,
)
HERE = re.compile(r'<details class="part" open><summary>(.*?)</summary><ul class="current')
TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t[dh]\b(?P<looks>[^>]*)>(?P<text>.*?)</t[dh]>", re.DOTALL)
NUMBER = re.compile(r"(?:[-−+±≤≥<>≈]? ?\d[\d.,]*(?: ?(?:%|±|to|–|/|×) ?)?)+(?: \w+)?|[–—-]?")
TALLY = re.compile(r'<p class="tally">✓ ([\d,]+) number')
CHECKED = re.compile(r'(<p class="checked">).*?(</p>)', re.DOTALL)  # the tally of the whole book
FORMULA = 'class="math'
MATHJAX = re.compile(r"\s*<script[^>]*(?:mathjax/[^>]*></script>|>window\.MathJax = .*?</script>)")
# The theme loads the index of the search on every page, for a search while one types, which is off.
SEARCH = re.compile(
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'
)
FIND = '<script src="_static/search_texts.js"></script>\n  <script src="_static/search.js"></script>\n  </head>'
HEADINGS = ("h1", "h2", "h3")
ICON = re.compile(
    r'(?:"([\w-]+)"|\b([\w-]+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)


class Article(HTMLParser):
    """What the search reads of a page: the sections of its article, each an anchor, a heading, text
    and code. Folded code, drawings and signs are left out."""

    SILENT = ("script", "style", "svg", "nav", "select", "annotation")

    def __init__(self, page: str):
        super().__init__()
        self.sections: list[list[str]] = []
        self.keywords = self.anchor = self.silent_in = ""
        self.inside = self.in_code = False
        self.depth = 0  # inside an element that is not read
        self.field = 2  # of a section: 1 its heading, 2 its text
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        classes = (given.get("class") or "").split()
        if tag == "meta" and given.get("name") == "keywords":
            self.keywords = given.get("content") or ""
        self.inside |= tag == "article"
        if self.depth:
            self.depth += tag == self.silent_in
        elif tag in self.SILENT or {"fold", "headerlink"} & {*classes}:
            self.depth, self.silent_in = 1, tag
        elif tag == "section" or (tag == "dt" and "sig" in classes):
            self.anchor = given.get("id") or self.anchor
        if self.inside and not self.depth and (tag in HEADINGS or "sig" in classes):
            self.sections.append([self.anchor, "", "", ""])
            self.field = 1
        self.in_code |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= bool(self.depth) and tag == self.silent_in
        self.inside &= tag != "article"
        self.in_code &= tag != "pre"
        if tag in (*HEADINGS, "dt"):
            self.field = 2
        elif self.sections and tag in ("p", "li", "td", "th", "div"):
            self.sections[-1][2] += " "

    def handle_data(self, data: str) -> None:
        if self.inside and not self.depth and self.sections:
            self.sections[-1][3 if self.in_code else self.field] += data

    def read(self) -> list[list[str]]:
        return [[" ".join(text.split()) for text in section] for section in self.sections]


def folded_parts(page: str) -> str:
    """The contents with each part folded, except the one that holds this page; Jupyter Book folds
    sections only. A page outside the parts has the first one open."""
    parts = list(PART.finditer(page))
    here = next((part[1] for part in parts if part[3]), parts[0][1] if parts else "")

    def fold(found: re.Match) -> str:
        opened = " open" if found[1] == here else ""
        return f'<details class="part"{opened}><summary>{found[1]}</summary>{found[2]}</details>'

    return PART.sub(fold, page)


def with_numbers_right(found: re.Match) -> str:
    """A table whose columns of numbers carry the class `number`, their headings, too."""
    table = found[0]
    rows = [(row, list(CELL.finditer(row))) for row in ROW.findall(table)]
    if "colspan" in table or "rowspan" in table or len({len(cells) for _, cells in rows}) != 1:
        return table

    def text(cell: re.Match) -> str:
        return unescape(re.sub(r"<[^>]*>", "", cell["text"])).strip()

    columns = list(zip(*(map(text, cells) for _, cells in rows[1:]), strict=True))
    right = [any(column) and all(map(NUMBER.fullmatch, column)) for column in columns]
    for row, cells in rows:
        new = row
        for cell, is_number in reversed(list(zip(cells, right, strict=False))):
            if is_number and "class=" not in cell["looks"]:
                place = cell.start("looks")
                new = f'{new[:place]} class="number"{new[place:]}'
            elif is_number and "number" not in cell["looks"]:
                place = row.index('class="', cell.start()) + len('class="')
                new = f"{new[:place]}number {new[place:]}"
        table = table.replace(row, new, 1)
    return table


def mended(name: str, page: str) -> str:
    """The page as a reader gets it. What a figure keeps for its script stays as it is: an attribute
    with bare quotes would break it."""
    parts = STORED.split(page)
    for place in range(0, len(parts), 2):
        for pattern, instead in MENDS.items():
            parts[place] = re.sub(pattern, instead, parts[place])
        parts[place] = TABLE.sub(with_numbers_right, parts[place])
    page = folded_parts("".join(parts))
    if FORMULA not in page:
        page = MATHJAX.sub("", page)
    page = SEARCH.sub("", page)
    if name == "search.html" and FIND not in page:
        page = page.replace("</head>", FIND, 1)
    return page


def used_icons(script: str, names: set[str]) -> str:
    """The script of the icons with those of these names only: it has two thousand."""

    def keep(icon: re.Match) -> str:
        own = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}
        return icon[0] if own & names else ""

    return re.sub(r",(\})", r"\1", ICON.sub(keep, script))


def polish(folder: Path) -> None:
    """Mend every page of the built book, write what the search reads, and make its scripts smaller."""
    found, icons, checked = [], set(), 0
    tallies = []  # pages with a place for the tally of all
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if name.startswith("_static/"):
            continue
        page = path.read_text(encoding="utf-8")
        icons |= set(re.findall(r"\bfa-([\w-]+)", page))
        page = mended(name, page)
        article = Article(page)
        if article.sections and "/" in name:  # no index, no search page
            part, sections = HERE.search(page), article.read()
            where = unescape(part[1]) if part else ""
            found.append([name, where, sections[0][1], article.keywords, sections])
        checked += sum(int(number) for number in TALLY.findall(page))
        tallies += [(path, page)] if CHECKED.search(page) else []
        path.write_text(page, encoding="utf-8")
    says = f"✓ {checked:,} numbers in the text are checked, and the tests run every code cell."
    for path, page in tallies if checked else ():
        path.write_text(CHECKED.sub(rf"\g<1>{says}\g<2>", page), encoding="utf-8")
    static = folder / "_static"
    texts = f"const PAGES = {json.dumps(found, ensure_ascii=False)};\n"
    (static / "search_texts.js").write_text(texts, encoding="utf-8")
    script = static / "scripts" / "fontawesome.js"
    script.write_text(used_icons(script.read_text(encoding="utf-8"), icons), encoding="utf-8")
    for path in static.rglob("*.map"):  # of the theme's own source, for a debugger
        path.unlink()
