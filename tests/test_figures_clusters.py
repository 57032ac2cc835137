"""Colored clusters: brackets in text, nested marks in HTML, escaping, refusals."""

import pytest
from test_figures_explorer import NASTY, Page

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.clusters import COLORS, ClusterText

WORDS = "Ella Hale lost her key . Hale found it .".split()
CLUSTERS = [[(0, 1), (3, 3), (6, 6)], [(5, 5)], [(3, 4), (8, 8)]]


def test_the_text_shows_clusters_by_number():
    figure = ClusterText(WORDS, CLUSTERS, labels=["Ella Hale", "the key"], caption="Two things.")
    assert repr(figure) == (
        "[Ella Hale]1 lost [[her]1 key]2 [.] [Hale]1 found [it]2 .\n"
        "1 = Ella Hale; 2 = the key\nTwo things."
    )


def test_the_page_nests_marks_and_says_numbers():
    page = Page(ClusterText(WORDS, CLUSTERS)._repr_html_())
    titles = [
        attributes["title"]
        for tag, attributes in page.tags
        if tag == "span" and "title" in attributes
    ]
    assert titles == ["cluster 1", "cluster 2", "cluster 1", "cluster 1", "cluster 2"]
    assert [tag for tag, _ in page.tags].count("sup") == 5 and " lost " in page.text


def test_colors_come_again_but_numbers_do_not():
    many = [
        [(2 * number, 2 * number), (2 * number + 1, 2 * number + 1)]
        for number in range(len(COLORS) + 1)
    ]
    figure = ClusterText(["a"] * 2 * len(many), many)
    assert figure._repr_html_().count(f"rgb({COLORS[0]})") == 4 and f"]{len(many)}" in figure.text


def test_nasty_words_are_escaped():
    figure = ClusterText(NASTY, [[(0, 0), (1, 1)]], labels=[NASTY[0]], caption=NASTY[1])
    assert not Page(figure._repr_html_()).names() & {"script", "img"}


@pytest.mark.parametrize(
    ("clusters", "labels", "wanted"),
    [
        ([[(0, 2), (5, 5)], [(1, 3), (6, 6)]], [], "cross"),
        ([[(0, 1), (9, 10)]], [], "outside of the text"),
        ([[(2, 1), (3, 3)]], [], "outside of the text"),
        ([[(0, 1), (3, 3)]], ["a", "b"], "2 labels for 1 clusters"),
    ],
)
def test_what_cannot_be_drawn_is_refused(clusters, labels, wanted):
    with pytest.raises(InputError, match=wanted):
        ClusterText(WORDS, clusters, labels=labels)
