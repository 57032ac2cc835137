"""The road through the book: its table, and the sign at a chapter's head."""

import re

from sample_book import build, make_book

import pages
import road
from environment import ROOT

BOOK = road.read_road(ROOT)


def test_the_road_has_every_page_of_the_contents_in_its_order():
    contents = re.findall(r"- file: book/(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    contents = [
        page for page in contents if not page.startswith("workshop/api/")
    ]  # below the API's own page
    assert [chapter.page for chapter in BOOK.chapters] == contents
    assert list(BOOK.parts()) == re.findall(
        r'caption: "?(.*?)"?$', (ROOT / "_toc.yml").read_text(), flags=re.M
    )
    assert all(chapters[-1].place == len(chapters) for chapters in BOOK.parts().values())


def test_the_built_pages_have_the_sign(tmp_path):
    make_book(tmp_path)
    result = build(tmp_path)
    assert result.returncode == 0, result.stderr
    built = tmp_path / "_build" / "html"
    welcome, chapter = (
        (built / "book" / name).read_text(encoding="utf-8")
        for name in ("welcome.html", "bert/chapter.html")
    )
    assert "road-sign" not in welcome
    sign = chapter.index('<nav class="road-sign"')
    assert sign < chapter.rindex("</h1>", 0, sign) + 50  # below the title
    assert '<b>It leads to</b> <a href="../references.html">References</a>' in chapter
    assert pages.dead_links(built) == []
