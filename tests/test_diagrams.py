"""Diagrams: words for every drawing, looks that GitHub keeps, colors for light and dark, numbers
of the chapters."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch

import picture
from notebooks import book_notebooks, read
from spanbert_tutorial.bert.config import EncoderConfig
from spanbert_tutorial.bert.encoder import BertEncoder
from spanbert_tutorial.bert.wordpiece import SPECIALS, WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.figures import (
    boundary,
    encoder,
    flow,
    legend,
    own_data,
    scales,
    span_scores,
    tasks,
)
from spanbert_tutorial.figures.boundary import WORDS, Reads, draw, figure_one, reads
from spanbert_tutorial.figures.diagram import COLORS, SIZE, Diagram, subscript, text_width
from spanbert_tutorial.figures.encoder import shape
from spanbert_tutorial.pretraining.batches import PretrainingData
from spanbert_tutorial.pretraining.model import PretrainingModel
from spanbert_tutorial.pretraining.objectives import Objective
from spanbert_tutorial.tasks.windows import Window, best_spans
from spanbert_tutorial.text.encoding import EncodedCorpus

SVG = "{http://www.w3.org/2000/svg}"
# the grounds of the pages
LIGHT = (255, 255, 255)
DARK = (20, 24, 30)
LEAST_SIZE = 10.5  # units; a telephone of 360 pixels shows a unit as about 0.9 of a pixel


def small_diagram() -> Diagram:
    picture = Diagram(100, 60, "A & B", "one < two")
    picture.token(2, 2, "a<b", "masked")
    picture.vector(2, 30).matrix(50, 2, 2, 3, "learned").arrow(2, 50, 40, 50, "boundary")
    return picture


# The worked example of the chapter on question answering.
PIECES = ["[CLS]", "who", "[SEP]", "Ada", "met", "Bo", "[SEP]"]
STARTS = np.array([1, 0, 0, 2, 0, 1, 0])
ENDS = np.array([1, 0, 0, 2, 0, 3, 0])
CONTEXT = {"first": 3, "last": 5, "longest": 3}
TINY = EncoderConfig.tiny(vocab_size=40, hidden_dropout_prob=0.0)
BASE = EncoderConfig.base()
PAIR = "[CLS] my dog is cute [SEP] he likes play ##ing [SEP]".split()
SEGMENTS = [0] * 6 + [1] * 5


def real_call() -> tuple[PretrainingModel, dict[str, torch.Tensor]]:
    """A tiny model and a batch with spans, from random text."""
    names = [f"word{i}" for i in range(TINY.vocab_size - len(SPECIALS))]
    wordpiece = WordPiece({token: i for i, token in enumerate(SPECIALS + names)})
    ids = np.random.default_rng(0).integers(5, TINY.vocab_size, 40 * 80).astype(np.uint16)
    ends = np.arange(10, len(ids) + 1, 10)
    objective = Objective.named("span+sbo")
    data = PretrainingData(
        EncodedCorpus(ids, ends, ends[7::8]), wordpiece, objective, max_length=40, batch_size=8
    )
    torch.manual_seed(0)
    return PretrainingModel(TINY, objective).eval(), data.batch(
        np.arange(8), np.random.default_rng(0)
    )


SCALES = {
    "weights": {"tiny": (8e5, "0.8 million"), "large": (3.4e8, "340 million")},
    "hours": {"one": (1, "1")},
}
DRAWINGS = {
    "layers": lambda: encoder.layer_stack(BASE, ["[CLS]", "the", "dog", "barks"]),
    "heads, base": lambda: encoder.heads(BASE, 4),
    "heads, tiny": lambda: encoder.heads(TINY, 4),
    "embeddings": lambda: encoder.embeddings(BASE, PAIR, SEGMENTS),
    "from document to loss": lambda: flow.pretraining_flow(*real_call(), 0.15),
    "find, carry, decode": flow.find_carry_decode,
    "start and end": lambda: span_scores.start_and_end(PIECES, STARTS, ENDS, **CONTEXT),
    "pairs": lambda: span_scores.pair_matrix(PIECES, STARTS, ENDS, **CONTEXT),
    "small": small_diagram,
    "span ranking": lambda: tasks.span_ranking(128, 20),
    "marked names": lambda: tasks.marked_names(128, 48),
    "sentence heads": lambda: tasks.sentence_heads(128),
    "legend": legend.language,
    "own data": own_data.two_ways,
    "scales": lambda: scales.draw_scales(SCALES, "Two scales"),
    "figure 1": draw,
    "figure 1, short span": lambda: draw((7, 7), 7),
    "figure 1, word in view": lambda: draw((6, 7), 8),
}


@pytest.fixture(params=DRAWINGS)
def drawing(request) -> Diagram:
    return DRAWINGS[request.param]()


def texts(drawing: Diagram):
    """(element, size, anchor, turned) of every text."""
    return texts_of(ET.fromstring(drawing.svg()))


def texts_of(root: ET.Element):
    """The same of a parsed drawing; looks stand at the group around a text."""
    for group in root.iter(f"{SVG}g"):
        for text in group.iter(f"{SVG}text"):
            size = float(group.get("font-size", SIZE))
            yield text, size, group.get("text-anchor", "middle"), text.get("transform") is not None


def test_a_drawing_has_words_for_readers_who_do_not_see_it(drawing):
    root = ET.fromstring(drawing.svg())
    assert root.get("role") == "img" and root.get("aria-label") == drawing.title
    assert (
        root.find(f"{SVG}title").text == drawing.title
        and root.find(f"{SVG}desc").text == drawing.description
    )
    assert repr(drawing) == f"{drawing.title}. {drawing.description}"
    assert drawing.svg() == drawing.svg() == drawing._repr_svg_()


def test_a_drawing_keeps_its_looks_where_styles_and_scripts_are_taken_out(drawing):
    root = ET.fromstring(drawing.svg())
    names = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert names <= {"svg", "title", "desc", "style", "g", "rect", "path", "text"}
    attributes = {name for element in root.iter() if element is not root for name in element.attrib}
    assert not attributes & {"id", "class", "style", "href", "filter", "mask"}
    assert "url(" not in drawing.svg() and "<style>" not in drawing.svg(alone=False)


def fits(root: ET.Element, text: ET.Element, size: float, anchor: str, turned: bool) -> bool:
    """Whether the text stays inside its drawing; turned text runs upwards."""
    wide, high = map(float, root.get("viewBox").split()[2:])
    long = text_width(text.text, size)
    before = {"start": 0, "middle": long / 2, "end": long}[anchor]
    begin = high - float(text.get("y")) - before if turned else float(text.get("x")) - before
    return -1 <= begin and begin + long <= (high if turned else wide) + 1


def test_the_text_stays_inside_and_is_large_enough_for_a_telephone(drawing):
    root = ET.fromstring(drawing.svg())
    for text, size, anchor, turned in texts_of(root):
        assert size >= LEAST_SIZE, text.text
        assert fits(root, text, size, anchor, turned), text.text


def luminance(color: tuple[int, ...]) -> float:
    """Relative luminance, WCAG 2.1."""
    shares = [value / 255 for value in color]
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in shares
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("kind", [kind for kind in COLORS if kind])
def test_a_color_is_seen_on_a_light_and_on_a_dark_page(kind):
    color = tuple(map(int, re.findall(r"\d+", COLORS[kind])))
    assert contrast(color, LIGHT) >= 3 and contrast(color, DARK) >= 3  # WCAG: parts of a graphic


def test_the_text_of_a_masked_token_can_be_read():
    color = tuple(map(int, re.findall(r"\d+", COLORS["masked"])))
    assert contrast(color, (255, 255, 255)) >= 4.5


def test_a_diagram_without_words_is_refused():
    for words in (("", "told"), ("title", " ")):
        with pytest.raises(InputError, match="without words"):
            Diagram(10, 10, *words)


def test_small_helpers():
    assert subscript(12) == "₁₂" and subscript("s-1") == "s₋₁"
    assert text_width("mmm") > text_width("aaa") > text_width("iii") > 0
    assert text_width("aa", 26) == 2 * text_width("aa", 13)


# --- the paper's Figure 1 -----------------------------------------------------------


@pytest.mark.parametrize("span", list(combinations_with_replacement(range(2, 12), 2)))
def test_what_the_heads_read_is_what_the_paper_says(span):
    """y_i = f(x_{s-1}, x_{e+1}, p_{i-s+1}), counted by hand."""
    first, last = span
    for word in range(1, len(WORDS) + 1):
        place = word - first + 1 if first <= word <= last else None
        assert reads(span, word) == Reads(first - 1, last + 1, place)


def test_the_figure_shows_the_papers_example():
    assert WORDS[7 - 1] == "football" and reads((5, 8), 7) == Reads(4, 9, 3)
    shown = [text.text for text, *_ in texts(draw())]
    assert shown.count("[MASK]") == 4 and shown.count("football") == 2  # only as predictions
    assert {"x₄, x₉, p₃", "x₇", "p₃: third in the span"} <= set(shown)
    assert "x4, the hidden state of the boundary token “was”" in draw().description
    assert "it adds no loss" in [text.text for text, *_ in texts(draw((6, 7), 8))]


@pytest.mark.parametrize("span", [(1, 3), (10, 12)])
def test_a_span_at_the_edge_has_no_figure(span):
    with pytest.raises(InputError, match="no boundary token on one side"):
        draw(span, 2)


def test_the_live_figure_has_a_panel_for_every_choice():
    explorer = figure_one()
    spans, words = explorer.controls.values()
    assert spans[0] == "an American football game" and words[0] == "football" and len(spans) == 6
    assert sorted(words) == sorted(boundary.WORDS[4:8])
    shown = iter(explorer.panels)
    for span in spans:
        for word in words:
            told = repr(next(shown))
            assert f"The span “{span}” is masked" in told
            assert ("so no head predicts it" in told) == (word not in span.split())


# --- the encoder --------------------------------------------------------------------


def shown_in(drawing: Diagram) -> str:
    return " | ".join(text.text for text, *_ in texts(drawing))


def test_shapes_of_the_heads_are_those_of_a_call():
    n = 7
    layer = BertEncoder(TINY).eval().layers[0]
    hidden = torch.randn(1, n, TINY.hidden_size)
    queries = layer.attention.split(layer.attention.query(hidden))  # [1, A, n, H/A]
    weights = layer.attention.maps(hidden, None)  # [1, A, n, n]
    told = shown_in(encoder.heads(TINY, n))
    assert queries.shape[1] == weights.shape[1] == TINY.num_attention_heads
    for tensor in (hidden[0], queries[0, 0], queries[0, 0].T, weights[0, 0]):
        assert shape(*tensor.shape) in told
    assert f"A = {TINY.num_attention_heads} heads of width H/A = {queries.shape[-1]}" in told


def test_sizes_of_layers_and_tables_are_those_of_the_model():
    model = BertEncoder(TINY)
    told = shown_in(encoder.layer_stack(TINY, ["a", "b", "c"]))
    wide, H = model.layers[0].expand.weight.shape
    assert f"{H:,} → {wide:,}" in told and f"{len(model.layers)} layers" in told
    tables = shown_in(encoder.embeddings(TINY, PAIR, SEGMENTS))
    for name in ("words", "segments", "positions"):
        assert shape(*getattr(model.embeddings, name).weight.shape) in tables
    assert encoder.embeddings(BASE, PAIR, SEGMENTS).description.count("segment B") == 5


def test_too_many_tokens_and_missing_segments_are_refused():
    with pytest.raises(InputError, match="two to five"):
        encoder.layer_stack(TINY, ["a"] * 6)
    with pytest.raises(InputError, match="give as many"):
        encoder.embeddings(TINY, PAIR, SEGMENTS[:-1])


# --- from a document to a loss ------------------------------------------------------


def test_the_flow_has_the_shapes_of_a_real_call_and_the_loss_of_the_package():
    model, batch = real_call()
    shapes = flow.shapes_of(model, batch)
    t = len(batch["masked_positions"])
    targets = len(batch["boundary_labels"])
    assert 0 < targets < t  # some spans touch an edge
    H = TINY.hidden_size
    V = TINY.vocab_size
    assert shapes["hidden"] == shape(*batch["input_ids"].shape, H) and shapes[
        "mlm_states"
    ] == shape(t, H)
    assert (shapes["mlm_logits"], shapes["sbo_logits"]) == (shape(t, V), shape(targets, V))
    assert shapes["sbo_states"] == shape(targets, 2 * H + 200)  # left, right, place
    told = shown_in(flow.pretraining_flow(model, batch, 0.15))
    assert (
        all(shapes[name] in told for name in shapes if name != "hidden") and "15% of tokens" in told
    )
    assert f"(sum MLM + sum SBO) / {t}" in told
    with torch.no_grad():
        losses = model(batch)
    assert torch.isclose(losses["loss"], (losses["mlm"] * t + losses["sbo"] * targets) / t)


# --- question answering -------------------------------------------------------------


def test_legal_pairs_are_those_that_the_decoder_may_choose():
    rng = np.random.default_rng(0)
    for first, last, longest in ((3, 5, 3), (3, 5, 2), (4, 9, 30), (2, 2, 1)):
        n = last + 2
        tokens = last - first + 1
        starts, ends = rng.random((2, n))
        window = Window(np.zeros(n, int), np.zeros(n, int), 0, tokens, first, np.ones(tokens, bool))
        found = best_spans(window, starts, ends, n * n, longest)
        allowed = {(span.first + first, span.last + first) for span in found}
        legal = span_scores.legal_pairs(n, first, last, longest)
        assert allowed == {(int(i), int(j)) for i, j in np.argwhere(legal)}
        assert span_scores._best(starts, ends, legal) == (
            found[0].first + first,
            found[0].last + first,
        )


def test_null_score_best_span_and_null_odds_by_hand():
    told = shown_in(span_scores.start_and_end(PIECES, STARTS, ENDS, **CONTEXT))
    assert "best span, Ada met Bo: start + end" in told and told.count("−3") == 1  # 2 − 5
    shown = [
        text.text for text, *_ in texts(span_scores.pair_matrix(PIECES, STARTS, ENDS, **CONTEXT))
    ]
    assert sorted(text for text in shown if text.isdigit()) == sorted(
        "2425034"
    )  # the null score and six spans
    shorter = span_scores.pair_matrix(PIECES, STARTS, ENDS, first=3, last=5, longest=2)
    assert "The best is Ada." in shorter.description  # 4; three tokens would be too many


def test_scores_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="one score for each token"):
        span_scores.start_and_end(PIECES, STARTS[1:], ENDS, **CONTEXT)
    with pytest.raises(InputError, match="at most eight"):
        span_scores.pair_matrix(PIECES * 2, np.zeros(14), np.zeros(14), **CONTEXT)


# --- kept pictures ------------------------------------------------------------------


def stored_diagrams() -> dict[str, str]:
    """The diagrams that the chapters keep."""
    found = {}
    for path in book_notebooks():
        for cell in read(path).cells:
            shown = [
                output.get("data", {}).get("image/svg+xml", "")
                for output in cell.get("outputs", [])
            ]
            found |= {
                f"{path.stem}, {cell.id}": svg
                for svg in shown
                if svg.startswith('<svg class="diagram"')
            }
    return found


def test_the_diagrams_that_chapters_keep_stay_inside_too():
    """Their numbers are the chapter's, so they may be wider than those above."""
    stored = stored_diagrams()
    assert len(stored) >= 4
    for where, svg in stored.items():
        root = ET.fromstring(svg)
        for text, size, anchor, turned in texts_of(root):
            assert fits(root, text, size, anchor, turned), f"{where}: {text.text}"


@pytest.mark.parametrize("name", picture.PICTURES)
def test_a_kept_picture_is_what_the_package_draws(name):
    """`python tools/picture.py` draws them anew."""
    kept = (picture.FOLDER / name).read_text(encoding="utf-8")
    assert kept == picture.drawn(name)
    assert (
        "@media(prefers-color-scheme:dark){svg:root{color:" in kept
    )  # a file has no page to take its color from


def test_a_step_of_a_scale_is_ten_times_as_much():
    """Ticks at powers of ten, as many on each scale; the dot of 3.4e8 stands where its logarithm
    says."""
    drawing = scales.draw_scales(SCALES, "Two scales")
    assert scales.decades(SCALES["weights"]) == (5, 4) and scales.decades(SCALES["hours"]) == (0, 1)
    (dots,) = [
        way for looks, way in drawing.paths.items() if "fill=" in looks and "stroke" not in looks
    ]
    first, second, third = [float(x) + 5 for x in re.findall(r"M([\d.]+) ", dots)]
    wide = scales.RIGHT - scales.LEFT
    assert first == pytest.approx(scales.LEFT + wide * (np.log10(8e5) - 5) / 4, abs=0.1)
    assert second == pytest.approx(scales.LEFT + wide * (np.log10(3.4e8) - 5) / 4, abs=0.1)
    assert third == pytest.approx(scales.LEFT, abs=0.1)


@pytest.mark.parametrize("number", [0, -1])
def test_a_number_without_a_logarithm_is_refused(number):
    with pytest.raises(InputError, match="all above 0"):
        scales.draw_scales({"x": {"one": (number, "n")}}, "x")
