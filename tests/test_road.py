"""The road through the book: its table, its map, the sign at a chapter's head."""

import re
import tomllib
import xml.etree.ElementTree as ET

import pytest
from sample_book import build, make_book
from test_diagrams import SVG, fits, texts_of

import pages
import road
from environment import ROOT
from spanbert_tutorial.errors import InputError

TABLE = tomllib.loads((ROOT / "book" / "road.toml").read_text(encoding="utf-8"))["chapters"]
BOOK = road.read_road(ROOT)


def link(page: str) -> str:
    return f"to/{page}.html"


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


def test_what_a_chapter_needs_stands_before_it():
    order = list(TABLE)
    for place, (page, row) in enumerate(TABLE.items()):
        assert set(row) == {"name", "needs", "routes", "shows"} and row["name"] and row["shows"], (
            page
        )
        assert all(order.index(needed) < place for needed in row["needs"]), page
        assert set(row["routes"]) <= set(road.TRACKS), page


def test_each_route_is_a_way_through_the_book():
    for track in road.TRACKS:
        stops = [chapter for chapter in BOOK.chapters if track in chapter.routes]
        assert 6 <= len(stops) < len(BOOK.chapters) / 1.5
        assert "spanbert/boundary" in [stop.page for stop in stops]


def test_leading_to_is_needing_read_backwards():
    for chapter in BOOK.chapters:
        assert all(chapter in BOOK.needed_by(other.page) for other in BOOK.leads_to(chapter.page))
    assert [one.name for one in BOOK.needed_by("spanbert/boundary")] == ["Span masking"]
    assert "Pre-training SpanBERT" in [one.name for one in BOOK.leads_to("spanbert/boundary")]


def test_a_page_without_a_line_is_named_and_a_line_without_a_page_waits(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "road.toml").write_text(
        (ROOT / "book" / "road.toml").read_text(encoding="utf-8")
    )
    contents = (
        "format: jb-book\nparts:\n  - caption: One\n    chapters:\n      - file: book/bert/bert\n"
    )
    (tmp_path / "_toc.yml").write_text(contents)
    short = road.read_road(tmp_path)
    assert [chapter.page for chapter in short.chapters] == ["bert/bert"] and not short.needed_by(
        "bert/bert"
    )
    (tmp_path / "_toc.yml").write_text(contents + "      - file: book/bert/new\n")
    with pytest.raises(InputError, match="bert/new is in the contents and not on the road"):
        road.read_road(tmp_path)


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


def test_the_names_of_three_columns_do_not_touch_the_lines_between_them():
    from spanbert_tutorial.figures.diagram import text_width

    for chapter in BOOK.chapters[: -len(list(BOOK.parts().values())[-1])]:
        assert road.NAMES + text_width(chapter.name) < road.COLUMN - 22 + (50 - 38) / 2.2, (
            chapter.name
        )


def test_the_map_says_the_same_in_words():
    told = road.draw_map(BOOK, 3).description
    assert "Part II: SpanBERT: Span masking, Span boundary objective" in told
    assert "If you teach: Prerequisites, A course in six weeks, From text to vectors" in told


def test_the_stops_of_a_route_are_drawn():
    """As many marks as stops, and one in the legend."""
    svg = road.draw_map(BOOK, 3).svg()
    for track, mark in (
        ("t", "h10v10h-10z"),
        ("e", "l6.5 6.5l-6.5 6.5l-6.5-6.5z"),
        ("n", "a5 5 0 1 0 10 0"),
    ):
        assert svg.count(mark) == sum(track in chapter.routes for chapter in BOOK.chapters) + 1


def test_the_sign_says_where_you_are_what_you_need_and_where_it_leads():
    sign = road.sign_html(BOOK, "spanbert/boundary", link)
    assert "<b>You are here</b> Part II: SpanBERT, 2 of 5" in sign
    assert '<b>You need</b> <a href="to/spanbert/span_masking.html">Span masking</a>' in sign
    assert 'href="to/spanbert/pretraining_spanbert.html"' in sign.split("It leads to")[1]
    assert sign.count("<circle") == len(BOOK.chapters) and sign.count('r="6"') == 1
    assert "You need" not in road.sign_html(BOOK, "tasks/squad", link)
    assert road.sign_html(BOOK, "references", link) == road.sign_html(BOOK, "nowhere", link) == ""


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
    assert (
        welcome.count('<a href="bert/chapter.html"><title>A chapter: a sum</title>') == 2
    )  # in both layouts
    assert "road-sign" not in welcome
    sign = chapter.index('<nav class="road-sign"')
    assert sign < chapter.rindex("</h1>", 0, sign) + 50  # below the title
    assert '<b>It leads to</b> <a href="../references.html">References</a>' in chapter
    assert pages.dead_links(built) == []
