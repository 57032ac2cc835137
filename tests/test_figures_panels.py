"""Panels of the explorers: bars, attention maps, predictions of both heads. Text twins, escaping,
refusals."""

import numpy as np
import pytest
import torch
from test_figures_explorer import NASTY, Page

from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures.arms import draw_arms
from spanbert_tutorial.figures.attention import draw_heads
from spanbert_tutorial.figures.attention_map import AttentionMap
from spanbert_tutorial.figures.bars import HEIGHT, Bars
from spanbert_tutorial.figures.curves import draw_curves, draw_intervals
from spanbert_tutorial.figures.explorer import Explorer
from spanbert_tutorial.figures.merges import Merges
from spanbert_tutorial.figures.playground import AnswerPanel
from spanbert_tutorial.figures.predictions import Predictions, mask_and_predict
from spanbert_tutorial.figures.tokens import TokenStrip
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint

SENTENCE = "Clara Sander came into the world in 1904 in Walden Mill."


@pytest.fixture(scope="module")
def tiny():
    return load_checkpoint(data_path("checkpoints", "spanbert-tiny"))


HALF = "a\ud83d"  # half a character: no page can hold it


@pytest.mark.parametrize(
    "make",
    [
        lambda: TokenStrip([HALF], [""]),
        lambda: TokenStrip(["a"], ["masked"], {"masked": HALF}),
        lambda: TokenStrip(["a"], [HALF]),
        lambda: TokenStrip(["a"], [""], notes=[HALF]),
        lambda: TokenStrip(["a"], [""], caption=HALF),
        lambda: Bars([HALF], {"a": [0.5]}),
        lambda: Bars(["x"], {HALF: [0.5]}),
        lambda: Bars(["x"], {"a": [0.5]}, caption=HALF),
        lambda: AttentionMap([[1.0]], [HALF]),
        lambda: AttentionMap([[1.0]], ["a"], HALF),
        lambda: Predictions(TokenStrip(["a"], [""]), [HALF], [[("a", 0.5)]], []),
        lambda: Predictions(TokenStrip(["a"], [""]), ["a"], [[(HALF, 0.5)]], []),
        lambda: Merges(f"a {HALF}", "frequency", 1),
        lambda: AnswerPanel(HALF, "a", [(0, 1, 0.5)], 0.0),
        lambda: AnswerPanel("a", HALF, [(0, 1, 0.5)], 0.0),
        lambda: Explorer({HALF: ["a"]}, lambda **given: TokenStrip(["a"], [""])),
        lambda: Explorer({"a": [HALF]}, lambda **given: TokenStrip(["a"], [""])),
        lambda: draw_heads(torch.ones(1, 1, 1), [HALF]),
        lambda: draw_heads(torch.ones(1, 1, 1), ["a"], [HALF]),
        lambda: draw_curves({HALF: ([1], [1.0])}, {}, "steps"),
        lambda: draw_curves({"a": ([1], [1.0])}, {HALF: 1.0}, "steps"),
        lambda: draw_arms({HALF: {"a": [1.0]}}, {}),
        lambda: draw_arms({"panel": {HALF: [1.0]}}, {}),
        lambda: draw_arms({"panel": {"a": [1.0]}}, {"panel": (HALF, 0.5)}),
        lambda: draw_intervals({HALF: (1.0, 0.5)}, "nats"),
        lambda: draw_intervals({"a": (1.0, 0.5)}, HALF),
    ],
)
def test_half_a_character_is_refused(make):
    with pytest.raises(InputError, match=r"half a character \(U\+D83D\)"):
        make()


# --- bars ---------------------------------------------------------------------------


@pytest.mark.parametrize("top", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_a_scale_that_is_none_is_refused(top):
    with pytest.raises(InputError, match="top is .*: give a number above 0"):
        Bars(["x"], {"a": [0]}, top=top)


@pytest.mark.parametrize("value", ["0.5", None, True, float("nan"), float("inf"), 1j, [0.5]])
def test_a_bar_that_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="give one for each label, between 0 and 1"):
        Bars(["x"], {"a": [value]})


def test_a_series_without_a_color_is_refused():
    with pytest.raises(InputError, match="4 series are too many for 3 colors"):
        Bars(["x"], {name: [0.5] for name in "abcd"})


@pytest.mark.parametrize(
    "weights", [[["a"]], [[None]], [[1.0], [0.5, 0.5]], None, "a", [[1j]], [[float("nan")]]]
)
def test_a_map_of_something_else_is_refused(weights):
    with pytest.raises(InputError, match="weights"):
        AttentionMap(weights, ["a"])


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


def test_bars_escape_and_are_the_same_each_time():
    bars = Bars(NASTY, {NASTY[0]: [0.1] * len(NASTY)}, caption=NASTY[4])
    assert not Page(bars._repr_html_()).names() & {"script", "img"}
    assert bars._repr_html_() == bars._repr_html_()


@pytest.mark.parametrize(
    "labels, series", [([], {"a": []}), ([1], {}), ([1], {"a": [0.1, 0.2]}), ([1], {"a": [1.5]})]
)
def test_bars_refuse_what_they_cannot_draw(labels, series):
    with pytest.raises(InputError):
        Bars(labels, series)


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


def test_a_map_escapes_its_tokens():
    made = AttentionMap(np.eye(len(NASTY)), NASTY, NASTY[0])
    assert not Page(made._repr_html_()).names() & {"script", "img"}


@pytest.mark.parametrize(
    "weights, tokens", [(np.eye(2), ["a"]), (np.eye(0), []), (np.ones((2, 2)), ["a", "b"])]
)
def test_a_map_refuses_other_shapes_and_scores_before_softmax(weights, tokens):
    with pytest.raises(InputError):
        AttentionMap(weights, tokens)


# --- predictions --------------------------------------------------------------------


def test_predictions_mark_right_guesses_and_say_where_there_is_no_row():
    strip = TokenStrip(["a", "b"], ["masked", ""])
    made = Predictions(strip, ["a"], [[("b", 0.5), ("a", 0.25)]], [])
    assert repr(made) == f"{strip.text}\np1 a: MLM b 0.50, a 0.25 ✓; SBO no row"
    assert made.right("mlm") == (0, 1) and made.right("sbo") == (0, 0)
    assert Predictions(strip, ["a"], [[("a", 1.0)]], [[("a", 1.0)]]).right("sbo") == (1, 1)
    assert "no row" in Page(made._repr_html_()).text


def test_predictions_escape_and_refuse_other_numbers_of_lines():
    strip = TokenStrip(NASTY, [""] * len(NASTY))
    predictions = [[(text, 0.5)] for text in NASTY]
    assert not Page(Predictions(strip, NASTY, predictions, predictions)._repr_html_()).names() & {
        "script",
        "img",
    }
    for mlm, sbo in (([], []), (predictions, predictions[:1])):
        with pytest.raises(InputError):
            Predictions(strip, NASTY, mlm, sbo)


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


def test_a_word_of_several_tokens_gets_several_masks(tiny):
    panel = mask_and_predict(*tiny, "Olga Hobart has opened two schools in Walden.", 6, 6)
    assert len(panel.mlm) == 2
    assert panel.answers == ["school", "##s"] and panel.strip.notes[5:7] == ["p1", "p2"]


def test_a_span_at_the_edge_has_no_row(tiny):
    panel = mask_and_predict(*tiny, SENTENCE, 1, 2)
    assert panel.sbo == [] and "boundary" not in panel.strip.marks


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


@pytest.mark.parametrize(
    "text, first, last", [("two words", 1, 3), ("a " * 90, 1, 2), (SENTENCE, 0, 2), ("", 1, 1)]
)
def test_texts_that_do_not_suit_are_refused_in_a_sentence(tiny, text, first, last):
    with pytest.raises(InputError, match="tokens"):
        mask_and_predict(*tiny, text, first, last)
