"""Guards over the built pages in `_build/html`: links that lead nowhere, machine
paths, chapters without a page. (That nothing is loaded from the network is seen in a browser.)"""

import re
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from contract import machine_paths
from environment import ROOT

PAGES = ROOT / "_build" / "html"
SCRIPT = re.compile(r"(<script\b[^>]*>).*?</script>", re.DOTALL)
LINK = re.compile(r'(?<=[\s"])(?:href|src|poster|data|xlink:href)="([^"]+)"')
ANCHOR = re.compile(r'(?<=[\s"])(?:id|name)="([^"]+)"')
NO_FILE = ("mailto", "javascript", "data", "http", "https", "blob")


def dead_links(folder: Path) -> list[str]:
    """Links, pictures, scripts and anchors inside the book that are not there."""
    pages = {}
    for path in set(folder.rglob("*.html")) - set((folder / "_static").rglob("*.html")):
        pages[path.resolve()] = SCRIPT.sub(r"\1", path.read_text(encoding="utf-8"))
    anchors = {path: set(map(unescape, ANCHOR.findall(page))) for path, page in pages.items()}
    problems = []
    for path, page in pages.items():
        for address in map(unescape, LINK.findall(page)):
            parts = urlsplit(address)
            if parts.scheme in NO_FILE or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file():
                problems.append(f"{path.name}: {address} leads nowhere.")
            elif anchor and target in pages and anchor not in anchors[target]:
                problems.append(f"{path.name}: {address}: the page has no anchor {anchor!r}.")
    return problems


def page_paths(folder: Path) -> list[str]:
    kinds = (".html", ".txt", ".md", ".ipynb")
    built = [path for path in folder.rglob("*") if path.suffix in kinds and path.is_file()]
    built += folder.glob("searchindex.js")
    problems = []
    for path in built:
        if "_static" not in path.relative_to(folder).parts:
            found = machine_paths(path.read_text(encoding="utf-8"))
            problems += [f"{path.name}: {one}" for one in found]
    return problems


def missing_pages(folder: Path, root: Path = ROOT) -> list[str]:
    """Chapters of the table of contents without a page: a build can end well and write nothing."""
    contents = (root / "_toc.yml").read_text(encoding="utf-8")
    names = re.findall(r"^\s*-?\s*(?:root|file):\s*(\S+)", contents, re.MULTILINE)
    missing = [name for name in names if not (folder / f"{name}.html").is_file()]
    return [f"{name}.html was not built." for name in missing]


def page_problems(folder: Path = PAGES, root: Path = ROOT) -> list[str]:
    """All that the contract refuses in the built pages."""
    return missing_pages(folder, root) + dead_links(folder) + page_paths(folder)


if __name__ == "__main__":
    found = page_problems()
    print("\n".join(found) or "The pages keep the contract.")
    sys.exit(1 if found else 0)
