"""The last step of the build: mends what the theme and Sphinx write into every page, and leaves out
what no page uses.

Each mend is a pattern with what takes its place and a reason. A page that is mended twice stays the
same.
"""

import json
import re
from html import unescape
from itertools import cycle
from pathlib import Path

MENDS = {
    # For readers who hear the page. The checker is axe-core (tests/test_every_page.py).
    # three more names inside a button that has one
    r'(<i class="theme-switch[^>]*?) +title="[^"]*"': r"\1",
    r'(search-button-field[^>]*?) aria-label="Search"': r"\1",  # the button shows its name
    r'(class="bd-sidebar-primary bd-sidebar")>': r'\1 role="region" aria-label="Contents of the book">',
    r'<details( open(?:="open")?)?><summary>(<span class="toctree-toggle")': (
        r'<details\1><summary aria-label="Pages of this part">\2'
    ),
    r"<th( [^>]*)?>(?:<p></p>)?</th>": r"<td\1></td>",  # a corner of a table heads nothing
    r"<table(?![^>]*tabindex)": '<table tabindex="0"',  # a wide table scrolls by keyboard
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
    # The theme loads the index of its search on every page, for a search while one types, which is off.
    r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>': "",
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
CELL = re.compile(r"(?P<begin><t[dh])\b(?P<looks>[^>]*)(?P<rest>>(.*?)</t[dh]>)", re.DOTALL)
NUMBER = re.compile(r"(?:[-−+±≤≥<>≈]? ?\d[\d.,]*(?: ?(?:%|±|to|–|/|×) ?)?)+(?: \w+)?|[–—-]?")
TALLY = re.compile(r'<p class="tally">✓ ([\d,]+) number')
CHECKED = re.compile(r'(<p class="checked">).*?(</p>)', re.DOTALL)  # the tally of the whole book
MATHJAX = re.compile(r"\s*<script[^>]*(?:mathjax/[^>]*></script>|>window\.MathJax = .*?</script>)")
FIND = '<script src="_static/search_texts.js"></script>\n  <script src="_static/search.js"></script>\n  </head>'
ARTICLE = re.compile(r"<article\b.*</article>", re.DOTALL)
KEYWORDS = re.compile(r'<meta name="keywords" content="([^"]*)"')
# what the search does not read: folded code, drawings, signs
SILENT = re.compile(
    r'<(script|style|svg|nav|select|annotation)\b.*?</\1>|<details class="fold.*?</details>'
    r'|<a class="headerlink.*?</a>',
    re.DOTALL,
)
SECTION = re.compile(r'(?=<section\b|<dt class="sig|<h[1-3]\b)')
ICON = re.compile(
    r'(?:"([\w-]+)"|\b([\w-]+)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?'
)


def text_of(html: str) -> str:
    """The text of a piece of a page, with single spaces."""
    text = re.sub(r"<[^>]*>", "", re.sub(r"</(?:p|li|td|th|div)>", " ", html))
    return " ".join(unescape(text).split())


def sections_of(page: str) -> list[list[str]]:
    """What the search reads of a page: the sections of its article, each an anchor, a heading, text
    and code."""
    found, anchor = [], ""
    article = ARTICLE.search(page)
    for part in SECTION.split(SILENT.sub("", article[0] if article else ""))[1:]:
        if named := re.match(r'<(?:section|dt)\b[^>]* id="([^"]*)"', part):
            anchor = named[1]
        if not part.startswith("<section"):
            heading, rest = re.split(r"</(?:h[1-3]|dt)>", part, maxsplit=1)
            code = " ".join(re.findall(r"<pre\b.*?</pre>", rest, re.DOTALL))
            text = re.sub(r"<pre\b.*?</pre>", "", rest, flags=re.DOTALL)
            found.append([anchor, *map(text_of, (heading, text, code))])
    return found


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
    rows = [
        [text_of(cell["rest"][1:]) for cell in CELL.finditer(row)]
        for row in table.split("</tr>")[:-1]
    ]
    if "colspan" in table or "rowspan" in table or len(set(map(len, rows))) != 1:
        return table
    columns = zip(*rows[1:], strict=True)
    right = [any(column) and all(map(NUMBER.fullmatch, column)) for column in columns]
    if not any(right):
        return table
    turns = cycle(right)

    def mark(cell: re.Match) -> str:
        looks = cell["looks"]
        if next(turns) and "number" not in looks:
            bare = "class=" not in looks
            looks = (
                f' class="number"{looks}' if bare else looks.replace('class="', 'class="number ')
            )
        return cell["begin"] + looks + cell["rest"]

    return CELL.sub(mark, table)


def mended(name: str, page: str) -> str:
    """The page as a reader gets it. What a figure keeps for its script stays as it is: an attribute
    with bare quotes would break it."""
    parts = STORED.split(page)
    for place in range(0, len(parts), 2):
        for pattern, instead in MENDS.items():
            parts[place] = re.sub(pattern, instead, parts[place])
        parts[place] = TABLE.sub(with_numbers_right, parts[place])
    page = folded_parts("".join(parts))
    if 'class="math' not in page:
        page = MATHJAX.sub("", page)
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
    static, pages, texts = folder / "_static", {}, []
    for path in sorted(set(folder.rglob("*.html")) - set(static.rglob("*.html"))):
        name = path.relative_to(folder).as_posix()
        page = pages[path] = mended(name, path.read_text(encoding="utf-8"))
        sections = sections_of(page) if "/" in name else []  # no index, no search page
        if sections:
            part, keywords = HERE.search(page), KEYWORDS.search(page)
            found = [unescape(one[1]) if one else "" for one in (part, keywords)]
            texts.append([name, found[0], sections[0][1], found[1], sections])
    checked = sum(int(number) for page in pages.values() for number in TALLY.findall(page))
    says = f"✓ {checked:,} numbers in the text are checked, and the tests run every code cell."
    for path, page in pages.items():
        path.write_text(
            CHECKED.sub(rf"\g<1>{says}\g<2>", page) if checked else page, encoding="utf-8"
        )
    written = f"const PAGES = {json.dumps(texts, ensure_ascii=False)};\n"
    (static / "search_texts.js").write_text(written, encoding="utf-8")
    icons = {icon for page in pages.values() for icon in re.findall(r"\bfa-([\w-]+)", page)}
    script = static / "scripts" / "fontawesome.js"
    script.write_text(used_icons(script.read_text(encoding="utf-8"), icons), encoding="utf-8")
    for path in static.rglob("*.map"):  # of the theme's own source, for a debugger
        path.unlink()
