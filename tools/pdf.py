"""The whole book as one print: `make pdf` writes `_build/book.pdf` through the system's Chromium.

The articles of the built pages but those of the API, in the order of the contents, become one page
beside them, with the style that each has on paper. Parts that compute show their stored example.
"""

import re
import sys
from posixpath import dirname, join, normpath

from playwright.sync_api import sync_playwright

from environment import ROOT, find_chromium
from pages import PAGES

ARTICLE = re.compile(r"<article\b[^>]*>(.*)</article>", re.DOTALL)
STYLE = re.compile(r'<link[^>]*rel="stylesheet"[^>]*>|<style>.*?</style>', re.DOTALL)
LINK = re.compile(r'\b(src|href)="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"')
SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)


def article(name: str, names: list[str], page: str) -> str:
    """A page's article, whose addresses and anchors hold in the print: `name#anchor` is the id."""

    def rewritten(link: re.Match) -> str:
        path = normpath(join(dirname(name), link[2])) if link[2] else f"{name}.html"
        if link[1] == "src":
            return f'src="{path}"'
        page = path.removesuffix(".html")
        anchor = f"#{link[3]}" if link[3] else ""
        return f'href="#{page}{anchor}"' if page in names else ""  # what is not printed has no link

    body = SCRIPT.sub("", ARTICLE.search(page)[1])
    body = re.sub(r'\b(id="|url\(#)', rf"\1{name}#", body)
    return f'<article class="bd-article" id="{name}">{LINK.sub(rewritten, body)}</article>'


def whole_book() -> str:
    """One page of all articles."""
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    names = re.findall(r"(?m)^[\s-]*(?:root|file):\s*(\S+)", toc)
    names = [name for name in names if "/api" not in name]
    pages = [(PAGES / f"{name}.html").read_text(encoding="utf-8") for name in names]
    styles = "".join(STYLE.findall(pages[0])).replace('href="../', 'href="')
    articles = [article(name, names, page) for name, page in zip(names, pages, strict=True)]
    return (
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">{styles}'
        "<style>article { break-before: page; } svg a { pointer-events: none; }</style>"
        f'<body><div class="bd-content">{"".join(articles)}</div></body></html>'
    )


def main() -> None:
    chromium = find_chromium()
    if chromium is None or not (PAGES / "index.html").is_file():
        sys.exit("A print needs Chromium and the built pages: install `chromium`, run `make book`.")
    page_of_all = PAGES / "print.html"
    page_of_all.write_text(whole_book(), encoding="utf-8")
    out = PAGES.parent / "book.pdf"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_of_all.as_uri(), timeout=300_000)
        margin = dict.fromkeys(("top", "bottom", "left", "right"), "15mm")
        page.pdf(path=out, format="A4", margin=margin, scale=0.8, outline=True, tagged=True)
        browser.close()
    page_of_all.unlink()
    print(f"The print is ready: {out}")


if __name__ == "__main__":
    main()
