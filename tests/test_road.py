"""The road through the book: its table, its map, the sign at a chapter's head."""

import re
import xml.etree.ElementTree as ET

import pytest
from test_diagrams import SVG, fits, texts_of

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
