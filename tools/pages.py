"""Guards over the built pages in `_build/html`: links that lead nowhere, loads from the network,
machine paths."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from contract import machine_paths
from environment import ROOT

PAGES = ROOT / "_build" / "html"
# and every src, srcset, poster
LOADING = {("link", "href"), ("object", "data"), ("use", "href"), ("image", "href")}
REMOTE = re.compile(r"^(?:https?:)?//")
REMOTE_IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?\s*(?:https?:)?//")
REMOTE_IN_SCRIPT = re.compile(
    r"(?:fetch|import|importScripts|open|EventSource|WebSocket)\(\s*[^)]*(?:https?|wss?)://|\.src\s*=\s*['\"]https?://"
)
NO_FILE = ("mailto", "javascript", "data", "http", "https", "blob")


class Page(HTMLParser):
    """What one page links to, loads, and can be linked at."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []  # of elements that a reader follows
        self.loads: list[str] = []  # of elements that the browser follows by itself
        self.anchors: set[str] = set()
        self.inline: list[tuple[str, str]] = []  # (script or style, text)
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the addresses and anchors of one element."""
        for name, value in attributes:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif ("rel", "canonical") in attributes:
                continue
            elif name in ("src", "poster", "xlink:href") or (tag, name) in LOADING:
                self.loads.append(value)
            elif name == "srcset":
                self.loads += [part.split()[0] for part in value.split(",") if part.strip()]
            elif name == "href":
                self.links.append(value)
            elif name == "style":
                self.inline.append(("style", value))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        """Keep the text of scripts and styles."""
        if self.inside in ("script", "style"):
            self.inline.append((self.inside, data))

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        self.inside = ""


def read_pages(folder: Path) -> dict[Path, Page]:
    """Every page of the built book, by its path."""
    paths = [
        path for path in folder.rglob("*.html") if "_static" not in path.relative_to(folder).parts
    ]
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(paths)}


def dead_links(folder: Path) -> list[str]:
    """Links, pictures, scripts and anchors inside the book that are not there."""
    pages = read_pages(folder)
    problems = []
    for path, page in pages.items():
        for address in page.links + page.loads:
            parts = urlsplit(address)
            if parts.scheme in NO_FILE or REMOTE.match(address):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else None
            if not target.is_file():
                problems.append(f"{path.name}: {address} leads nowhere.")
            elif anchor and known is not None and anchor not in known:
                problems.append(f"{path.name}: {address}: the page has no anchor {anchor!r}.")
    return problems


def network_loads(folder: Path) -> list[str]:
    """Whatever a page would fetch from the network; links that a reader may follow are not
    counted."""
    problems = []
    for path, page in read_pages(folder).items():
        problems += [
            f"{path.name} loads {address}." for address in page.loads if REMOTE.match(address)
        ]
        for kind, text in page.inline:
            found = (REMOTE_IN_STYLE if kind == "style" else REMOTE_IN_SCRIPT).search(text)
            if found:
                problems.append(f"{path.name}: a {kind} loads from the network: {found.group()}.")
    for path in sorted(folder.rglob("*.css")):
        if REMOTE_IN_STYLE.search(path.read_text(encoding="utf-8")):
            problems.append(f"{path.name} loads from the network.")
    return problems


def page_paths(folder: Path) -> list[str]:
    """Machine paths in what was built from the book."""
    built = [
        path for path in folder.rglob("*") if path.suffix in (".html", ".txt", ".md", ".ipynb")
    ]
    built += [folder / "searchindex.js"]
    problems = []
    for path in built:
        if path.is_file() and "_static" not in path.relative_to(folder).parts:
            problems += [
                f"{path.name}: {found}" for found in machine_paths(path.read_text(encoding="utf-8"))
            ]
    return problems


def missing_pages(folder: Path, root: Path = ROOT) -> list[str]:
    """Chapters of the table of contents without a page: a build can end well and write nothing."""
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    names = re.findall(r"^\s*-?\s*(?:root|file):\s*(\S+)", contents, re.MULTILINE)
    return [
        f"{name}.html was not built." for name in names if not (folder / f"{name}.html").is_file()
    ]


def page_problems(folder: Path = PAGES, root: Path = ROOT) -> list[str]:
    """All that the contract refuses in the built pages."""
    return (
        missing_pages(folder, root)
        + dead_links(folder)
        + network_loads(folder)
        + page_paths(folder)
    )


if __name__ == "__main__":
    found = page_problems()
    print("\n".join(found) or "The pages keep the contract.")
    sys.exit(1 if found else 0)
