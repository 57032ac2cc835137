"""What the last step of the build mends in the theme's pages, and what it leaves out."""

import re
import struct

import pytest
import yaml

import polish
from environment import ROOT
from pages import PAGES


def test_the_parts_of_the_contents_are_folded_except_the_one_with_this_page():
    caption = '<p aria-level="2" class="caption" role="heading"><span class="caption-text">{}</span></p>\n'
    nested = '<ul class="{}nav bd-sidenav">\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>\n'
    for here, opened in ((0, 0), (1, 1), (None, 0)):
        parts = [
            caption.format(f"Part {number}") + nested.format("current " if number == here else "")
            for number in range(2)
        ]
        page = polish.mended("book/a.html", f"<div>{''.join(parts)}\n</div>")
        folds = re.findall(r'<details class="part"( open)?><summary>Part (\d)</summary><ul', page)
        assert folds == [(" open" if number == opened else "", str(number)) for number in range(2)]
        assert page.count("</ul></details>") == 2 and "caption" not in page
        assert polish.mended("book/a.html", page) == page


def test_numbers_stand_on_the_right_under_their_heading():
    def table(*rows: str) -> str:
        cells = ["".join(f"<td{cell}</td>" for cell in row.split("|")) for row in rows]
        return f'<table tabindex="0">{"".join(f"<tr>{row}</tr>" for row in cells)}</table>'

    before = table('>name| class="head">F1|>span', ">a|><p>61.2 ± 1.3</p>|>1 of 2", ">b|>–|>x")
    after = table(
        '>name| class="number head">F1|>span',
        '>a| class="number"><p>61.2 ± 1.3</p>|>1 of 2',
        '>b| class="number">–|>x',
    )
    assert polish.mended("book/a.html", before) == after
    assert polish.mended("book/a.html", after) == after


def test_a_comma_stays_with_its_formula():
    before, after = "<math>x</math></span>), and", "<math>x</math>),</span> and"
    assert polish.mended("book/a.html", before) == after
    assert polish.mended("book/a.html", after) == after


def test_the_search_reads_sections_without_folds_and_signs():
    page = (
        '<nav>menu</nav><article><section id="a"><h1>A'
        '<a class="headerlink">#</a></h1><nav>sign</nav><pre>code</pre><p>one &amp; two</p>'
        '<details class="fold"><pre>setup</pre></details><p>three</p><section id="b"><h2>B</h2>'
        "</section></section></article><p>foot</p>"
    )
    sections = polish.sections_of(page)
    assert sections == [["a", "A", "one & two three", "code"], ["b", "B", "", ""]]


@pytest.mark.browser
def test_no_built_page_is_heavier_than_one_and_a_half_megabytes():
    built = [path for path in PAGES.rglob("*.html") if "_static" not in path.parts]
    sizes = {path.name: path.stat().st_size for path in built}
    assert len(sizes) > 40 and max(sizes.values()) <= 1_500_000, max(sizes, key=sizes.get)
    scripts = [path for path in (PAGES / "_static").rglob("*") if path.is_file()]
    assert not [path.name for path in scripts if path.suffix == ".map"]
    assert (PAGES / "_static" / "scripts" / "fontawesome.js").stat().st_size < 200_000


@pytest.mark.browser
def test_every_page_says_in_its_head_what_it_is():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    card = PAGES / "_static" / "card.png"
    assert struct.unpack(">II", card.read_bytes()[16:24]) == (1200, 630)
    for name in [
        line.split(": ")[1] for line in contents.splitlines() if "file:" in line or "root:" in line
    ]:
        page = (PAGES / f"{name}.html").read_text(encoding="utf-8")
        head = page.split("</head>")[0]
        assert (
            head.count('<meta name="description" content="') == 1 and 'property="og:title"' in head
        ), name
        assert 'rel="icon"' in head and 'rel="canonical"' not in head  # it has no address
        assert head.count('name="twitter:card" content="summary_large_image"') == 1
        image = re.search(r'property="og:image" content="([^"]+)"', head)[1]
        assert (PAGES / f"{name}.html").parent.joinpath(image).resolve() == card.resolve()
        foot = page.split('<footer class="bd-footer-content">')[1]
        assert all(words in foot for words in ("Version", "MIT", "CC BY 4.0", "How to cite")), name


@pytest.mark.browser
def test_the_address_of_a_page_that_moved_leads_to_the_page_that_took_its_place():
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    redirects = settings["sphinx"]["config"]["redirects"]
    assert len(redirects) > 10
    for old, new in redirects.items():
        assert not list(ROOT.glob(f"{old}.*")), f"{old} is a page again: take its redirect out."
        target = (PAGES / old).parent / new
        assert target.is_file() and new in (PAGES / f"{old}.html").read_text(encoding="utf-8")
        assert "redirect" not in target.read_text(encoding="utf-8")[:300], "a chain of redirects"
