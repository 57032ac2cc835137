"""The road through the book: its table, its map, the sign at a chapter's head."""

import re
import xml.etree.ElementTree as ET

import pytest
from sample_book import build, make_book
from test_diagrams import SVG, fits, texts_of

import pages
import road
from environment import ROOT

BOOK = road.read_road(ROOT)


def link(page: str) -> str:
    return f"to/{page}.html"


def test_the_road_has_every_page_of_the_contents_in_its_order():
    contents = re.findall(r"- file: book/(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    # below the API's own page
    contents = [page for page in contents if not page.startswith("workshop/api/")]
    assert [chapter.page for chapter in BOOK.chapters] == contents
    assert list(BOOK.parts()) == re.findall(
        r'caption: "?(.*?)"?$', (ROOT / "_toc.yml").read_text(), flags=re.M
    )
    assert all(chapters[-1].place == len(chapters) for chapters in BOOK.parts().values())


@pytest.mark.parametrize("columns", [1, 3])
def test_the_map_has_each_chapter_once_with_its_link_and_stays_inside(columns):
    root = ET.fromstring(road.draw_map(BOOK, columns, link).svg())
    assert root.get("role") == "group"
    links = {a.get("href"): a.find(f"{SVG}text").text for a in root.iter(f"{SVG}a")}
    assert links == {link(chapter.page): chapter.name for chapter in BOOK.chapters}
    assert all(
        fits(root, text, size, anchor, turned) for text, size, anchor, turned in texts_of(root)
    )
    drawn = [text.text for text, *_ in texts_of(root)]
    assert set(BOOK.parts()) <= set(drawn) and {says for *_, says in road.TRACKS.values()} <= set(
        drawn
    )


def test_the_built_pages_have_the_map_with_links_and_the_sign(tmp_path):
    make_book(tmp_path)
    (tmp_path / "book" / "welcome.md").write_text(
        "# Welcome\n\n![the road](../book_assets/road.svg)\n"
    )
    result = build(tmp_path)
    assert result.returncode == 0, result.stderr
    built = tmp_path / "_build" / "html"
    welcome, chapter = (
        (built / "book" / name).read_text(encoding="utf-8")
        for name in ("welcome.html", "bert/chapter.html")
    )
    # in both layouts
    assert welcome.count('<a href="bert/chapter.html"><title>A chapter: a sum</title>') == 2
    assert "road-sign" not in welcome
    sign = chapter.index('<nav class="road-sign"')
    assert sign < chapter.rindex("</h1>", 0, sign) + 50  # below the title
    assert '<b>It leads to</b> <a href="../references.html">References</a>' in chapter
    assert pages.dead_links(built) == []
