"""What the chapters' figures show, in the page and in text: tables, attention maps, clusters,
merges, predictions of both heads, a block beside a pair, plots."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from test_figures_explorer import NASTY, Page

from spanbert_tutorial.bert.wordpiece import joined
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.attention_map import AttentionMap
from spanbert_tutorial.figures.block_and_pair import BlockAndPair
from spanbert_tutorial.figures.clusters import ClusterText
from spanbert_tutorial.figures.curves import draw_curves, draw_intervals
from spanbert_tutorial.figures.merges import Merges
from spanbert_tutorial.figures.predictions import Predictions, mask_and_predict
from spanbert_tutorial.figures.table import Table
from spanbert_tutorial.figures.tokens import TokenStrip
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint

SENTENCE = "Clara Sander came into the world in 1904 in Walden Mill."


@pytest.fixture(scope="module")
def tiny():
    return load_checkpoint(data_path("checkpoints", "spanbert-tiny"))


# --- plots ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw, told",
    [
        (
            lambda: draw_curves({"a": ([1, 2], [3.0, 2.0])}, {"entropy": 1.25}, "steps"),
            "first to last of steps: a 3.00 to 2.00; level line entropy 1.25.",
        ),
        (
            lambda: draw_intervals({"a": (1, 0.5, 1.5), "b": (2, 1, 4)}, "F1"),
            "a 1 (0.5 to 1.5); b 2 (1 to 4)",
        ),
    ],
)
def test_a_plot_tells_the_numbers_that_it_draws(draw, told):
    figure = draw()
    assert told in figure.get_label()
    plt.close(figure)


# --- a block beside a pair -----------------------------------------------------------


def test_a_block_goes_on_where_a_pair_borrows(almanac_text):
    made = BlockAndPair(almanac_text.held_out, almanac_text.wordpiece)
    (block, first, second), (whole, one, other) = made.tokens, made.texts
    assert block <= 62 and first + second <= 61 and whole.startswith(one) and other not in whole
    page = Page(made._repr_html_())
    assert f"{first} tokens of this document, {second} of another" in "".join(page.text)
    assert all(text in repr(made) for text in made.texts)


# --- tables --------------------------------------------------------------------------


def test_html_is_escaped_and_text_stands_in_columns():
    table = Table(["who", "F1"], [["<script>", 81.5], ["a & b", "–"]])
    rows = "<tr><td>&lt;script&gt;</td><td>81.5</td></tr><tr><td>a &amp; b</td><td>–</td></tr>"
    assert rows in table._repr_html_()
    assert table._repr_html_().count("<th>") == 2
    assert repr(table).split("\n") == ["who       F1", "<script>  81.5", "a & b     –"]


# --- attention maps ------------------------------------------------------------------


def test_a_map_says_its_weights_in_percent_and_the_strongest_in_words():
    made = AttentionMap(np.array([[0.75, 0.25], [0.004, 0.996]]), ["the", "dog"])
    assert repr(made) == "the → the 75%, dog → dog 100%"
    page = Page(made._repr_html_())
    cells = [looks["style"] for tag, looks in page.tags if tag == "td" and looks]  # no corner
    assert cells == ["--w:75", "--w:25", "--w:0", "--w:100"]
    assert [text for text in page.text if text.strip().isdigit()] == ["75", "25", "0", "100"]
    made = AttentionMap(np.eye(len(NASTY)), NASTY)
    assert not Page(made._repr_html_()).names() & {"script", "img"}


# --- clusters ------------------------------------------------------------------------

WORDS = "Ella Hale lost her key . Hale found it .".split()
CLUSTERS = [[(0, 1), (3, 3), (6, 6)], [(5, 5)], [(3, 4), (8, 8)]]


def test_the_page_nests_marks_and_says_numbers():
    page = Page(ClusterText(WORDS, CLUSTERS)._repr_html_())
    titles = [looks["title"] for tag, looks in page.tags if tag == "span" and "title" in looks]
    assert titles == ["cluster 1", "cluster 2", "cluster 1", "cluster 1", "cluster 2"]
    assert [tag for tag, _ in page.tags].count("sup") == 5 and " lost " in page.text


# --- merges --------------------------------------------------------------------------

POEM = "the hen she sees the queen then the queen sees the hen"


def test_merges_are_numbered_and_scores_show_their_counts():
    panel = Merges(POEM, "likelihood", 1)
    assert "qu/1 ##e ##e ##n ×2" in repr(panel) and "Merged: 1 q ##u." in repr(panel)
    assert "t ##h: 5 / (5 · 6) = 0.167" in repr(panel)
    assert "Tokens: 41 in the text, 10 in the vocabulary." in repr(panel)
    assert "t ##h: +12.75 nats" in repr(Merges(POEM, "gain", 0))
    assert Merges(POEM, "frequency", 2).words[("the",)] == 4


def test_a_token_made_twice_has_the_number_of_its_first_merge():
    panel = Merges("abc abc abc abd abd xbc xbc xbc xbc", "frequency", 4)
    assert panel.learned[-1] == ("##b", "##d")
    assert panel.number == {"##bc": 1, "xbc": 2, "abc": 3, "##bd": 4}
    panel = Merges("abc abc abc abd abd abd xbc xbc", "likelihood", 20)
    made = [joined(pair) for pair in panel.learned]
    assert all(made.index(token) == number - 1 for token, number in panel.number.items())
    assert repr(Merges("ab", "gain", 9)).splitlines() == [
        "ab/1 ×1",
        "Merged: 1 a ##b.",
        "Best next pairs, gain: none is left.",
        "Tokens: 1 in the text, 3 in the vocabulary.",
    ]


# --- predictions --------------------------------------------------------------------


def test_predictions_mark_right_guesses():
    strip = TokenStrip(["a", "b"], ["masked", ""])
    made = Predictions(strip, ["a"], [[("b", 0.5), ("a", 0.25)]], [[("c", 1)]])
    assert repr(made) == f"{strip!r}\np1 a: MLM b 0.50, a 0.25 ✓; SBO c 1.00"
    assert "b 0.50\na 0.25 ✓" in Page(made._repr_html_()).text


def test_words_are_hidden_token_by_token_and_boundaries_stand_beside_them(tiny):
    panel = mask_and_predict(*tiny, SENTENCE, 2, 4, 3)
    assert panel.answers == ["came", "into", "the"]
    marked = zip(panel.strip.tokens, panel.strip.marks, strict=True)
    assert [token for token, mark in marked if mark == "boundary"] == ["Sander", "world"]
    assert panel.strip.notes[:6] == ["x1", "x2", "p1", "p2", "p3", "x6"]
    assert len(panel.mlm) == len(panel.sbo) == 3 and len(panel.mlm[0]) == 3


def test_a_word_of_several_tokens_gets_several_masks(tiny):
    panel = mask_and_predict(*tiny, "Olga Hobart has opened two schools in Walden.", 5, 5, 3)
    assert len(panel.mlm) == 2
    assert panel.answers == ["school", "##s"] and panel.strip.notes[5:7] == ["p1", "p2"]


def test_the_panel_shows_what_the_heads_say(tiny):
    """The MLM column, computed once more from the model itself."""
    model, wordpiece = tiny
    ids = wordpiece.encode(SENTENCE)
    ids[2:5] = wordpiece.mask_id
    framed = torch.tensor([[wordpiece.cls_id, *ids, wordpiece.sep_id]])
    with torch.no_grad():
        scores = model.masked_language_model(model.encoder(framed)[0, 3:6])
    best = wordpiece.tokens(scores.argmax(-1).tolist())
    panel = mask_and_predict(model, wordpiece, SENTENCE, 2, 4, 1)
    assert [guesses[0][0] for guesses in panel.mlm] == best
