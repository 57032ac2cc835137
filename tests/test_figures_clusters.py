"""Colored clusters: brackets in text, nested marks in HTML, escaping, refusals."""

from test_figures_explorer import Page

from spanbert_tutorial.figures.clusters import ClusterText

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
