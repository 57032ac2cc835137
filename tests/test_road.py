"""The road through the book: its table, and the sign at a chapter's head."""

import re

import road
from environment import ROOT

BOOK = road.read_road(ROOT)


def test_the_road_has_every_page_of_the_contents_in_its_order():
    contents = re.findall(r"- file: book/(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    # below the API's own page
    contents = [page for page in contents if not page.startswith("workshop/api/")]
    assert [chapter.page for chapter in BOOK] == contents
    assert list(dict.fromkeys(chapter.part for chapter in BOOK)) == re.findall(
        r'caption: "?(.*?)"?$', (ROOT / "_toc.yml").read_text(), flags=re.M
    )
