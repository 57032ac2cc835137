"""Panels of the explorers: bars, attention maps, predictions of both heads. Text twins, escaping,
refusals."""

import numpy as np
import pytest
import torch
from test_figures_explorer import Page

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.figures.attention_map import AttentionMap
from spanbert_tutorial.figures.bars import HEIGHT, Bars
from spanbert_tutorial.figures.predictions import Predictions, mask_and_predict
from spanbert_tutorial.figures.tokens import TokenStrip
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint

SENTENCE = "Clara Sander came into the world in 1904 in Walden Mill."


@pytest.fixture(scope="module")
def tiny():
    return load_checkpoint(data_path("checkpoints", "spanbert-tiny"))


# --- bars ---------------------------------------------------------------------------


def test_bars_say_every_number_in_text_and_to_a_screen_reader():
    bars = Bars([1, 2], {"a": [0.5, 0.25], "b": [0, 1]}, caption="two < three")
    assert repr(bars) == "       1      2\na  0.500  0.250\nb  0.000  1.000\ntwo < three"
    page = Page(bars._repr_html_())
    [image] = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert (
        image["role"] == "img" and image["aria-label"] == "a: 1 0.500, 2 0.250; b: 1 0.000, 2 1.000"
    )
    assert "two < three" in page.text


def test_the_height_of_a_bar_is_its_share_of_the_top():
    page = Page(Bars(["x"], {"a": [0.25]}, top=0.5)._repr_html_())
    [box] = [attributes for tag, attributes in page.tags if tag == "rect"]
    assert float(box["height"]) == HEIGHT / 2 == HEIGHT - float(box["y"])


def test_a_line_and_a_number_at_the_top_and_at_its_half():
    page = Page(Bars(["x"], {"a": [0.25]}, top=0.5)._repr_html_())
    assert [attributes["d"][:7] for tag, attributes in page.tags if tag == "path"] == [
        "M0 75.5",
        "M0 0.5H",
    ]
    assert "0.25" in page.text and "0.5" in page.text


# --- attention maps -----------------------------------------------------------------


def test_a_map_says_its_weights_in_percent_and_the_strongest_in_words():
    made = AttentionMap(np.array([[0.75, 0.25], [0.004, 0.996]]), ["the", "dog"], "a caption")
    assert repr(made) == "the → the 75%, dog → dog 100%\na caption"
    page = Page(made._repr_html_())
    cells = [
        attributes["style"] for tag, attributes in page.tags if tag == "td" and attributes
    ]  # the corner has none
    assert cells == ["--w:75", "--w:25", "--w:0", "--w:100"]
    assert [text for text in page.text if text.strip().isdigit()] == ["75", "25", "0", "100"]


# --- predictions --------------------------------------------------------------------


def test_predictions_mark_right_guesses_and_say_where_there_is_no_row():
    strip = TokenStrip(["a", "b"], ["masked", ""])
    made = Predictions(strip, ["a"], [[("b", 0.5), ("a", 0.25)]], [])
    assert repr(made) == f"{strip.text}\np1 a: MLM b 0.50, a 0.25 ✓; SBO no row"
    assert made.right("mlm") == (0, 1) and made.right("sbo") == (0, 0)
    assert Predictions(strip, ["a"], [[("a", 1.0)]], [[("a", 1.0)]]).right("sbo") == (1, 1)
    assert "no row" in Page(made._repr_html_()).text


def test_words_are_hidden_token_by_token_and_boundaries_stand_beside_them(tiny):
    panel = mask_and_predict(*tiny, SENTENCE, 3, 5)
    assert panel.answers == ["came", "into", "the"]
    assert [
        panel.strip.tokens[i] for i, mark in enumerate(panel.strip.marks) if mark == "boundary"
    ] == [
        "Sander",
        "world",
    ]
    assert panel.strip.notes[:6] == ["x1", "x2", "p1", "p2", "p3", "x6"]
    assert len(panel.mlm) == len(panel.sbo) == 3 and len(panel.mlm[0]) == 3


def test_the_panel_shows_what_the_heads_say(tiny):
    """The MLM column, computed once more from the model itself."""
    model, wordpiece = tiny
    ids = wordpiece.encode(SENTENCE)
    ids[2:5] = wordpiece.mask_id
    framed = torch.tensor([[wordpiece.cls_id, *ids, wordpiece.sep_id]])
    with torch.no_grad():
        scores = model.masked_language_model(model.encoder(framed)[0, 3:6])
    best = wordpiece.tokens(scores.argmax(-1).tolist())
    assert [
        predictions[0][0] for predictions in mask_and_predict(model, wordpiece, SENTENCE, 3, 5).mlm
    ] == best
